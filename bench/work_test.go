package bench

import (
	"strings"
	"testing"
)

// Every contender does every work, a little of it: nothing is lost, nobody waits for ever, and something is measured.
func TestWorks(t *testing.T) {
	for _, w := range Works() {
		for _, c := range w.Contenders {
			t.Run(w.Name+"/"+c.Name, func(t *testing.T) {
				if raced && strings.Contains(c.Name, "0000 ") {
					t.Skip("the race detector takes its time over ten thousand")
				}
				times := max(2, w.Times/1000)
				if w.Kept {
					times = 1000 // the memory of a few is less than what else comes and goes
				}
				s := c.Run(times)
				if s.Ops < 1 || s.CPU <= 0 || s.Wall <= 0 {
					t.Errorf("measured %+v", s)
				}
				if v := w.Shown.Of(s); v <= 0 {
					t.Errorf("%s is %v", w.Shown.Name, v)
				}
				t.Logf("%v", s)
			})
		}
	}
}
