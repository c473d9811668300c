package gosimnet_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// hearing tells, for each host, whom it hears, itself included: "abc".
type hearing map[string]string

// hearings finds out by a datagram from each host to each other one.
func hearings(t *testing.T, s *gosimnet.Simnet) hearing {
	t.Helper()
	heard := make(hearing)
	before := maps.Collect(s.AllLinkStats())
	for _, from := range s.Hosts() {
		socket := listenUDP(t, s, from.Name(), ":9")
		for _, to := range s.Hosts() {
			must(t, second(socket.WriteTo([]byte("x"), udpAddr(to.Addrs()[0].AsSlice(), 9))))
		}
		defer socket.Close()
	}
	time.Sleep(time.Second)
	after := maps.Collect(s.AllLinkStats())
	for _, to := range s.Hosts() {
		for _, from := range s.Hosts() {
			id := gosimnet.LinkID{From: from.Name(), To: to.Name()}
			if after[id].Delivered.Packets > before[id].Delivered.Packets {
				heard[to.Name()] += from.Name()
			}
		}
	}
	return heard
}

// letters is a network of n hosts a, b, c …
func letters(t *testing.T, seed uint64, n int) (s *gosimnet.Simnet, names string) {
	t.Helper()
	s = newNet(t, &gosimnet.SimNetConfig{Seed: seed})
	names = "abcdefghijklmno"[:n]
	for _, h := range names {
		s.Host(string(h))
	}
	return s, names
}

// shaped is who hears whom in a partition of n hosts.
func shaped(t *testing.T, seed uint64, n int, shape gosimnet.PartitionShape, oneWay bool) (heard hearing) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, names := letters(t, seed, n)
		heal, err := s.PartitionShaped(gosimnet.DropPackets, shape, oneWay)
		must(t, err)
		heard = hearings(t, s)
		heal()
		for h, who := range hearings(t, s) {
			if who != names {
				t.Errorf("%v of %s, healed: %s hears %s", shape, names, h, who)
			}
		}
	})
	return heard
}

// symmetric reports whether everybody hears those who hear them.
func (h hearing) symmetric() bool {
	for a, who := range h {
		for _, b := range who {
			if !strings.Contains(h[string(b)], a) {
				return false
			}
		}
	}
	return true
}

// sides are the sets of those who hear each other, the first one with host a; there is one if the partition is not of sides.
func (h hearing) sides() (all []string) {
	for _, a := range slices.Sorted(maps.Keys(h)) {
		if !slices.Contains(all, h[a]) {
			all = append(all, h[a])
		}
	}
	return all
}

var allShapes = []gosimnet.PartitionShape{gosimnet.UniformSize, gosimnet.UniformPartition, gosimnet.IsolateSingle, gosimnet.Halves, gosimnet.RandomHalves,
	gosimnet.MinorityThird, gosimnet.Bridge, gosimnet.MajoritiesRing}

func TestShapesWithTwoSides(t *testing.T) {
	for _, c := range []struct {
		shape gosimnet.PartitionShape
		sizes func(n int) []int // that one side may have
	}{
		{gosimnet.UniformSize, func(n int) (all []int) {
			for i := range n - 1 {
				all = append(all, i+1)
			}
			return all
		}},
		{gosimnet.UniformPartition, func(n int) (all []int) {
			for i := range n - 1 {
				all = append(all, i+1)
			}
			return all
		}},
		{gosimnet.IsolateSingle, func(n int) []int { return []int{1} }},
		{gosimnet.Halves, func(n int) []int { return []int{n / 2} }},
		{gosimnet.RandomHalves, func(n int) []int { return []int{n / 2} }},
		{gosimnet.MinorityThird, func(n int) []int { return []int{max(1, n/3)} }},
	} {
		for n := 2; n <= 7; n++ {
			for seed := range uint64(5) {
				h := shaped(t, seed, n, c.shape, false)
				sides := h.sides()
				if len(sides) != 2 || !h.symmetric() || len(sides[0])+len(sides[1]) != n {
					t.Fatalf("%v of %d hosts: %v", c.shape, n, h)
				}
				if sizes := c.sizes(n); !slices.Contains(sizes, len(sides[0])) && !slices.Contains(sizes, len(sides[1])) {
					t.Errorf("%v of %d hosts: sides %v, want one of size %v", c.shape, n, sides, sizes)
				}
			}
		}
	}
}

func TestHalvesAreThoseListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := letters(t, 1, 6)
		must(t, second(s.PartitionShaped(gosimnet.DropPackets, gosimnet.Halves, false, "e", "a", "d", "b", "c")))
		want := hearing{"a": "aef", "e": "aef", "b": "bcdf", "c": "bcdf", "d": "bcdf", "f": "abcdef"}
		if got := hearings(t, s); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

func TestABridgeHearsBothHalves(t *testing.T) {
	for n := 3; n <= 8; n++ {
		h := shaped(t, 1, n, gosimnet.Bridge, false)
		bridges := 0
		var halves []string
		for _, who := range h {
			if len(who) == n {
				bridges++
			} else if !slices.Contains(halves, who) {
				halves = append(halves, who)
			}
		}
		if bridges != 1 || len(halves) != 2 || !h.symmetric() || math.Abs(float64(len(halves[0])-len(halves[1]))) > 1 {
			t.Errorf("bridge of %d: %v", n, h)
		}
	}
}

func TestInAMajoritiesRingEachHearsAMajorityAndNoTwoTheSame(t *testing.T) {
	for n := 3; n <= 9; n++ {
		for seed := range uint64(5) {
			h := shaped(t, seed, n, gosimnet.MajoritiesRing, false)
			if len(h.sides()) != n {
				t.Errorf("ring of %d: two hear the same: %v", n, h)
			}
			if h.symmetric() != (n > 3) {
				t.Errorf("ring of %d: symmetric is %v: %v", n, h.symmetric(), h)
			}
			for a, who := range h {
				if len(who) < gosimnet.Majority(n) || len(who) >= n || !strings.Contains(who, a) {
					t.Errorf("ring of %d: %s hears %s", n, a, who)
				}
			}
		}
	}
}

func TestOneWayShapesStopOneDirection(t *testing.T) {
	for _, shape := range allShapes {
		for seed := range uint64(3) {
			both, one := shaped(t, seed, 5, shape, false), shaped(t, seed, 5, shape, true)
			cut := 0
			for a := range both {
				for b := range both {
					stopped := !strings.Contains(both[a], b)
					there, back := !strings.Contains(one[a], b), !strings.Contains(one[b], a)
					if stopped != (there != back) || there && back {
						t.Errorf("%v: %s and %s: stopped both ways is %v; one way: %v and %v", shape, a, b, stopped, there, back)
					}
					if there {
						cut++
					}
				}
			}
			if cut == 0 {
				t.Errorf("%v one way stops nothing", shape)
			}
		}
	}
}

func TestShapesAreDrawnEvenly(t *testing.T) {
	const rounds = 600
	for shape, want := range map[gosimnet.PartitionShape]map[int]float64{
		// A side of one, two or three is as likely, and a is on it in a quarter, two and three quarters of those.
		gosimnet.UniformSize: {1: 1.0 / 6, 2: 1.0 / 3, 3: 1.0 / 2},
		// Of the 14 divisions into heads and tails, two leave a alone, and six give it two others.
		gosimnet.UniformPartition: {1: 2.0 / 14, 2: 6.0 / 14, 3: 6.0 / 14},
		gosimnet.IsolateSingle:    {1: 1.0 / 4, 3: 3.0 / 4},
		gosimnet.RandomHalves:     {2: 1},
	} {
		sizes, splits := make(map[int]float64), make(map[string]float64)
		synctest.Test(t, func(t *testing.T) {
			s := newNet(t, &gosimnet.SimNetConfig{TraceLimit: -1})
			for _, h := range "abcd" {
				s.Host(string(h))
			}
			for range rounds {
				heal, err := s.PartitionShaped(gosimnet.DropPackets, shape, false)
				must(t, err)
				first := hearings(t, s).sides()[0]
				heal()
				splits[first]++
				sizes[len(first)]++
			}
		})
		for size, p := range want {
			if got := sizes[size] / rounds; math.Abs(got-p) > 4*math.Sqrt(p*(1-p)/rounds) {
				t.Errorf("%v: a is on a side of %d in %.3f of all, want %.3f", shape, size, got, p)
			}
		}
		// Each of the sides that have one size is as likely.
		for split, k := range splits {
			like := 0.0
			for other := range splits {
				if len(other) == len(split) {
					like++
				}
			}
			if mean := sizes[len(split)] / like; math.Abs(k-mean) > 4*math.Sqrt(mean) {
				t.Errorf("%v: the side %s came %v times, others of its size %.0f", shape, split, k, mean)
			}
		}
	}
}

func TestTheSeedDrawsTheShape(t *testing.T) {
	seen := make(map[string]bool)
	for seed := range uint64(20) {
		one, again := shaped(t, seed, 7, gosimnet.RandomHalves, false), shaped(t, seed, 7, gosimnet.RandomHalves, false)
		if !maps.Equal(one, again) {
			t.Errorf("seed %d: %v and then %v", seed, one, again)
		}
		seen[one.sides()[0]] = true
	}
	if len(seen) < 10 {
		t.Errorf("twenty seeds have drawn %d halves", len(seen))
	}
}

// dividedNet is a network of hosts that a partition divides.
func dividedNet(t *testing.T, hosts int, shape gosimnet.PartitionShape, oneWay bool, f func(s *gosimnet.Simnet, heal func(), cut string), listed ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, _ := letters(t, 1, hosts)
		heal, err := s.PartitionShaped(gosimnet.HoldPackets, shape, oneWay, listed...)
		must(t, err)
		cuts := s.GetSimnetSnapshot().Cuts
		if len(cuts) != 1 {
			t.Fatalf("in force: %q", cuts)
		}
		f(s, heal, cuts[0])
	})
}

func TestReportsTellWhoIsApart(t *testing.T) {
	for _, c := range []struct {
		shape  gosimnet.PartitionShape
		oneWay bool
		want   string
	}{
		{gosimnet.Halves, false, "HoldPackets Halves: c, e | a, b, d"},
		{gosimnet.Halves, true, "HoldPackets Halves: c, e → a, b, d"},
		{gosimnet.Bridge, false, "HoldPackets Bridge: c, e | a, b, between them d"},
	} {
		dividedNet(t, 5, c.shape, c.oneWay, func(s *gosimnet.Simnet, heal func(), cut string) {
			heal()
			if cut != c.want {
				t.Errorf("in force: %q, want %q", cut, c.want)
			}
			for e := range s.Trace() {
				if e.Cause != c.want {
					t.Errorf("in the trace: %q, want %q", e.Cause, c.want)
				}
			}
		}, "e", "c", "d", "b", "a")
	}
}

func TestReportsTellTheSidesThatWereDrawn(t *testing.T) {
	for _, shape := range []gosimnet.PartitionShape{
		gosimnet.UniformSize, gosimnet.UniformPartition, gosimnet.IsolateSingle, gosimnet.RandomHalves, gosimnet.MinorityThird,
	} {
		dividedNet(t, 7, shape, false, func(s *gosimnet.Simnet, heal func(), cut string) {
			_, who, _ := strings.Cut(strings.ReplaceAll(cut, ", ", ""), ": ")
			told := strings.Split(who, " | ")
			slices.Sort(told)
			if sides := hearings(t, s).sides(); !slices.Equal(told, sides) {
				t.Errorf("%q is %q", cut, sides)
			}
		})
	}
}

func TestReportsDoNotListCrowds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, nil)
		for i := range 40 {
			s.Host(fmt.Sprintf("h%02d", i))
		}
		must(t, second(s.PartitionShaped(gosimnet.DropPackets, gosimnet.Halves, false)))
		if cut := s.GetSimnetSnapshot().Cuts[0]; !strings.Contains(cut, "h15, and 4 more | h20, ") {
			t.Error(cut)
		}
	})
}

func TestMajoritiesAndMinorities(t *testing.T) {
	for n, want := range map[int][2]int{1: {1, 0}, 2: {2, 0}, 3: {2, 1}, 4: {3, 1}, 5: {3, 2}, 6: {4, 2}, 7: {4, 3}} {
		if got := [2]int{gosimnet.Majority(n), gosimnet.Minority(n)}; got != want {
			t.Errorf("of %d: %v, want %v", n, got, want)
		}
	}
}

func TestImpossibleShapesAreErrors(t *testing.T) {
	s := newNet(t, nil)
	shape := func(mode gosimnet.PartitionMode, shape gosimnet.PartitionShape, hosts ...string) error {
		return second(s.PartitionShaped(mode, shape, false, hosts...))
	}
	errorNames(t, shape(gosimnet.DropPackets, gosimnet.Halves), "2 hosts", "not 0")
	for _, h := range "abc" {
		s.Host(string(h))
	}
	errorNames(t, shape(gosimnet.DropPackets, 8), "PartitionShape(8)")
	errorNames(t, shape(gosimnet.DropPackets, -1), "PartitionShape(-1)")
	errorNames(t, shape(3, gosimnet.Halves), "PartitionMode(3)")
	errorNames(t, shape(gosimnet.DropPackets, gosimnet.Halves, "a", "nobody"), "nobody")
	errorNames(t, shape(gosimnet.DropPackets, gosimnet.Halves, "a", "a"), `"a"`, "twice")
	errorNames(t, shape(gosimnet.DropPackets, gosimnet.IsolateSingle, "a"), "2 hosts", "not 1")
	errorNames(t, shape(gosimnet.DropPackets, gosimnet.Bridge, "a", "b"), "3 hosts", "not 2")
	errorNames(t, shape(gosimnet.DropPackets, gosimnet.MajoritiesRing, "a", "b"), "3 hosts", "not 2")
	if cuts := s.GetSimnetSnapshot().Cuts; len(cuts) != 0 {
		t.Errorf("in force: %v", cuts)
	}
}

func TestImpossiblePartitionsAreErrors(t *testing.T) {
	s := newNet(t, nil)
	for _, h := range "abc" {
		s.Host(string(h))
	}
	partition := func(mode gosimnet.PartitionMode, groups ...[]string) error {
		return second(s.Partition(mode, groups...))
	}
	errorNames(t, partition(gosimnet.DropPackets, []string{"a", "b"}, []string{"b", "c"}), `"b"`, "twice")
	errorNames(t, partition(gosimnet.DropPackets, []string{"a", "a"}, []string{"b"}), `"a"`, "twice")
	errorNames(t, partition(gosimnet.DropPackets, []string{"a"}), "1 groups")
	errorNames(t, partition(gosimnet.DropPackets), "0 groups")
	errorNames(t, partition(gosimnet.DropPackets, []string{"a"}, []string{"nobody"}), "nobody")
	errorNames(t, partition(gosimnet.DropPackets, []string{"a"}, []string{""}), "empty")
	errorNames(t, partition(-1, []string{"a"}, []string{"b"}), "PartitionMode(-1)")
	errorNames(t, second(s.CutLink(gosimnet.DropPackets, "a", "nobody")), "nobody")
	errorNames(t, second(s.CutLink(9, "a", "b")), "PartitionMode(9)")
	if cuts := s.GetSimnetSnapshot().Cuts; len(cuts) != 0 {
		t.Errorf("in force: %v", cuts)
	}
}

func TestShapedPartitionsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := letters(t, 1, 4)
		one, err := s.Partition(gosimnet.DropPackets, []string{"a"}, []string{"b", "c"})
		must(t, err)
		two, err := s.Partition(gosimnet.DropPackets, []string{"a", "b"}, []string{"c"})
		must(t, err)
		three, err := s.CutLink(gosimnet.DropPackets, "d", "")
		must(t, err)
		check := func(want hearing) {
			t.Helper()
			if got := hearings(t, s); !maps.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		}
		check(hearing{"a": "a", "b": "b", "c": "c", "d": "abcd"})
		one()
		one()
		check(hearing{"a": "ab", "b": "ab", "c": "c", "d": "abcd"})
		three()
		check(hearing{"a": "abd", "b": "abd", "c": "cd", "d": "abcd"})
		two()
		check(hearing{"a": "abcd", "b": "abcd", "c": "abcd", "d": "abcd"})
	})
}

func TestModesOfPartitions(t *testing.T) {
	for _, c := range []struct {
		mode    gosimnet.PartitionMode
		arrives int
		cause   string
		dial    error
	}{
		{gosimnet.DropPackets, 5, gosimnet.CausePartition, nil},
		{gosimnet.HoldPackets, 10, "", nil},
		{gosimnet.RejectPackets, 5, gosimnet.CauseRejected, syscall.ECONNREFUSED},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := letters(t, 1, 2)
			heal, err := s.Partition(c.mode, []string{"a"}, []string{"b"})
			must(t, err)
			dialled := make(chan error)
			go func() {
				l, err := s.Host("b").Listen("tcp", ":80")
				must(t, err)
				defer l.Close()
				dialled <- second(s.Host("a").Dial("tcp", "b:80"))
			}()
			time.AfterFunc(495*ms, heal)
			as := volley(t, s, "a", "b", 10, 4, 99*ms, time.Second)
			if len(as) != c.arrives || !slices.IsSorted(numbers(as)) {
				t.Errorf("%v: arrived: %v", c.mode, numbers(as))
			}
			for _, a := range as {
				want := max(505*ms, a.sent+10*ms) // those that were held cross the link when it is healed
				if !around(a.at, want) {
					t.Errorf("%v: packet %d came at %v, want %v", c.mode, a.n, a.at, want)
				}
			}
			if err := <-dialled; !errors.Is(err, c.dial) {
				t.Errorf("%v: dial: %v, want %v", c.mode, err, c.dial)
			}
			if stats := statsOf(t, s, "a", "b"); c.cause != "" && stats.LostTo[c.cause].Packets < 5 {
				t.Errorf("%v: %v", c.mode, stats)
			}
		})
	}
}

func TestAPartitionStopsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := letters(t, 1, 2)
		setLink(t, s, "a", "b", gosimnet.LinkConfig{Duplicate: 1})
		a := newSender(t, s, "a")
		a.send(4, "b")
		time.Sleep(5 * ms)
		heal, err := s.CutLink(gosimnet.HoldPackets, "a", "b")
		must(t, err)
		time.Sleep(95*ms - us)
		if stats := statsOf(t, s, "a", "b"); stats.Held.Packets != 2 {
			t.Errorf("held: %v", stats)
		}
		heal()
		time.Sleep(time.Second)
		wantDelivered(t, s, "two, of which one is the other's double", "a→b@110ms a→b@110ms")
	})
}

func TestStreamsAcrossHeldPartitionsLoseNothing(t *testing.T) {
	for _, mode := range []gosimnet.PartitionMode{gosimnet.DropPackets, gosimnet.HoldPackets} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := letters(t, 1, 2)
			go func() {
				for i := range 4 {
					time.Sleep(25 * ms)
					heal, err := s.PartitionShaped(mode, gosimnet.Halves, i%2 == 1)
					must(t, err)
					time.Sleep(time.Second)
					heal()
				}
			}()
			crossBothWays(t, s, 3<<20)
			if mode == gosimnet.HoldPackets {
				for _, l := range s.GetSimnetSnapshot().Links {
					if l.Lost.Packets > 0 {
						t.Errorf("lost: %v", l)
					}
				}
			}
		})
	}
}

func TestShapesAndModesHaveNames(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{"MajoritiesRing": gosimnet.MajoritiesRing, "UniformSize": gosimnet.UniformSize, "HoldPackets": gosimnet.HoldPackets,
		"DropRandom": gosimnet.DropRandom, "Unordered": gosimnet.Unordered, "PhaseReset": gosimnet.PhaseReset, "Overflow(7)": gosimnet.Overflow(7)} {
		if got.String() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}
