package main

import (
	"regexp"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// step is a part of what is done for a message, and the functions that do it.
type step struct {
	name  string
	match *regexp.Regexp
}

// library is the package whose time is looked for.
const library = "github.com/glycerine/gosimnet"

// steps are those that a message takes, in order, and at the end what is none of them. A sample belongs to the step of the innermost function that any of them knows.
func steps() []step {
	ours := func(s string) *regexp.Regexp {
		return regexp.MustCompile(`^` + regexp.QuoteMeta(library) + `\.(` + s + `)`)
	}
	return []step{
		{"entering and leaving a call: clock, lock", regexp.MustCompile(
			`^github\.com/glycerine/gosimnet\.(\(\*(scheduler|Conn|PacketConn)\)\.(enter|reenter|leave|locked|catchUp|since|resume)|virtual)$|^time\.Now$|^(internal/)?sync\.\(\*Mutex\)`)},
		{"writing: buffer, segment, packet", ours(`\(\*(Conn|PacketConn)\)\.([wW]rit|transmit|waitForRoom)|\(\*half\)\.(transmit|write|send|fill)|\(\*Simnet\)\.(send|newPacket)|\(\*scheduler\)\.(issue|want)$|\(\*segments\)|\(\*packet\)\.needed`)},
		{"admission: fate, time of arrival", ours(`\(\*scheduler\)\.admit|\(\*packet\)\.admit|\(\*(flow|link|wire)\)|issued|uniform|constant|mix`)},
		{"queue of what is to come", ours(`\(\*(agenda|event)\)|event\.|agenda\.`)},
		{"choosing who makes the next step, and when", ours(`\(\*scheduler\)\.(arm|next|clear|after|exactly)$|beneficiary`)},
		{"waiting: select", regexp.MustCompile(
			`^github\.com/glycerine/gosimnet\.(\(\*(scheduler|deadline)\)\.(await|waiter|newWaiter|done)|\(\*waiter\)\.(compare|quiet)|\(\*?waitlist\))|^runtime\.(selectgo|sel[lu]|selpark|chanrecv|gopark|acquireSudog|releaseSudog)`)},
		{"timers: set, sorted, fired", regexp.MustCompile(`^runtime\.(\(\*timers?\)|resetTimer|blockTimerChan|unblockTimerChan)|^time\.\(\*Timer\)|^runtime\.sendTime|^time\.sendTime`)},
		{"the bubble: who is at rest, time moves", regexp.MustCompile(`^runtime\.(\(\*synctestBubble\)|synctest)|^internal/synctest`)},
		{"switching goroutines", regexp.MustCompile(
			`^runtime\.(park_m|schedule|findRunnable|execute|goready|ready|wakep|mcall|gogo|casgstatus|gcstopm|stopm|startm|goexit0|newproc|runq|globrunq|resetspinning|notewakeup|futex|goschedImpl|gopreempt_m|asyncPreempt|checkTimers|injectglist|mPark|mstart|netpoll|usleep|osyield|sysmon|handoffp|procyield)`)},
		{"copying bytes", regexp.MustCompile(`^runtime\.memmove$`)},
		{"the step: delivery, waking", ours(`\(\*scheduler\)\.(step|wakeOne|wakeNow|wakeNext|run)$|\(\*packet\)\.(fire|arriv|deliver|receipt)|\(\*half\)\.|\(\*waiter\)\.wake|\(\*PacketConn\)\.(enqueue|knows)|\(\*Simnet\)\.(inspected|release|estimate)|beat`)},
		{"trace", ours(`\(\*tracer\)|\(\*Simnet\)\.trace`)},
		{"reading", ours(`\(\*(Conn|PacketConn)\)\.([rR]ead|receive)|\(\*byteQueue\)`)},
		{"memory: allocation, collection, stacks", regexp.MustCompile(`^runtime\.(mallocgc|newobject|makeslice|growslice|gc|bgsweep|bgscavenge|newstack|copystack|morestack|sweep|\(\*mspan|\(\*mcache|\(\*mheap|scan|wbBuf)`)},
		{"opening, closing, names", ours(`\(\*(dial|Dialer|Listener|Host)\)|\(\*Conn\)\.(Close|settled)|\(\*Simnet\)\.newStream`)},
		{rest, nil},
		{own, nil},
		{other, nil},
	}
}

// What no rule knows is one of these.
const (
	rest  = "the rest of the network"
	own   = "the caller's own loop"
	other = "other"
)

// share divides a time among the steps, as the profile's samples are.
func share(p *profile.Profile, total time.Duration) map[string]time.Duration {
	all := steps()
	counts, sum := make(map[string]int64), int64(0)
	for _, s := range p.Sample {
		counts[stepOf(s, all)] += s.Value[0]
		sum += s.Value[0]
	}
	shares := make(map[string]time.Duration)
	for name, n := range counts {
		shares[name] = time.Duration(float64(total) * float64(n) / float64(sum))
	}
	return shares
}

// stepOf is the step that a sample belongs to.
func stepOf(s *profile.Sample, all []step) string {
	kind := other
	for _, l := range s.Location { // the innermost first
		for _, line := range l.Line {
			if line.Function == nil {
				continue
			}
			name := line.Function.Name
			for _, st := range all {
				if st.match != nil && st.match.MatchString(name) {
					return st.name
				}
			}
			if kind == other {
				kind = ownerOf(name)
			}
		}
	}
	return kind
}

// ownerOf tells whose a function is that no rule knows.
func ownerOf(function string) string {
	switch {
	case strings.HasPrefix(function, library+"/bench"):
		return own
	case strings.HasPrefix(function, library+"."):
		return rest
	}
	return other
}
