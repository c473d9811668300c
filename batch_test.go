package gosimnet_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
)

// finished reports whether a batch has come to its outcome.
func finished(b *gosimnet.SimnetBatch) bool {
	select {
	case <-b.Done():
		return true
	default:
		return false
	}
}

func TestBatchAppliesWholeAtItsInstant(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		start := time.Now()
		b := s.NewSimnetBatch(start.Add(time.Second), false)
		b.FaultHost("a", drop(0.5), false)
		b.AlterHost("b", gosimnet.ISOLATE)
		b.AlterCircuit("c:80", gosimnet.SHUTDOWN, true)
		s.SubmitBatch(b)
		if time.Since(start) != 0 {
			t.Errorf("SubmitBatch took %v", time.Since(start))
		}
		time.Sleep(time.Second - 1)
		if finished(b) || b.Err() != nil || s.Host("a").State() != gosimnet.HEALTHY {
			t.Error("the batch was applied before its instant")
		}
		<-b.Done()
		if at := time.Since(start); at != time.Second {
			t.Errorf("the batch was applied at %v", at)
		}
		noError(t, b.Err())
		wantState(t, s.Host("a"), gosimnet.FAULTY)
		wantState(t, s.Host("b"), gosimnet.ISOLATED)
		if !s.Host("c").PoweredOff() {
			t.Error("c is on")
		}
	})
}

func TestBatchThatIsWantedNowAppliesNow(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		time.Sleep(time.Minute)
		for name, b := range map[string]*gosimnet.SimnetBatch{
			"subAsap":        s.NewSimnetBatch(time.Now().Add(time.Hour), true),
			"past":           s.NewSimnetBatch(time.Now().Add(-time.Second), false),
			"long past":      s.NewSimnetBatch(time.Unix(0, 0), false),
			"zero time":      s.NewSimnetBatch(time.Time{}, false),
			"present":        s.NewSimnetBatch(time.Now(), false),
			"without a verb": s.NewSimnetBatch(time.Time{}, true),
		} {
			if name != "without a verb" {
				b.AlterHost("a", gosimnet.ISOLATE)
				b.FaultCircuit("a", "b", deaf(1), false)
			}
			if finished(b) || b.Err() != nil {
				t.Errorf("%s: finished before it was submitted", name)
			}
			s.SubmitBatch(b)
			if !finished(b) || b.Err() != nil {
				t.Errorf("%s: not finished, or %v", name, b.Err())
			}
			if name != "without a verb" {
				wantState(t, s.Host("a"), gosimnet.FAULTY_ISOLATED)
			}
			noError(t, s.AllHealthy(true, false))
		}
	})
}

func TestBatchIsAllOrNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		for name, spoil := range map[string]func(b *gosimnet.SimnetBatch){
			"unknown host":     func(b *gosimnet.SimnetBatch) { b.FaultHost("x", drop(1), false) },
			"unknown circuit":  func(b *gosimnet.SimnetBatch) { b.FaultCircuit("a", "x", drop(1), false) },
			"impossible value": func(b *gosimnet.SimnetBatch) { b.FaultHost("b", drop(2), false) },
			"no alteration":    func(b *gosimnet.SimnetBatch) { b.AlterHost("b", gosimnet.UNDEFINED) },
			"no endpoint":      func(b *gosimnet.SimnetBatch) { b.AlterCircuit("x:1", gosimnet.ISOLATE, false) },
			"no repair":        func(b *gosimnet.SimnetBatch) { b.RepairHost("x", true, true, false, false) },
			"no circuit":       func(b *gosimnet.SimnetBatch) { b.RepairCircuit("x", true, true, false) },
		} {
			b := s.NewSimnetBatch(time.Now().Add(time.Second), name == "unknown host")
			b.FaultHost("a", drop(1), false)
			b.AlterHost("a", gosimnet.SHUTDOWN)
			spoil(b)
			b.AlterHost("b", gosimnet.SHUTDOWN)
			s.SubmitBatch(b)
			<-b.Done()
			if err := b.Err(); err == nil || !strings.Contains(err.Error(), "verb 2") {
				t.Errorf("%s: %v", name, err)
			}
		}
		say(t, ab, "nothing has happened")
		wantHeard(t, ba, "nothing has happened")
		if text := s.GetSimnetSnapshot().String(); !strings.Contains(text, "all healthy") {
			t.Error(text)
		}
	})
}

func TestVerbsOfABatchApplyInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		noError(t, s.FaultHost("a", drop(1), false))
		say(t, ab, "withheld")
		time.Sleep(time.Second)
		b := s.NewSimnetBatch(time.Time{}, true)
		b.AlterHost("c", gosimnet.SHUTDOWN)
		b.FaultHost("c", drop(1), false)
		b.GetSimnetSnapshot()
		b.AllHealthy(true, true)
		b.AlterHost("a", gosimnet.ISOLATE)
		b.RepairCircuit("a", true, false, false)
		b.RepairHost("b", true, true, false, true)
		s.SubmitBatch(b)
		noError(t, b.Err())
		wantHeard(t, ba, "withheld")
		if c := b.Snapshot().Peermap["c"]; !c.Poweroff || c.ServerState != gosimnet.FAULTY {
			t.Errorf("the snapshot in the middle of the batch shows\n%v", c)
		}
		if text := s.GetSimnetSnapshot().String(); !strings.Contains(text, "all healthy") {
			t.Error(text)
		}
	})
}

func TestBatchIsCheckedWhenItsInstantComes(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		b := s.NewSimnetBatch(time.Now().Add(time.Second), false)
		b.AlterHost("newcomer", gosimnet.ISOLATE)
		s.SubmitBatch(b)
		time.Sleep(time.Millisecond)
		s.Host("newcomer")
		<-b.Done()
		noError(t, b.Err())
		wantState(t, s.Host("newcomer"), gosimnet.ISOLATED)
	})
}

func TestBatchIsSubmittedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		b := s.NewSimnetBatch(time.Now().Add(time.Second), false)
		b.AlterHost("a", gosimnet.ISOLATE)
		s.SubmitBatch(b)
		s.SubmitBatch(b)
		<-b.Done()
		noError(t, s.AllHealthy(true, false))
		s.SubmitBatch(b)
		time.Sleep(time.Minute)
		wantState(t, s.Host("a"), gosimnet.HEALTHY)
		noError(t, b.Err())
	})
}

func TestBatchOfAnotherNetwork(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		other := threeHosts(t, nil)
		b := other.NewSimnetBatch(time.Time{}, true)
		b.AlterHost("a", gosimnet.ISOLATE)
		s.SubmitBatch(b)
		if !finished(b) || b.Err() == nil || !strings.Contains(b.Err().Error(), "not made by this network") {
			t.Errorf("the batch of another network: %v", b.Err())
		}
		wantState(t, s.Host("a"), gosimnet.HEALTHY)
		wantState(t, other.Host("a"), gosimnet.HEALTHY)
	})
}

func TestCloseEndsBatches(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		waiting, late := s.NewSimnetBatch(time.Now().Add(time.Hour), false), s.NewSimnetBatch(time.Time{}, true)
		waiting.AlterHost("a", gosimnet.ISOLATE)
		s.SubmitBatch(waiting)
		time.Sleep(time.Second)
		s.Close()
		late.AlterHost("a", gosimnet.ISOLATE)
		s.SubmitBatch(late)
		s.SubmitBatch(late)
		for name, b := range map[string]*gosimnet.SimnetBatch{"waiting": waiting, "late": late} {
			<-b.Done()
			if !errors.Is(b.Err(), net.ErrClosed) {
				t.Errorf("the %s batch: %v", name, b.Err())
			}
		}
	})
}

func TestAFaultByBatchGovernsWhatIsSentAtItsInstant(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		at := time.Now().Truncate(time.Second).Add(time.Second)
		on, off := s.NewSimnetBatch(at, false), s.NewSimnetBatch(at.Add(ms), false)
		on.FaultHost("a", drop(1), false)
		off.FaultHost("a", drop(0), false)
		s.SubmitBatch(off)
		s.SubmitBatch(on)
		time.Sleep(time.Until(at))
		say(t, ab, "lost")
		time.Sleep(ms)
		say(t, ab, "comes")
		wantHeard(t, ba, "comes")
	})
}
