package referee_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet/integration/referee"
)

// breaches fails the test unless these are the promises that were broken.
func breaches(t *testing.T, r *referee.Referee, nodes []string, want ...string) {
	t.Helper()
	if got := r.Breaches(nodes...); !slices.Equal(got, want) {
		t.Errorf("broken promises %q, want %q", got, want)
	}
}

func TestTwoLeadersInATermAreABreach(t *testing.T) {
	r := referee.New()
	r.Elected("a", 1)
	r.Elected("b", 2)
	r.Elected("b", 2)
	breaches(t, r, nil)
	r.Elected("c", 2)
	breaches(t, r, nil, "b and c both lead in term 2")
}

func TestTwoEntriesAtAnIndexAreABreach(t *testing.T) {
	r := referee.New()
	r.Started("a")
	r.Started("b")
	r.Applied("a", 1, "x")
	r.Applied("b", 1, "x")
	breaches(t, r, nil)
	r.Applied("b", 2, "y")
	r.Applied("a", 2, "z")
	breaches(t, r, nil, `a applies "z" at 2, where "y" was applied before`)
}

// A node that starts anew has to apply again what it was promised to hold.
func TestALostPromiseIsABreach(t *testing.T) {
	r := referee.New()
	r.Started("a")
	r.Applied("a", 1, "x")
	r.Promised("a", 1, "x")
	breaches(t, r, []string{"a"})
	r.Started("a")
	breaches(t, r, []string{"a"}, `a has "" at 1, where a promised "x"`)
	r.Applied("a", 1, "x")
	breaches(t, r, []string{"a"})
}

func TestElectionsAreToldOnceAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, start := referee.New(), time.Now()
		r.Elected("a", 1)
		time.AfterFunc(time.Second, func() { r.Elected("b", 2) })
		for _, want := range []referee.Election{{Node: "a", Term: 1, Time: start}, {Node: "b", Term: 2, Time: start.Add(time.Second)}} {
			if e, ok := r.NextElection(time.Minute); !ok || e != want {
				t.Errorf("election %+v, %v, want %+v", e, ok, want)
			}
		}
		if e, ok := r.NextElection(time.Minute); ok || time.Since(start) != time.Second+time.Minute {
			t.Errorf("election %+v after %v, want none for a minute", e, time.Since(start))
		}
	})
}
