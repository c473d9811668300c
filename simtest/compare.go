package simtest

import (
	"fmt"
	"slices"

	"github.com/glycerine/gosimnet"
)

// checkedTrace is how many events are retained for the comparison of two runs.
const checkedTrace = 1 << 18

// compare says in what two runs differ, or "".
func compare(first, second *attempt) string {
	if first.hash == second.hash {
		return ""
	}
	return fmt.Sprintf("TraceHash of the first run:  %s\nTraceHash of the second run: %s\n%s",
		first.hash, second.hash, firstDifference(slices.Collect(first.net.Trace()), slices.Collect(second.net.Trace()), first.plan.cfg.TraceLimit))
}

// firstDifference shows the first event that differs, with the one before it. Traces as long as the limit have lost their beginnings.
func firstDifference(a, b []gosimnet.Event, limit int) string {
	if longest := max(len(a), len(b)); longest >= limit {
		return fmt.Sprintf("The first event that differs may be lost: only %d are retained. The config's TraceLimit sets how many are.", longest)
	}
	before := "(the beginning)"
	for n := range max(len(a), len(b)) {
		x, y := eventAt(a, n), eventAt(b, n)
		if x != y {
			return fmt.Sprintf("The first event that differs is number %d:\n  before: %s\n  first:  %s\n  second: %s\n"+
				"What makes runs differ is listed in the documentation of package gosimnet, under Time and determinism.", n+1, before, x, y)
		}
		before = x
	}
	return "All events are the same; what differs is payloads."
}

func eventAt(events []gosimnet.Event, n int) string {
	if n >= len(events) {
		return "(the end)"
	}
	return events[n].String()
}
