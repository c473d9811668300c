package gossip

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

// view is that one node believes another to be alive.
type view struct{ by, of string }

// census is who believes whom to be alive, and what the nodes write into their logs.
type census struct {
	mu      sync.Mutex
	views   map[view]bool
	changed time.Time // when one of the views was last changed
	deaths  []view    // whom somebody has believed dead
	lines   [][]byte
}

func newCensus() *census { return &census{views: map[view]bool{}} }

// believe notes that a node holds another to be alive, or dead.
func (c *census) believe(by, of string, alive bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = time.Now()
	if alive {
		c.views[view{by, of}] = true
		return
	}
	delete(c.views, view{by, of})
	c.deaths = append(c.deaths, view{by, of})
}

// Write takes a line of a log.
func (c *census) Write(line []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, bytes.Clone(line))
	return len(line), nil
}

// logged counts the lines in which a text occurs.
func (c *census) logged(text string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range c.lines {
		if bytes.Contains(line, []byte(text)) {
			n++
		}
	}
	return n
}

// count is the number of views, and when it last changed.
func (c *census) count() (views int, changed time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.views), c.changed
}

// lost counts the beliefs so far that somebody was dead.
func (c *census) lost() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.deaths)
}

// reaches waits until there are so many views, and says how long that took, to the nanosecond. It must not take
// longer than most.
func (c *census) reaches(t *testing.T, views int, most time.Duration) (took time.Duration) {
	t.Helper()
	start := time.Now()
	for time.Since(start) <= most+10*time.Millisecond {
		if n, changed := c.count(); n == views {
			return max(0, changed.Sub(start))
		}
		time.Sleep(10 * time.Millisecond)
	}
	n, _ := c.count()
	t.Fatalf("%d views after %v, want %d", n, most, views)
	return 0
}

// after counts the views in d from now. The result waits until then.
func (c *census) after(d time.Duration) (views func() int) {
	count := make(chan int, 1)
	time.AfterFunc(d, func() {
		n, _ := c.count()
		count <- n
	})
	return func() int { return <-count }
}

// stays fails the test unless all views remain as they are for so long.
func (c *census) stays(t *testing.T, d time.Duration) {
	t.Helper()
	before, lost := c.count()
	time.Sleep(d)
	if after, changed := c.count(); after != before || changed != lost {
		t.Errorf("%d views, %d after %v, want no change", before, after, d)
	}
}
