package simtest_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/simtest"
)

// scenario runs one in a process of its own and returns its output. Settings are "SIMNET_SEED=7" or flags.
func scenario(t *testing.T, name string, settings ...string) (output string, passed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestScenario$", "-test.timeout=60s")
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "SIMNET_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, scenarioSwitch+"="+name)
	for _, s := range settings {
		if strings.HasPrefix(s, "-") {
			cmd.Args = append(cmd.Args, s)
		} else {
			cmd.Env = append(cmd.Env, s)
		}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// fails runs a scenario that is to fail with all of some words in its output, in this order.
func fails(t *testing.T, name string, words []string, settings ...string) string {
	t.Helper()
	output, passed := scenario(t, name, settings...)
	if passed {
		t.Fatalf("%q passed, and should not:\n%s", name, output)
	}
	contains(t, output, words...)
	return output
}

func contains(t *testing.T, output string, words ...string) {
	t.Helper()
	rest := output
	for _, w := range words {
		i := strings.Index(rest, w)
		if i < 0 {
			t.Fatalf("no %q, or not in its place, in\n%s", w, output)
		}
		rest = rest[i+len(w):]
	}
}

func TestFailureIsReported(t *testing.T) {
	output := fails(t, "fails", []string{
		"the dial failed with seed 7",
		"TestScenario/fails failed with seed 7. To run it again:",
		"SIMNET_SEED=7 go test -run '^TestScenario$/^fails$' github.com/glycerine/gosimnet/simtest\n",
		"The last faults (1 of ",
		"fault   (DropPackets b→a)",
		"The network when the run failed:",
		"partition: DropPackets b→a",
		"listens on tcp [::]:80",
		"The last events (",
		"SYN #0 0 B",
		"SYN/ACK #0 0 B (partition)",
		"--- PASS: TestScenario/next",
	}, "SIMNET_SEED=7", "-test.v")
	if n := strings.Count(output, "To run it again"); n != 1 {
		t.Errorf("%d reports, want one:\n%s", n, output)
	}
}

func TestReportedLineRunsTheSeedAgain(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"fails", "it's odd (really)"} {
		output := fails(t, name, nil, "SIMNET_SEED=0x1f", "SIMNET_RUNS=2", "SIMNET_CHECK=1")
		line := regexp.MustCompile(`(?m)^\s*(SIMNET_SEED=31 SIMNET_RUNS=1 SIMNET_CHECK=1 go test .*)$`).FindStringSubmatch(output)
		if line == nil {
			t.Fatalf("no line to run it again in\n%s", output)
		}
		cmd := exec.Command("sh", "-c", line[1])
		cmd.Env = append(os.Environ(), scenarioSwitch+"="+name)
		again, err := cmd.CombinedOutput()
		if err == nil {
			t.Errorf("%s\npassed:\n%s", line[1], again)
		}
		contains(t, string(again), "failed with seed 31", line[1])
	}
}

func TestFatalIsReported(t *testing.T) {
	fails(t, "fatal", []string{"stop here", "failed with seed 11", "SIMNET_SEED=11 ", "partition: DropPackets b→a"})
}

func TestPanicIsReportedAndOtherTestsRun(t *testing.T) {
	fails(t, "panics", []string{
		"panic: out of cheese", "scenarios_test.go",
		"failed with seed 12", "partition: DropPackets b→a",
		"the next test has run",
	}, "-test.v")
}

func TestFailureOfTheOuterTestIsReported(t *testing.T) {
	fails(t, "fails by the outer test", []string{"failed with seed 20"})
	if output := fails(t, "failed before", nil); strings.Contains(output, "To run it again") {
		t.Errorf("a report of a run that did not fail:\n%s", output)
	}
}

func TestFailureOfACleanupIsReported(t *testing.T) {
	output := fails(t, "cleanup fails", []string{"something is left", "failed with seed 13"})
	if strings.Contains(output, "too early") {
		t.Error("the network was closed before the cleanup of f ran")
	}
}

func TestFailureAfterTheEndIsReported(t *testing.T) {
	fails(t, "fails late", []string{"a second later", "failed with seed 14"})
}

func TestWaitingForEverIsReported(t *testing.T) {
	fails(t, "waits for ever", []string{
		"f has not ended after 876000h0m0s of virtual time",
		"Read was ended by: read tcp", "use of closed network connection",
		"failed with seed 15",
		"waiting: read a:49152 from b:80 since 20",
		"the next test has run",
	}, "-test.v")
}

func TestStandstillIsReported(t *testing.T) {
	output := fails(t, "stands still", []string{"panic: simtest: TestScenario/stands_still: virtual time stands still: 1 goroutines wait for a mutex",
		"SendBuffer", "gosimnet.(*Conn).Write", "time.Sleep", "sync.(*Mutex).Lock"})
	if strings.Contains(output, "test timed out") {
		t.Errorf("only the test's time-out ended it:\n%s", output)
	}
}

func TestWaitingForTheWorldOutsideIsTold(t *testing.T) {
	output, passed := scenario(t, "waits for the world", "-test.v")
	if !passed {
		t.Errorf("it failed, although what it waited for came:\n%s", output)
	}
	contains(t, output, "simtest: TestScenario/waits_for_the_world: virtual time stands still: 1 goroutines wait for a channel that was made outside of the bubble",
		"[select, synctest bubble", "scenarios_test.go")
	if n := strings.Count(output, "stands still"); n != 1 {
		t.Errorf("it was told %d times, want once:\n%s", n, output)
	}
}

func TestTimeoutIsReported(t *testing.T) {
	fails(t, "takes too long", []string{
		"f has not ended after 1h0m0s of virtual time",
		"Accept was ended after 1h0m0s",
		"deadlock: all goroutines in bubble are blocked", "What they wait for is not the network",
		"failed with seed 16",
		"accept waits since 0s",
	})
}

func TestOneReportOfAFailureAndADeadlock(t *testing.T) {
	output := fails(t, "fails and leaks", []string{"failed with seed 19", "panic: deadlock"})
	if n := strings.Count(output, "To run it again"); n != 1 {
		t.Errorf("%d reports, want one:\n%s", n, output)
	}
}

func TestLeakedGoroutineIsReported(t *testing.T) {
	fails(t, "leaks", []string{
		"deadlock: main bubble goroutine has exited but blocked goroutines remain", "End them before f returns", "must be started before Run",
		"failed with seed 17", "SIMNET_SEED=17 ", "DropPackets b→a",
		"panic: deadlock", "scenarios_test.go",
	})
}

func TestSkippedIsSkipped(t *testing.T) {
	output, passed := scenario(t, "skips", "-test.v")
	if !passed {
		t.Error("failed")
	}
	contains(t, output, "not today", "--- SKIP: TestScenario/skips")
}

func TestEachSeedIsASubtest(t *testing.T) {
	output := fails(t, "one seed of five", []string{
		"=== RUN   TestScenario/one_seed_of_five/seed=40",
		"=== RUN   TestScenario/one_seed_of_five/seed=44",
		"--- PASS: TestScenario/one_seed_of_five/seed=41",
		"--- FAIL: TestScenario/one_seed_of_five/seed=42",
		"--- PASS: TestScenario/one_seed_of_five/seed=43",
	}, "-test.v")
	contains(t, output, "SIMNET_SEED=42 go test -run '^TestScenario$/^one_seed_of_five$' github.com")
	if n := strings.Count(output, "To run it again"); n != 1 {
		t.Errorf("%d reports, want one:\n%s", n, output)
	}
}

func TestSeedFromOutsideIsTheOnlyOne(t *testing.T) {
	for _, setting := range []string{"SIMNET_SEED=42", "SIMNET_SEED=0x2A", "-simnet.seed=42", "-simnet.seed=0x2a"} {
		output := fails(t, "one seed of five", []string{"an unlucky seed", "failed with seed 42"}, setting, "-test.v")
		if strings.Contains(output, "seed=42") {
			t.Errorf("%s: a subtest for a single seed:\n%s", setting, output)
		}
	}
	if output, passed := scenario(t, "one seed of five", "SIMNET_SEED=41"); !passed {
		t.Errorf("seed 42 ran with SIMNET_SEED=41:\n%s", output)
	}
}

func TestNumberOfSeedsFromOutside(t *testing.T) {
	for _, settings := range [][]string{
		{"SIMNET_SEED=9", "SIMNET_RUNS=3"},
		{"-simnet.seed=9", "-simnet.runs=3"},
		{"-simnet.seed=9", "SIMNET_SEED=1", "-simnet.runs=3", "SIMNET_RUNS=1"},
	} {
		output, passed := scenario(t, "passes", append(settings, "-test.v")...)
		if !passed {
			t.Error(output)
		}
		contains(t, output, "ran with 9", "ran with 10", "ran with 11")
		if strings.Contains(output, "ran with 12") || strings.Contains(output, "ran with 0") {
			t.Errorf("%v: more than three seeds:\n%s", settings, output)
		}
	}
}

func TestImpossibleSettingsFail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]string{
		"SIMNET_SEED=seven":                `SIMNET_SEED="seven": want a seed`,
		"SIMNET_SEED=-1":                   `SIMNET_SEED="-1"`,
		"SIMNET_SEED=0x":                   `SIMNET_SEED="0x"`,
		"SIMNET_SEED=18446744073709551616": `SIMNET_SEED="18446744073709551616"`,
		"SIMNET_RUNS=0":                    `SIMNET_RUNS="0": want the number of seeds`,
		"SIMNET_RUNS=many":                 `SIMNET_RUNS="many"`,
		"SIMNET_CHECK=perhaps":             `SIMNET_CHECK="perhaps": want 1 or 0`,
		"SIMNET_ARTIFACTS=" + file:         `SIMNET_ARTIFACTS="` + file + `": want a directory`,
		"-simnet.seed=seven":               `invalid value "seven" for flag -simnet.seed`,
		"-simnet.runs=-3":                  `-simnet.runs="-3": want the number of seeds`,
		"-simnet.check=perhaps":            `invalid boolean value "perhaps" for -simnet.check`,
		"-simnet.artifacts=" + file:        `-simnet.artifacts="` + file + `": want a directory`,
	} {
		fails(t, "passes", []string{want}, setting)
	}
}

func TestImpossibleOptionsFail(t *testing.T) {
	fails(t, "config is impossible", []string{"SimNetConfig.MinHop is -1ns"})
	fails(t, "no seeds", []string{"WithSeeds(0): want 1 or more"})
	fails(t, "no time", []string{"WithTimeout(0s): want a positive duration"})
	fails(t, "no function", []string{"f is nil"})
}

func TestRunsThatDifferFail(t *testing.T) {
	fails(t, "differs", []string{
		"seed 18 ran differently the second time",
		"TraceHash of the first run:", "TraceHash of the second run:",
		"The first event that differs is number 7:",
		"before: 00:00:00.020000002 send    a:49152→b:80 ACK #1 0 B",
		"first:  00:00:00.020000002 send    a:49152→b:80 data #2 101 B",
		"second: 00:00:00.020000002 send    a:49152→b:80 data #2 102 B",
		"failed with seed 18",
	})
	if output, passed := scenario(t, "differs", "SIMNET_CHECK=0"); !passed {
		t.Errorf("compared although SIMNET_CHECK=0:\n%s", output)
	}
}

func TestDifferenceThatNoEventShows(t *testing.T) {
	fails(t, "differs in bytes", []string{"ran differently the second time", "All events are the same; what differs is payloads."})
	fails(t, "differs and keeps little", []string{"ran differently the second time", "only 3 are retained"})
}

func TestCheckFromOutsideRunsTwice(t *testing.T) {
	for setting, want := range map[string]int{"SIMNET_CHECK=1": 2, "-simnet.check": 2, "SIMNET_CHECK=0": 1} {
		output, passed := scenario(t, "passes", setting, "-test.v")
		if n := strings.Count(output, "ran with 0"); !passed || n != want {
			t.Errorf("%s: ran %d times, passed %v, want %d and true\n%s", setting, n, passed, want, output)
		}
	}
}

func TestArtifactsOfAFailure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "dir")
	output := fails(t, "fails", nil, "SIMNET_ARTIFACTS="+dir, "SIMNET_SEED=5")
	base := filepath.Join(dir, "TestScenario_fails-seed5.")
	contains(t, output, base)
	for what, words := range map[string][]string{
		"report":   {"failed with seed 5", "SIMNET_SEED=5 go test", "The last faults", "The last events"},
		"snapshot": {"simnet at 00:00:01", "seed 5", "partition: DropPackets b→a", "listens on"},
		"trace":    {"fault ", "send    a:49152→b:80 SYN #0", "deliver a:49152→b:80 SYN #0", "lost    b:80→a:49152 SYN/ACK #0 0 B (partition)"},
	} {
		text, err := os.ReadFile(base + what + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		contains(t, string(text), words...)
	}
}

func TestArtifactsThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	fails(t, "fails", []string{"failed with seed 0", "simtest: artifacts: mkdir " + file}, "SIMNET_ARTIFACTS="+filepath.Join(file, "sub"))
}

func TestNoArtifactsOfSuccess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	if output, passed := scenario(t, "passes", "SIMNET_ARTIFACTS="+dir); !passed {
		t.Fatal(output)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s: %v, want nothing", dir, err)
	}
}

// unset makes the options of a test count, whatever this process was told.
func unset(t *testing.T) {
	t.Helper()
	for _, variable := range []string{"SIMNET_SEED", "SIMNET_RUNS", "SIMNET_CHECK"} {
		t.Setenv(variable, "")
	}
}

func TestConfigIsCopied(t *testing.T) {
	unset(t)
	cfg := gosimnet.NewSimNetConfig()
	cfg.InitialSimnetScenario = 3
	cfg.Backlog = 7
	var seeds []uint64
	simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
		got := net.GetSimnetSnapshot().Cfg
		if got.Backlog != 7 {
			t.Errorf("Backlog is %d, want 7", got.Backlog)
		}
		seeds = append(seeds, got.Seed)
	}, simtest.WithConfig(cfg), simtest.WithSeeds(2), nil)
	if *cfg != (gosimnet.SimNetConfig{InitialSimnetScenario: 3, Backlog: 7}) {
		t.Errorf("Run changed the config: %+v", *cfg)
	}
	if !slices.Equal(seeds, []uint64{3, 4}) {
		t.Errorf("seeds %v, want 3 and 4", seeds)
	}
}

func TestSeedOfZeroIsASeed(t *testing.T) {
	unset(t)
	cfg := &gosimnet.SimNetConfig{InitialSimnetScenario: 3}
	simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
		if got := net.Seed(); got != 0 {
			t.Errorf("seed %d, want 0", got)
		}
	}, simtest.WithConfig(cfg), simtest.WithSeed(0))
}

func TestLingeringServerEndsCleanly(t *testing.T) {
	begin := time.Now()
	simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
		client := serve(t, net.Host("server"), net.Host("client"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/early": // an answer before the body is read makes the server linger for half a second
				http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			case "/stream": // until the connection ends
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
		}))
		stream, err := http.NewRequestWithContext(t.Context(), "GET", "http://server/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Do(stream); err != nil {
			t.Fatal(err)
		}
		resp, err := client.Post("http://server/early", "", io.LimitReader(endless{}, 16<<20))
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("status %d", resp.StatusCode)
		}
	}, simtest.WithSeeds(2))
	if real := time.Since(begin); real > 20*time.Second {
		t.Errorf("took %v of real time", real)
	}
}

// endless is a reader without end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestCleanupFindsTheNetworkOpen(t *testing.T) {
	var ended error
	simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
		l, err := net.Host("a").Listen("tcp", ":80")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ended = l.Close() })
		if _, err := net.Host("b").Dial("tcp", "a:80"); err != nil {
			t.Error(err)
		}
	})
	if ended != nil {
		t.Errorf("Close in a cleanup: %v", ended)
	}
}

func TestWhatHappensAtTheLastInstantComesBeforeTheEnd(t *testing.T) {
	var ended error
	simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
		listen(t, net.Host("b"))
		c, err := net.Host("a").Dial("tcp", "b:80")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range 1000 {
				runtime.Gosched()
			}
			_, ended = c.Write([]byte("a last word"))
		}()
	})
	if ended != nil {
		t.Errorf("Write while f returned: %v", ended)
	}
}

func TestGoroutinesMayLinger(t *testing.T) {
	ended := false
	simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
		go func() { time.Sleep(4 * time.Minute); ended = true }()
	})
	if !ended {
		t.Error("Run ended before a goroutine that lingered for four minutes")
	}
}

func TestRunIsABubble(t *testing.T) {
	simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
		begin := time.Now()
		if got := begin.UTC().Format(time.DateTime); got != "2000-01-01 00:00:00" {
			t.Errorf("f began at %s", got)
		}
		done := false
		go func() { time.Sleep(time.Hour); done = true }()
		time.Sleep(time.Hour + 1)
		synctest.Wait()
		if !done || time.Since(begin) != time.Hour+1 {
			t.Errorf("%v passed", time.Since(begin))
		}
	})
}
