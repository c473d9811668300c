package simtest

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// The flags register themselves, with the types that make the flag package refuse what is impossible.
var (
	_ = flag.Uint64("simnet.seed", 0, "the `seed` of simulated networks; wins over SIMNET_SEED")
	_ = flag.Int("simnet.runs", 1, "the `number` of seeds; wins over SIMNET_RUNS")
	_ = flag.Bool("simnet.check", false, "run each seed twice and compare; wins over SIMNET_CHECK")
	_ = flag.String("simnet.artifacts", "", "the `directory` for reports, snapshots and traces of runs that fail; wins over SIMNET_ARTIFACTS")
)

// setting is a value that was given on the command line, or "".
type setting struct{ name, value string }

// given finds the value of a variable or of its flag: SIMNET_SEED and -simnet.seed.
func given(variable string) (s setting) {
	name := "simnet." + strings.ToLower(strings.TrimPrefix(variable, "SIMNET_"))
	s = setting{variable, os.Getenv(variable)}
	flag.Visit(func(f *flag.Flag) {
		if f.Name == name {
			s = setting{"-" + name, f.Value.String()}
		}
	})
	return s
}

// wrong is the error of an impossible value.
func (s setting) wrong(want string) error {
	return fmt.Errorf("%s=%q: want %s", s.name, s.value, want)
}

// override applies what the command line says.
func (p *plan) override() error {
	seed, runs, check, artifacts := given("SIMNET_SEED"), given("SIMNET_RUNS"), given("SIMNET_CHECK"), given("SIMNET_ARTIFACTS")
	if seed.value != "" {
		n, err := parseSeed(seed.value)
		if err != nil {
			return seed.wrong("a seed of at most 64 bits, decimal or 0x and hexadecimal")
		}
		p.first, p.runs = n, 1
	}
	if runs.value != "" {
		n, err := strconv.Atoi(runs.value)
		if err != nil || n < 1 {
			return runs.wrong("the number of seeds, 1 or more")
		}
		p.runs = n
		p.repeat = append(p.repeat, "SIMNET_RUNS=1")
	}
	if check.value != "" {
		on, err := strconv.ParseBool(check.value)
		if err != nil {
			return check.wrong("1 or 0")
		}
		p.check = on
		p.repeat = append(p.repeat, "SIMNET_CHECK="+check.value)
	}
	if artifacts.value != "" {
		p.artifacts = artifacts.value
		if info, err := os.Stat(p.artifacts); err == nil && !info.IsDir() {
			return artifacts.wrong("a directory, not a file")
		}
	}
	return nil
}

// parseSeed understands 42 and 0x2a.
func parseSeed(s string) (uint64, error) {
	if hex, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		return strconv.ParseUint(hex, 16, 64)
	}
	return strconv.ParseUint(s, 10, 64)
}
