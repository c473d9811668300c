package gosimnet_test

import (
	"math"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
)

// fired takes what a timer has sent, if it has.
func fired(timer *gosimnet.SimTimer) bool {
	select {
	case <-timer.C:
		return true
	default:
		return false
	}
}

func TestTimerFiresExactlyWhenAsked(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		for _, d := range []time.Duration{1, 999, time.Microsecond, time.Second + 7, 1000 * time.Hour} {
			start := time.Now()
			timer := s.Host("a").NewTimer(d)
			at := <-timer.C
			if took := time.Since(start); took != d || !at.Equal(start.Add(d)) {
				t.Errorf("a timer of %v took %v and told %v", d, took, at.Sub(start))
			}
			if timer.Stop() {
				t.Error("a timer that has fired says that it was armed")
			}
		}
	})
}

func TestTimerOfNoTimeFiresAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		for _, d := range []time.Duration{0, -1, math.MinInt64} {
			start := time.Now()
			timer := s.Host("a").NewTimer(d)
			if !fired(timer) || time.Since(start) != 0 {
				t.Errorf("a timer of %v did not fire at once", d)
			}
		}
	})
}

func TestTimerBeyondAllTimeNeverFires(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		timer := s.Host("a").NewTimer(math.MaxInt64)
		time.Sleep(100 * 365 * 24 * time.Hour)
		if fired(timer) || !timer.Discard() {
			t.Error("a timer beyond all time is not armed after a century")
		}
	})
}

func TestStopOfATimer(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		timer := s.Host("a").NewTimer(time.Second)
		if !timer.Stop() || timer.Stop() || timer.Discard() {
			t.Error("Stop tells not whether the timer was armed")
		}
		time.Sleep(2 * time.Second)
		if fired(timer) {
			t.Error("a timer that was stopped fired")
		}
		timer.Reset(time.Second)
		time.Sleep(2 * time.Second)
		timer.Stop()
		if fired(timer) {
			t.Error("a value that was sent before Stop was received after it")
		}
	})
}

func TestResetOfATimer(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		start := time.Now()
		timer := s.Host("a").NewTimer(time.Second)
		time.Sleep(500 * ms)
		if !timer.Reset(3 * time.Second) {
			t.Error("Reset of a timer that is armed: false")
		}
		<-timer.C
		if took := time.Since(start); took != 3500*ms {
			t.Errorf("the timer fired after %v", took)
		}
		if timer.Reset(0) {
			t.Error("Reset of a timer that has fired: true")
		}
		if !fired(timer) {
			t.Error("a timer that was reset to 0 did not fire")
		}
	})
}

func TestThePowerWithdrawsTimers(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		a, b := s.Host("a"), s.Host("b")
		mine, another := a.NewTimer(time.Second), b.NewTimer(time.Second)
		alter(t, s, "a", gosimnet.SHUTDOWN, gosimnet.POWERON)
		unborn := a.NewTimer(time.Second)
		time.Sleep(100 * ms)
		alter(t, s, "a", gosimnet.POWERON, gosimnet.SHUTDOWN)
		after := a.NewTimer(time.Second)
		time.Sleep(time.Minute)
		if fired(mine) || fired(unborn) {
			t.Error("a timer of before the power-on fired")
		}
		if !fired(another) || !fired(after) {
			t.Error("a timer that the power cut does not concern did not fire")
		}
		if mine.Stop() {
			t.Error("a timer that was withdrawn says that it was armed")
		}
		mine.Reset(time.Second)
		time.Sleep(time.Minute)
		if !fired(mine) {
			t.Error("a timer that was withdrawn cannot be used again")
		}
	})
}

func TestTimersAfterClose(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		a := s.Host("a")
		armed := a.NewTimer(time.Second)
		s.Close()
		late := a.NewTimer(time.Second)
		time.Sleep(time.Minute)
		for _, timer := range []*gosimnet.SimTimer{armed, late} {
			if fired(timer) || timer.Stop() || timer.Reset(time.Second) || timer.Discard() {
				t.Error("a timer of a closed network is alive")
			}
		}
	})
}

func TestTimersAreShownAndTraced(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		a := s.Host("a")
		time.Sleep(time.Second)
		a.NewTimer(3 * time.Second)
		gone := a.NewTimer(2 * time.Second)
		a.NewTimer(time.Second)
		gone.Discard()
		z := s.GetSimnetSnapshot().Peermap["a"]
		if len(z.Timers) != 2 || z.Timers[0].Due != 2*time.Second || z.Timers[1].Due != 4*time.Second || z.Timers[1].Issued != time.Second {
			t.Errorf("timers in the snapshot: %v", z.Timers)
		}
		lc := z.LC
		time.Sleep(time.Minute)
		n := 0
		for e := range s.Trace() {
			if e.Kind == gosimnet.EventTimer && e.From == "a" {
				n++
			}
		}
		z = s.GetSimnetSnapshot().Peermap["a"]
		if n != 2 || len(z.Timers) != 0 || z.LC != lc+2 {
			t.Errorf("%d timers in the trace, %v in the snapshot, the clock went from %d to %d", n, z.Timers, lc, z.LC)
		}
	})
}
