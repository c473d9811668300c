package gosimnet_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

func TestWeatherIsShownInSnapshotsAndTraces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, nil)
		s.Host("a")
		s.Host("b")
		var w gosimnet.Weather
		w.Clogs.Every, w.Clogs.Last = time.Hour, time.Minute
		for _, w := range []gosimnet.Weather{w, {}} {
			if err := s.SetWeather(w); err != nil {
				t.Fatal(err)
			}
			shown := ""
			if w.Clogs.Every > 0 {
				shown = "clogs every 1h0m0s for 1m0s"
			}
			snap := s.GetSimnetSnapshot()
			if snap.Weather != shown {
				t.Errorf("the snapshot's Weather is %q, want %q", snap.Weather, shown)
			}
			if got := strings.Contains(snap.LongString(), "weather: "+w.String()); got != (shown != "") {
				t.Errorf("with %q the snapshot says\n%s", w, snap.LongString())
			}
		}
		var traced []string
		for e := range s.Trace() {
			traced = append(traced, e.Kind+" "+e.Cause)
		}
		if got, want := strings.Join(traced, ", "), "fault weather: clogs every 1h0m0s for 1m0s, repair weather: calm"; got != want {
			t.Errorf("the trace has %q, want %q", got, want)
		}
	})
}

// What a swarm drew is to be seen in the report of a failure, which may come when all has been healed.
func TestSnapshotsRememberWhatWasSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, &gosimnet.SimNetConfig{TraceLimit: -1})
		s.Host("a")
		s.Host("b")
		link, weather := gosimnet.Swarm(3, "a", "b")
		must(t, s.SetLink("", "a", link))
		time.Sleep(time.Second)
		must(t, s.SetWeather(weather))
		s.Heal()
		snap := s.GetSimnetSnapshot()
		want := []string{"at 00:00:00.000000000: link *→a: " + link.String(), "at 00:00:01.000000000: weather: " + weather.String()}
		if !slices.Equal(snap.Set, want) {
			t.Errorf("set was %q, want %q", snap.Set, want)
		}
		for _, w := range want {
			if text := snap.LongString(); !strings.Contains(text, "  set "+w+"\n") {
				t.Errorf("no %q in\n%s", w, text)
			}
		}
		for range 20 {
			must(t, s.SetLink("a", "b", gosimnet.LinkConfig{}))
		}
		if n := len(s.GetSimnetSnapshot().Set); n != 16 {
			t.Errorf("%d are remembered", n)
		}
	})
}
