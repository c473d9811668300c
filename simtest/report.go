package simtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"unicode"

	"github.com/glycerine/gosimnet"
)

// How much of a run's end the report in the test's log shows.
const (
	shownFaults   = 20
	shownEvents   = 40
	shownSnapshot = 300 // lines
)

// report tells how the run failed, once.
func (a *attempt) report() {
	if a.told || a.net == nil {
		return
	}
	a.told = true
	a.mu.Lock()
	snap := a.snap
	a.mu.Unlock()
	if snap == nil {
		snap = a.net.GetSimnetSnapshot()
	}
	log := a.outer
	log.Log(a.text(snap, shownSnapshot))
	if err := a.save(snap); err != nil {
		log.Errorf("simtest: artifacts: %v", err)
	}
}

// text is the report. The snapshot is cut to so many lines; 0 leaves it out.
func (a *attempt) text(snap *gosimnet.SimnetSnapshot, lines int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "simtest: %s failed with seed %d. To run it again:\n\n", a.plan.name, a.seed)
	fmt.Fprintf(&b, "\t%s\n", a.plan.again(a.seed))
	if len(snap.Faults) > 0 {
		list(&b, "faults", snap.Faults, shownFaults)
	} else {
		b.WriteString("\nThere were no faults.\n")
	}
	if lines > 0 {
		fmt.Fprintf(&b, "\nThe network when the run failed:\n\n%s", firstLines(snap.LongString(), lines))
	}
	list(&b, "events", snap.Events, shownEvents)
	return b.String()
}

// list shows the last events of a list.
func list(b *strings.Builder, what string, events []gosimnet.Event, most int) {
	if len(events) == 0 {
		fmt.Fprintf(b, "\nNo %s are retained.\n", what)
		return
	}
	shown := events[max(0, len(events)-most):]
	fmt.Fprintf(b, "\nThe last %s (%d of %d retained):\n\n", what, len(shown), len(events))
	for _, e := range shown {
		fmt.Fprintf(b, "  %s\n", e)
	}
}

// firstLines cuts a text.
func firstLines(s string, most int) string {
	lines := strings.SplitAfter(s, "\n")
	if len(lines) <= most {
		return s
	}
	return strings.Join(lines[:most], "") + fmt.Sprintf("  and %d lines more, which SIMNET_ARTIFACTS would keep\n", len(lines)-most)
}

// again is the line that runs a seed of the test again.
func (p *plan) again(seed uint64) string {
	words := append([]string{fmt.Sprintf("SIMNET_SEED=%d", seed)}, p.repeat...)
	words = append(words, "go test -run", quoted(pattern(p.name)))
	if path := packagePath(); path != "" {
		words = append(words, path)
	}
	return strings.Join(words, " ")
}

// pattern is the regular expression that matches one test.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, s := range parts {
		parts[i] = "^" + regexp.QuoteMeta(s) + "$"
	}
	return strings.Join(parts, "/")
}

// quoted is a word for the shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// packagePath is the import path of the package under test, or "" if it cannot be known.
func packagePath() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || strings.HasPrefix(info.Path, "command-line-arguments") {
		return ""
	}
	path, _ := strings.CutSuffix(info.Path, ".test")
	return path
}

// save writes the artifacts.
func (a *attempt) save(snap *gosimnet.SimnetSnapshot) error {
	dir := a.plan.artifacts
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var trace strings.Builder
	for e := range a.net.Trace() {
		fmt.Fprintln(&trace, e)
	}
	base := filepath.Join(dir, fileName(a.plan.name, a.seed))
	for _, f := range []struct{ what, text string }{
		{"report", a.text(snap, 0)}, {"snapshot", snap.LongString()}, {"trace", trace.String()},
	} {
		if err := os.WriteFile(base+"."+f.what+".txt", []byte(f.text), 0o644); err != nil {
			return err
		}
	}
	a.outer.Logf("simtest: artifacts are in %s.{report,snapshot,trace}.txt", base)
	return nil
}

// fileName is a name for files about a test and a seed.
func fileName(test string, seed uint64) string {
	safe := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.=", r) {
			return r
		}
		return '_'
	}, test)
	return fmt.Sprintf("%s-seed%d", safe, seed)
}
