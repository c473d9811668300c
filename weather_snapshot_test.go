package gosimnet_test

import (
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
