package main

import (
	"regexp"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// library is the package whose time is looked for.
const library = "github.com/glycerine/gosimnet"

// step is a part of what is done for a message, and the functions that do it.
type step struct {
	name  string
	match *regexp.Regexp // nil: none in particular
}

// named is a step of functions whose names begin with what a pattern matches. White space in it means nothing, and
// "net:" is the library.
func named(name, pattern string) step {
	pattern = strings.Join(strings.Fields(pattern), "")
	return step{name, regexp.MustCompile("^(" + strings.ReplaceAll(pattern, "net:", regexp.QuoteMeta(library)+`\.`) + ")")}
}

// steps are those that a message takes, in order, and at the end what is none of them. A sample belongs to the step of
// the innermost function that any of them knows.
func steps() []step {
	return []step{
		named("entering and leaving a call: clock, lock", `
			net:\(\*(scheduler|Conn|PacketConn)\)\.(enter|reenter|leave|locked|catchUp|since|resume)$ | net:virtual$ |
			time\.Now$ | (internal/)?sync\.\(\*Mutex\)`),
		named("writing: buffer, segment, packet", `
			net:\(\*(Conn|PacketConn)\)\.([wW]rit|transmit|waitForRoom) | net:\(\*half\)\.(transmit|write|send|fill) |
			net:\(\*Simnet\)\.(send|newPacket) | net:\(\*scheduler\)\.(issue|want)$ | net:\(\*segments\) |
			net:\(\*packet\)\.needed`),
		named("admission: fate, time of arrival", `
			net:\(\*scheduler\)\.(admit|canonical) | net:\(\*packet\)\.admit | net:\(\*(flow|link|wire)\) |
			net:\(\*(issued|priority)\) | net:uniform | net:constant | net:mix`),
		named("queue of what is to come", `net:\(\*(agenda|event)\) | net:event\. | net:agenda\.`),
		named("choosing who makes the next step, and when", `
			net:\(\*scheduler\)\.(arm|next|clear|after|exactly|fired)$ | net:beneficiary | net:\(\*packet\)\.beneficiary`),
		named("waiting: channels", `
			net:\(\*(scheduler|deadline)\)\.(await|waiter|newWaiter|done) | net:\(\*waiter\)\.(quiet|received) | net:turn |
			net:\(\*waitlist\) | net:waitlist |
			runtime\.(selectgo|sel[lu]|selpark|chanrecv|gopark|acquireSudog|releaseSudog)`),
		named("timers: set, sorted, fired", `
			runtime\.(\(\*timers?\)|resetTimer|blockTimerChan|unblockTimerChan|sendTime) | time\.(\(\*Timer\)|sendTime)`),
		named("the bubble: who is at rest, time moves", `
			runtime\.(\(\*synctestBubble\)|synctest) | internal/synctest`),
		named("switching goroutines", `
			runtime\.(park_m|schedule|findRunnable|execute|goready|ready|wakep|mcall|gogo|casgstatus|gcstopm|stopm|startm|
			goexit0|newproc|runq|globrunq|resetspinning|notewakeup|futex|goschedImpl|gopreempt_m|asyncPreempt|checkTimers|
			injectglist|mPark|mstart|netpoll|usleep|osyield|sysmon|handoffp|procyield)`),
		named("copying bytes", `runtime\.memmove$`),
		named("the step: delivery, waking", `
			net:\(\*scheduler\)\.(step|wakeOne|wakeNow|wakeNext|run)$ | net:\(\*packet\)\.(fire|arriv|deliver|receipt) |
			net:\(\*half\)\. | net:\(\*waiter\)\.wake | net:\(\*PacketConn\)\.(enqueue|knows) |
			net:\(\*Simnet\)\.(inspected|release|estimate) | net:beat`),
		named("trace", `net:\(\*tracer\) | net:\(\*Simnet\)\.trace`),
		named("reading", `net:\(\*(Conn|PacketConn)\)\.([rR]ead|receive) | net:\(\*byteQueue\)`),
		named("memory: allocation, collection, stacks", `
			runtime\.(mallocgc|newobject|makeslice|growslice|gc|bgsweep|bgscavenge|newstack|copystack|morestack|sweep|
			\(\*mspan|\(\*mcache|\(\*mheap|scan|wbBuf)`),
		named("opening, closing, names", `
			net:\(\*(dial|Dialer|Listener|Host)\) | net:\(\*Conn\)\.(Close|settled) | net:\(\*Simnet\)\.newStream`),
		{name: rest},
		{name: own},
		{name: other},
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
