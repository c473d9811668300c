package simtest

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// glance is how often, by the wall's clock, a run is looked at for a standstill.
const glance = 3 * time.Second

// watch looks, from outside of the bubbles, for one in which no time passes any more: synctest reports a deadlock only
// if everybody in it waits for channels of the bubble and the like. A goroutine that waits for a mutex holds the clock for good if nobody else moves: watch ends the process, as
// the time-out of a test does, for nothing outside of a bubble can wake what is inside. One that waits for a channel from outside holds it until somebody
// outside moves: watch says so, once. What it returns ends the watch.
func watch(t *testing.T) (end func()) {
	over := make(chan struct{})
	go func() {
		tick := time.NewTicker(glance)
		defer tick.Stop()
		before, told := "", false
		for {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			now, forGood := standstill(stacks())
			if now != "" && now == before {
				text := fmt.Sprintf("simtest: %s: %s", t.Name(), now)
				switch {
				case forGood:
					panic(text)
				case !told:
					t.Log(text)
					told = true
				}
			}
			before = now
		}
	}()
	return func() { close(over) }
}

// stacks are those of all goroutines.
func stacks() string {
	for size := 1 << 20; ; size *= 2 {
		b := make([]byte, size)
		if n := runtime.Stack(b, true); n < size {
			return string(b[:n])
		}
	}
}

// goroutineHeader is the line above a goroutine's stack: its number, what it does, and its bubble.
var goroutineHeader = regexp.MustCompile(`^goroutine (\d+) \[([^,\]]+).*, synctest bubble (\d+)\]:`)

// bubble is what the goroutines of one do.
type bubble struct {
	moves   bool     // somebody runs, or waits for the system
	locked  []string // the stacks of those who wait for a mutex
	outside []string // of those who wait for a channel from outside
	waiting []string // of those who wait in a call on a connection
	asleep  []string
}

// standstill describes a bubble that stands still, if there is one: somebody waits for a mutex or for a channel from outside, and nobody moves. It
// does so for good unless the world outside may help.
func standstill(stacks string) (text string, forGood bool) {
	bubbles := make(map[string]*bubble)
	var order []*bubble
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		m := goroutineHeader.FindStringSubmatch(stack)
		if m == nil {
			continue
		}
		b := bubbles[m[3]]
		if b == nil {
			b = &bubble{}
			bubbles[m[3]] = b
			order = append(order, b)
		}
		b.add(m[2], stack)
	}
	for _, b := range order {
		if !b.moves && len(b.locked)+len(b.outside) > 0 {
			return b.String(), len(b.outside) == 0
		}
	}
	return "", false
}

// add adds a goroutine in a state.
func (b *bubble) add(state, stack string) {
	switch {
	case strings.HasPrefix(state, "sync.Mutex.") || strings.HasPrefix(state, "sync.RWMutex."):
		b.locked = append(b.locked, withoutAge(stack))
	case state == "chan receive" || state == "chan send" || state == "select":
		b.outside = append(b.outside, withoutAge(stack))
	case !strings.HasSuffix(state, "(durable)"):
		b.moves = true
	case strings.Contains(stack, "gosimnet.(*scheduler).await"):
		b.waiting = append(b.waiting, withoutAge(stack))
	case strings.HasPrefix(state, "sleep"):
		b.asleep = append(b.asleep, withoutAge(stack))
	}
}

// age is how long a goroutine has waited, which changes while nothing else does.
var age = regexp.MustCompile(`, \d+ minutes`)

func withoutAge(stack string) string { return age.ReplaceAllString(stack, "") }

// String says what holds the bubble's clock, and what may help.
func (b *bubble) String() string {
	if len(b.outside) > 0 {
		return fmt.Sprintf(`virtual time stands still: %d goroutines wait for a channel that was made outside of the bubble, and while one does no time passes in it.
Such a channel is one of a package's variables, or of a goroutine that serves the whole process, such as a look-up of package net.

%s
`, len(b.outside), strings.Join(slices.Concat(b.outside, b.locked), "\n\n"))
	}
	return fmt.Sprintf(`virtual time stands still: %d goroutines wait for a mutex, and while one does no time passes in a bubble.
Whoever holds the mutex waits for time to pass; those who call the network or sleep are listed first. If that is a Write
that waits for room, a SimNetConfig.SendBuffer larger than the burst lets it return at once. If it is a dial or a sleep, nothing does:
test such software outside of bubbles, by the wall clock.

%s
`, len(b.locked), strings.Join(slices.Concat(b.waiting, b.asleep, b.locked), "\n\n"))
}
