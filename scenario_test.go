package gosimnet_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// takes measures how long a message takes from one end of a circuit to the other.
func takes(t *testing.T, from, to net.Conn) time.Duration {
	t.Helper()
	start := time.Now()
	say(t, from, "x")
	to.SetReadDeadline(time.Time{})
	if _, err := to.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}

func TestScenarioChangesLatenciesWhileRunning(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		noError(t, s.SetLink("a", "c", gosimnet.LinkConfig{Latency: gosimnet.Constant(70 * ms)}))
		ab, ba := openCircuit(t, s, "a", "b")
		ac, ca := openCircuit(t, s, "a", "c")
		say(t, ab, "under way")
		time.Sleep(4 * ms)
		start := time.Now()
		noError(t, s.SetScenario(gosimnet.Scenario{Num: 7, MinHop: 30 * ms, MaxHop: 30 * ms}))
		ba.Read(make([]byte, 9))
		if took := time.Since(start); !about(took, 6*ms) {
			t.Errorf("a message that was under way took %v more", took)
		}
		if took := takes(t, ab, ba); !about(took, 30*ms) {
			t.Errorf("a message took %v", took)
		}
		if took := takes(t, ac, ca); !about(took, 70*ms) {
			t.Errorf("over a link with a latency of its own a message took %v", took)
		}
		noError(t, s.SetScenario(gosimnet.Scenario{Num: 8}))
		if took := takes(t, ab, ba); !about(took, 30*ms) {
			t.Errorf("after a scenario without hops a message took %v", took)
		}
		noError(t, s.SetScenario(gosimnet.Scenario{MinHop: ms, MaxHop: 3 * ms}))
		if took := takes(t, ab, ba); took < ms || took > 3*ms+time.Microsecond {
			t.Errorf("a message took %v, want 1 to 3 ms", took)
		}
	})
}

func TestScenarioGovernsWhatIsSentAtItsInstant(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		for _, hop := range []time.Duration{2 * ms, 40 * ms} {
			start := time.Now()
			say(t, ab, "x")
			noError(t, s.SetScenario(gosimnet.Scenario{MinHop: hop, MaxHop: hop}))
			ba.Read(make([]byte, 1))
			if took := time.Since(start); !about(took, hop) {
				t.Errorf("the message took %v, want %v", took, hop)
			}
		}
	})
}

func TestTickRoundsArrivalsUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		noError(t, s.SetScenario(gosimnet.Scenario{Tick: 25 * ms, MinHop: 10 * ms, MaxHop: 10 * ms}))
		origin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		for range 5 {
			sent := time.Since(origin)
			takes(t, ab, ba)
			want := (sent + 10*ms + 25*ms - 1) / (25 * ms) * (25 * ms)
			if at := time.Since(origin); !about(at, want) {
				t.Errorf("a message sent at %v arrived at %v, want %v", sent, at, want)
			}
			time.Sleep(7 * ms)
		}
		noError(t, s.SetScenario(gosimnet.Scenario{MinHop: 10 * ms, MaxHop: 10 * ms}))
		if took := takes(t, ab, ba); !about(took, 10*ms) {
			t.Errorf("without a tick a message took %v", took)
		}
	})
}

// fatesOf is which of 64 messages come through a coin.
func fatesOf(t *testing.T, seed byte) (fates string) {
	synctest.Test(t, func(t *testing.T) {
		s := threeHosts(t, nil)
		ab, ba := openCircuit(t, s, "a", "b")
		noError(t, s.FaultHost("a", drop(0.5), false))
		noError(t, s.SetScenario(gosimnet.Scenario{Seed: [32]byte{17: seed}}))
		say(t, ab, count(1, 64)...)
		fates = strings.Join(heard(t, ba, time.Second), " ")
	})
	return fates
}

func TestScenarioChangesTheSeed(t *testing.T) {
	one := fatesOf(t, 1)
	if again := fatesOf(t, 1); again != one {
		t.Errorf("the same seed gave\n%s and\n%s", one, again)
	}
	if other := fatesOf(t, 2); other == one {
		t.Errorf("two seeds gave %s", one)
	}
}

func TestExistingConnectionsLiveOnInANewScenario(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		client, server := openStream(t, s, "a", "b", ":80")
		for i := range 20 {
			say(t, client, "0123456789")
			noError(t, s.SetScenario(gosimnet.Scenario{Seed: [32]byte{byte(i)}, Tick: time.Duration(i) * ms, MinHop: time.Duration(i) * ms, MaxHop: 50 * ms}))
			time.Sleep(ms)
		}
		if got := strings.Join(heard(t, server, 10*time.Second), ""); got != strings.Repeat("0123456789", 20) {
			t.Errorf("%d of 200 bytes came", len(got))
		}
	})
}

func TestImpossibleScenarios(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		before := fmt.Sprint(s.GetSimnetSnapshot().ScenarioMaxHop)
		for says, sc := range map[string]gosimnet.Scenario{
			"Tick":   {Tick: -1},
			"MinHop": {MinHop: -1},
			"MaxHop": {MaxHop: -1},
			"below":  {MinHop: 2, MaxHop: 1},

			"MinHop is 8761h": {MinHop: 8761 * time.Hour},
			"MaxHop is 8761h": {MaxHop: 8761 * time.Hour},
			"Tick is 8761h":   {Tick: 8761 * time.Hour},
		} {
			if err := s.SetScenario(sc); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%+v: %v", sc, err)
			}
		}
		if after := fmt.Sprint(s.GetSimnetSnapshot().ScenarioMaxHop); after != before {
			t.Errorf("an impossible scenario changed MaxHop to %s", after)
		}
		s.Close()
		if err := s.SetScenario(gosimnet.Scenario{}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("SetScenario after Close: %v", err)
		}
	})
}

func TestScenarioIsShown(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		noError(t, s.SetScenario(gosimnet.Scenario{Num: 9, Seed: [32]byte{5}, Tick: 1, MinHop: 2, MaxHop: 3}))
		z := s.GetSimnetSnapshot()
		if z.ScenarioNum != 9 || z.ScenarioSeed != [32]byte{5} || z.ScenarioTick != 1 || z.ScenarioMinHop != 2 || z.ScenarioMaxHop != 3 {
			t.Errorf("the snapshot shows %d %v %v %v %v", z.ScenarioNum, z.ScenarioSeed, z.ScenarioTick, z.ScenarioMinHop, z.ScenarioMaxHop)
		}
	})
}
