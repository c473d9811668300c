package gosimnet_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

const roundTrip = 20 * time.Millisecond // with the default latency

// lasted checks how long something took, to the microsecond: each arrival comes a nanosecond or two late.
func lasted(t *testing.T, since time.Time, want time.Duration) {
	t.Helper()
	if got := time.Since(since); got < want || got >= want+time.Microsecond {
		t.Errorf("took %v, want %v", got, want)
	}
}

// machine is what the machine's resolv.conf says, which counts for every *net.Resolver of the process.
type machine struct {
	attempts, servers int
	timeout           time.Duration
	streams           bool // it asks over streams alone
}

func resolvConf(t *testing.T) machine {
	t.Helper()
	m := machine{attempts: 2, timeout: 5 * time.Second}
	f, err := os.Open("/etc/resolv.conf")
	if err != nil {
		m.servers = 2 // package net's defaults: the machine itself, by either family
		return m
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		switch fields := strings.Fields(lines.Text()); {
		case len(fields) < 2:
		case fields[0] == "nameserver":
			if _, err := netip.ParseAddr(fields[1]); err == nil && m.servers < 3 {
				m.servers++
			}
		case fields[0] == "options":
			m.options(fields[1:])
		}
	}
	if m.servers == 0 {
		m.servers = 2
	}
	return m
}

func (m *machine) options(words []string) {
	for _, w := range words {
		name, value, _ := strings.Cut(w, ":")
		n, _ := strconv.Atoi(value)
		switch name {
		case "timeout":
			m.timeout = time.Duration(max(1, n)) * time.Second
		case "attempts":
			m.attempts = max(1, n)
		case "use-vc", "usevc", "tcp":
			m.streams = true
		}
	}
}

// onNetwork runs a test on a network of its own, in a bubble.
func onNetwork(t *testing.T, f func(t *testing.T, s *gosimnet.Simnet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newNet(t, nil)) })
}

// sorted is a list in the order of its text: that in which package net gives addresses depends on the machine.
func sorted[T fmt.Stringer](list []T) []string {
	var all []string
	for _, e := range list {
		all = append(all, e.String())
	}
	slices.Sort(all)
	return all
}

func sameStrings(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// lookup4 finds the IPv4 addresses of a name, by one query.
func lookup4(h *gosimnet.Host, name string) ([]string, error) {
	ips, err := h.Resolver().LookupNetIP(context.Background(), "ip4", name)
	return sorted(ips), err
}

func TestResolverKnowsHosts(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		a, b := s.Host("a"), s.Host("Backend")
		r, ctx := a.Resolver(), context.Background()
		if !r.PreferGo {
			t.Error("not package net's own resolver")
		}
		for _, name := range []string{"Backend.", "backend.", "BACKEND."} {
			start := time.Now()
			got, err := r.LookupHost(ctx, name)
			must(t, err)
			lasted(t, start, roundTrip)
			sameStrings(t, name, got, sorted(b.Addrs()))
		}
		for _, addr := range b.Addrs() {
			names, err := r.LookupAddr(ctx, addr.String())
			must(t, err)
			sameStrings(t, "names of "+addr.String(), names, []string{"Backend."})
		}
		if _, err := r.LookupAddr(ctx, "10.99.0.1"); !notFound(err) {
			t.Errorf("the name of nobody's address: %v, want it not to be found", err)
		}
		if _, err := r.LookupHost(ctx, "nobody."); !notFound(err) {
			t.Errorf("an unknown name: %v, want it not to be found", err)
		}
	})
}

func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

func notFound(err error) bool {
	var e *net.DNSError
	return errors.As(err, &e) && e.IsNotFound && !e.IsTimeout && !e.IsTemporary
}

func TestNameServerIsMadeOnFirstUse(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		a, b := s.Host("a"), s.Host("b")
		l, err := b.Listen("tcp", "b:80")
		must(t, err)
		defer l.Close()
		c, err := a.Dial("tcp", "b:80")
		must(t, err)
		c.Close()
		r := a.Resolver()
		if n := len(s.Hosts()); n != 2 {
			t.Errorf("%d hosts before the first lookup, want 2", n)
		}
		_, err = r.LookupHost(context.Background(), "b.")
		must(t, err)
		if n := len(s.Hosts()); n != 3 || s.Host("dns") != s.Hosts()[2] {
			t.Errorf("%d hosts after the first lookup, want one more, called dns", n)
		}
		if got := s.Host("c").Addrs()[0].String(); got != "10.0.0.3" {
			t.Errorf("the third host has the address %s, want that which it would have without names", got)
		}
	})
}

func TestRecords(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		a := s.Host("a")
		r, ctx := a.Resolver(), context.Background()
		long := strings.Repeat("0123456789", 70)
		must(t, s.AddRecord("shop.example", "A 10.7.0.1", "A 10.7.0.2", "AAAA fd00::7", "TXT v=1 all", "TXT "+long))
		must(t, s.AddRecord("www.example.", "cname Shop.Example"))
		must(t, s.AddRecord("_http._tcp.example", "SRV 10 5 8080 shop.example.", "SRV 20 0 8081 a"))
		must(t, s.AddRecord("1.0.7.10.in-addr.arpa", "PTR shop.example"))

		for _, name := range []string{"shop.example.", "www.example.", "WWW.EXAMPLE."} {
			addrs, err := r.LookupHost(ctx, name)
			must(t, err)
			sameStrings(t, name, addrs, []string{"10.7.0.1", "10.7.0.2", "fd00::7"})
		}
		cname, err := r.LookupCNAME(ctx, "www.example.")
		must(t, err)
		if cname != "Shop.Example." {
			t.Errorf("the canonical name is %q", cname)
		}
		txt, err := r.LookupTXT(ctx, "www.example.")
		must(t, err)
		sameStrings(t, "texts", txt, []string{"v=1 all", long})
		_, srvs, err := r.LookupSRV(ctx, "http", "tcp", "example.")
		must(t, err)
		if len(srvs) != 2 || *srvs[0] != (net.SRV{Target: "shop.example.", Port: 8080, Priority: 10, Weight: 5}) ||
			*srvs[1] != (net.SRV{Target: "a.", Port: 8081, Priority: 20}) {
			t.Errorf("services %+v %+v", srvs[0], srvs[1])
		}
		names, err := r.LookupAddr(ctx, "10.7.0.1")
		must(t, err)
		sameStrings(t, "names", names, []string{"shop.example."})
		if _, err := r.LookupTXT(ctx, "a."); !notFound(err) {
			t.Errorf("texts of a host without any: %v, want that none are found", err)
		}

		must(t, s.AddRecord("a", "A 10.7.0.9"))
		got, err := lookup4(s.Host("b"), "a.")
		must(t, err)
		sameStrings(t, "a host's addresses and one more", got, []string{"10.0.0.1", "10.7.0.9"})
		must(t, s.RemoveRecords("a"))
		must(t, s.RemoveRecords("SHOP.example."))
		got, err = lookup4(a, "a.")
		must(t, err)
		sameStrings(t, "a host's own addresses", got, []string{"10.0.0.1"})
		if _, err := r.LookupHost(ctx, "www.example."); !notFound(err) {
			t.Errorf("an alias of what is no more: %v, want it not to be found", err)
		}
	})
}

func TestAliasesInACircle(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		must(t, s.AddRecord("x", "CNAME y"))
		must(t, s.AddRecord("y", "CNAME x"))
		a := s.Host("a")
		var e *net.DNSError
		if _, err := lookup4(a, "x."); !errors.As(err, &e) || !e.IsTemporary || e.IsNotFound {
			t.Errorf("lookup: %v, want that the server fails", err)
		}
		if _, err := a.Dial("tcp", "x:80"); !errors.As(err, &e) || !e.IsTemporary || e.IsNotFound {
			t.Errorf("dial: %v, want that the server fails", err)
		}
	})
}

func TestViewsDiffer(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		one, two, old := s.Host("one"), s.Host("two"), s.Host("old")
		common, moved := s.Host("db"), s.Host("db-2")
		for _, h := range []*gosimnet.Host{common, moved} {
			l, err := h.Listen("tcp", ":5432")
			must(t, err)
			defer l.Close()
		}
		must(t, two.SetView("DB", gosimnet.Answers("A "+moved.Addrs()[0].String())))
		must(t, old.SetView("db", gosimnet.Answers("CNAME db-2")))

		for h, want := range map[*gosimnet.Host]*gosimnet.Host{one: common, two: moved, old: moved} {
			addr := want.Addrs()[0].String()
			got, err := lookup4(h, "db.")
			must(t, err)
			sameStrings(t, "db as "+h.Name()+" resolves it", got, []string{addr})
			c, err := h.Dial("tcp", "db:5432")
			must(t, err)
			if got := c.RemoteAddr().String(); got != addr+":5432" {
				t.Errorf("%s dials %s, want %s", h.Name(), got, addr)
			}
			c.Close()
		}

		must(t, two.SetView("db", gosimnet.View{}))
		got, err := lookup4(two, "db.")
		must(t, err)
		sameStrings(t, "db without a view", got, []string{common.Addrs()[0].String()})
	})
}

func TestViewsFail(t *testing.T) {
	m := resolvConf(t)
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		good, bad := s.Host("good"), s.Host("bad")
		l, err := s.Host("db").Listen("tcp", ":5432")
		must(t, err)
		defer l.Close()
		var e *net.DNSError
		for _, test := range []struct {
			view           gosimnet.View
			failed         func(err error) bool
			lookup, dialed time.Duration
		}{
			{gosimnet.NXDomain(), notFound, roundTrip, 0},
			{gosimnet.Answers(), notFound, roundTrip, 0},
			{gosimnet.ServFail(), func(err error) bool {
				return errors.As(err, &e) && e.IsTemporary && !e.IsTimeout && !e.IsNotFound
			}, time.Duration(m.attempts*m.servers) * roundTrip, 0},
			{gosimnet.Silence(), func(err error) bool {
				return errors.As(err, &e) && e.IsTimeout && e.IsTemporary && !e.IsNotFound && e.Timeout()
			}, time.Duration(m.attempts*m.servers) * m.timeout, 10 * time.Second},
		} {
			must(t, bad.SetView("db", test.view))
			start := time.Now()
			if _, err := lookup4(bad, "db."); !test.failed(err) {
				t.Errorf("%v: lookup: %v", test.view, err)
			}
			if !m.streams {
				lasted(t, start, test.lookup)
			}
			start = time.Now()
			c, err := bad.Dial("tcp", "db:5432")
			if c != nil || !test.failed(err) {
				t.Errorf("%v: dial: %v", test.view, err)
			}
			var op *net.OpError
			if !errors.As(err, &op) || op.Op != "dial" || op.Net != "tcp" || op.Addr != nil || op.Source != nil || op.Err != e && !notFound(op.Err) {
				t.Errorf("%v: dial: %v, want an error of the dial, without an address", test.view, err)
			}
			lasted(t, start, test.dialed)

			got, err := lookup4(good, "db.")
			must(t, err)
			sameStrings(t, "db for another host", got, []string{s.Host("db").Addrs()[0].String()})
			c, err = good.Dial("tcp", "db:5432")
			must(t, err)
			c.Close()
		}
	})
}

func TestDialTriesAllHostsOfAName(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		a, shut, off, up := s.Host("a"), s.Host("shut"), s.Host("off"), s.Host("up")
		l, err := up.Listen("tcp", ":80")
		must(t, err)
		defer l.Close()
		must(t, second(s.AlterHost("off", gosimnet.SHUTDOWN)))
		address := func(h *gosimnet.Host) string { return "A " + h.Addrs()[0].String() }
		must(t, s.AddRecord("web", address(shut), address(up), "AAAA "+up.Addrs()[1].String()))
		must(t, s.AddRecord("slow", address(off), address(shut), address(up)))
		must(t, s.AddRecord("down", address(shut), address(off), "A 10.9.9.9"))

		start := time.Now()
		c, err := a.Dial("tcp", "web:80")
		must(t, err)
		lasted(t, start, 2*roundTrip) // refused, and then taken
		c.Close()

		start = time.Now()
		c, err = a.DialTimeout("tcp", "slow:80", 30*time.Second)
		must(t, err)
		lasted(t, start, 10*time.Second+2*roundTrip) // a third of the time, and a refusal
		c.Close()

		start = time.Now()
		_, err = a.DialTimeout("tcp", "down:80", 3*time.Second)
		lasted(t, start, 3*time.Second)
		want := "dial tcp " + shut.Addrs()[0].String() + ":80: connect: connection refused"
		if err == nil || err.Error() != want {
			t.Errorf("%v, want the first error, %s", err, want)
		}
	})
}

func TestViewOfAllNames(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		a, b := s.Host("a"), s.Host("b")
		must(t, a.SetView("", gosimnet.NXDomain()))
		must(t, a.SetView("c", gosimnet.Answers("A 10.0.0.2")))
		if _, err := a.Dial("tcp", "b:80"); !notFound(err) {
			t.Errorf("dial by a name: %v, want it not to be found", err)
		}
		for _, address := range []string{"c:80", b.Addrs()[0].String() + ":80", "localhost:80", ":80"} {
			if _, err := a.Dial("tcp", address); !refused(err) {
				t.Errorf("dial %s: %v, want a refusal", address, err)
			}
		}
		must(t, a.SetView("", gosimnet.View{}))
		if _, err := a.Dial("tcp", "b:80"); !refused(err) {
			t.Errorf("dial by a name: %v, want a refusal", err)
		}
	})
}

func TestSilenceEndsWithTheDialsTime(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		a := s.Host("a")
		must(t, a.SetView("b", gosimnet.Silence()))
		var e *net.DNSError

		start := time.Now()
		_, err := a.DialTimeout("tcp", "b:80", 3*time.Second)
		lasted(t, start, 3*time.Second)
		if !errors.As(err, &e) || !e.IsTimeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial with a time-out: %v", err)
		}

		ctx, cancel := context.WithCancel(context.Background())
		start = time.Now()
		time.AfterFunc(time.Second, cancel)
		_, err = a.DialContext(ctx, "udp", "b:80")
		lasted(t, start, time.Second)
		if !errors.As(err, &e) || e.IsTimeout || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled dial: %v", err)
		}

		start = time.Now()
		_, err = a.ListenPacket("udp", "b:80")
		lasted(t, start, 10*time.Second)
		if !errors.As(err, &e) || !e.IsTimeout || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("listen: %v", err)
		}

		time.AfterFunc(time.Second, func() { s.AlterHost("a", gosimnet.SHUTDOWN) })
		start = time.Now()
		_, err = a.Dial("tcp", "b:80")
		lasted(t, start, time.Second)
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("dial by a host that loses its power: %v", err)
		}
		start = time.Now()
		if _, err = a.Dial("tcp", "b:80"); !errors.Is(err, syscall.ENETDOWN) {
			t.Errorf("dial by a host without power: %v", err)
		}
		lasted(t, start, 0)
		must(t, second(s.AlterHost("a", gosimnet.POWERON)))

		time.AfterFunc(time.Second, s.Close)
		start = time.Now()
		_, err = a.Dial("tcp", "b:80")
		lasted(t, start, time.Second)
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("dial in a network that closes: %v", err)
		}
	})
}

func TestLostQueryIsRepeated(t *testing.T) {
	m := resolvConf(t)
	if m.streams {
		t.Skip("the machine is configured to resolve over streams")
	}
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		a := s.Host("a")
		lost := 0
		s.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict {
			if p.To == "dns" && lost == 0 {
				lost++
				return gosimnet.Drop()
			}
			return gosimnet.Pass()
		})
		start := time.Now()
		got, err := lookup4(a, "a.")
		must(t, err)
		lasted(t, start, m.timeout+roundTrip)
		sameStrings(t, "a", got, []string{"10.0.0.1"})
		if lost != 1 {
			t.Errorf("%d queries were lost, want 1", lost)
		}
	})
}

func TestLookupThatRunsOutOfTimeIsNotSentAgain(t *testing.T) {
	if resolvConf(t).streams {
		t.Skip("the machine is configured to resolve over streams")
	}
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		a := s.Host("a")
		must(t, a.SetView("b.", gosimnet.Silence()))
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := a.Resolver().LookupHost(ctx, "b.")
		lasted(t, start, time.Second)
		if err == nil || strings.Contains(err.Error(), ":0->") {
			t.Errorf("%v, want no socket without a port", err)
		}
	})
}

func TestNoAnswerAtAll(t *testing.T) {
	m := resolvConf(t)
	for name, fault := range map[string]func(s *gosimnet.Simnet) error{
		"partition": func(s *gosimnet.Simnet) error {
			_, err := s.Partition(gosimnet.DropPackets, []string{"a"}, []string{"dns"})
			return err
		},
		"loss":      func(s *gosimnet.Simnet) error { return s.SetLink("a", "dns", gosimnet.LinkConfig{Loss: 1}) },
		"power cut": func(s *gosimnet.Simnet) error { return second(s.AlterHost("dns", gosimnet.SHUTDOWN)) },
	} {
		t.Run(name, func(t *testing.T) {
			if m.streams {
				t.Skip("the machine is configured to resolve over streams")
			}
			onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
				a := s.Host("a")
				s.Host("dns")
				must(t, fault(s))
				start := time.Now()
				_, err := lookup4(a, "a.")
				lasted(t, start, time.Duration(m.attempts*m.servers)*m.timeout)
				var e *net.DNSError
				if !errors.As(err, &e) || !e.IsTimeout {
					t.Errorf("lookup: %v, want a time-out", err)
				}
			})
		})
	}
}

func TestNameServerSurvivesAPowerCut(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		a := s.Host("a")
		many := manyAddresses(t, s)
		for range 2 {
			if _, err := lookup4(a, "many."); err != nil {
				t.Error(err)
			}
			must(t, second(s.AlterHost("dns", gosimnet.SHUTDOWN)))
			must(t, second(s.AlterHost("dns", gosimnet.POWERON)))
		}
		got, err := lookup4(a, "many.")
		must(t, err)
		sameStrings(t, "many", got, many)
	})
}

// manyAddresses gives the name "many" more addresses than a datagram holds.
func manyAddresses(t *testing.T, s *gosimnet.Simnet) (all []string) {
	for i := range 200 {
		all = append(all, fmt.Sprintf("10.8.0.%d", i+1))
		must(t, s.AddRecord("many", "A "+all[i]))
	}
	return all
}

// dialed is a resolver that records what it dials.
func dialed(h *gosimnet.Host) (r *net.Resolver, networks *[]string) {
	r, networks = h.Resolver(), new([]string)
	dial := r.Dial
	r.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		*networks = append(*networks, network)
		return dial(ctx, network, address)
	}
	return r, networks
}

func TestTruncatedAnswerIsFetchedOverAStream(t *testing.T) {
	if resolvConf(t).streams {
		t.Skip("the machine is configured to resolve over streams")
	}
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		want := manyAddresses(t, s)
		r, networks := dialed(s.Host("a"))
		start := time.Now()
		ips, err := r.LookupNetIP(context.Background(), "ip4", "many.")
		must(t, err)
		lasted(t, start, 3*roundTrip)
		sameStrings(t, "many", sorted(ips), want)
		if !slices.Equal(*networks, []string{"udp", "tcp"}) {
			t.Errorf("dialled %q, want a datagram and then a stream", *networks)
		}
	})
}

func TestServerOfOnesOwn(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		a, dns := s.Host("a"), s.Host("dns")
		manyAddresses(t, s)
		if _, err := lookup4(a, "many."); err != nil {
			t.Error(err) // now the built-in server listens for streams, too
		}
		c, err := dns.ListenPacket("udp", ":53")
		must(t, err)
		l, err := dns.Listen("tcp", ":53")
		must(t, err)
		go func() {
			b := make([]byte, 512)
			n, from, err := c.ReadFrom(b)
			if err != nil {
				t.Error(err)
				return
			}
			b[2], b[3] = 0x84, 3 // an answer, and that it does not know the name
			c.WriteTo(b[:n], from)
		}()
		if _, err := lookup4(a, "a."); !notFound(err) {
			t.Errorf("lookup: %v, want what that server says", err)
		}
		must(t, c.Close())
		must(t, l.Close())
		got, err := lookup4(a, "a.")
		must(t, err)
		sameStrings(t, "a, by the built-in server", got, []string{"10.0.0.1"})
	})
}

func TestBubblesDoNotShareResolvers(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			s := newNet(t, nil)
			got, err := s.Host("a").Resolver().LookupHost(context.Background(), "a.")
			must(t, err)
			sameStrings(t, "a", got, []string{"10.0.0.1", "fd00::1"})
		})
	}
}

func TestResolverOutsideABubble(t *testing.T) {
	s := newNet(t, &gosimnet.SimNetConfig{MinHop: time.Microsecond})
	got, err := s.Host("a").Resolver().LookupHost(context.Background(), "a.")
	must(t, err)
	sameStrings(t, "a", got, []string{"10.0.0.1", "fd00::1"})
}

func TestResolverOfAClosedNetwork(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		a := s.Host("a")
		r := a.Resolver()
		s.Close()
		start := time.Now()
		var e *net.DNSError
		if _, err := r.LookupHost(context.Background(), "a."); !errors.As(err, &e) || e.IsTimeout {
			t.Errorf("lookup: %v", err)
		}
		lasted(t, start, 0)
		for call, err := range map[string]error{
			"AddRecord": s.AddRecord("x", "A 10.0.0.1"), "RemoveRecords": s.RemoveRecords("x"), "SetView": a.SetView("x", gosimnet.NXDomain()),
		} {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s after Close: %v", call, err)
			}
		}
		if err := s.Host("").SetView("x", gosimnet.NXDomain()); err == nil {
			t.Error("SetView of a host without a name: no error")
		}
	})
}

func TestMalformedRecords(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		for _, test := range []struct{ name, record string }{
			{"", "A 10.0.0.1"},
			{".", "A 10.0.0.1"},
			{"a..b", "A 10.0.0.1"},
			{strings.Repeat("x", 64), "A 10.0.0.1"},
			{strings.Repeat("x.", 127) + "xx", "A 10.0.0.1"},
			{"x", ""},
			{"x", "MX 10 mail"},
			{"x", "A"},
			{"x", "A fd00::1"},
			{"x", "A 10.0.0.256"},
			{"x", "AAAA 10.0.0.1"},
			{"x", "AAAA fe80::1%eth0"},
			{"x", "CNAME "},
			{"x", "PTR a..b"},
			{"x", "SRV 1 2 3"},
			{"x", "SRV 1 2 65536 a"},
			{"x", "SRV -1 2 3 a"},
			{"x", "SRV 1 2 3 " + strings.Repeat("x", 64)},
			{"x", "TXT " + strings.Repeat("x", 65280)}, // 65536 bytes, with the lengths of its strings
		} {
			if err := s.AddRecord(test.name, "A 10.0.0.9", test.record); err == nil {
				t.Errorf("AddRecord(%q, %q): no error", test.name, test.record)
			}
			if test.name == "x" {
				if err := s.Host("a").SetView("x", gosimnet.Answers(test.record)); err == nil {
					t.Errorf("SetView of %q: no error", test.record)
				}
			}
		}
		if _, err := lookup4(s.Host("a"), "x."); !notFound(err) {
			t.Errorf("lookup: %v, want that nothing was added", err)
		}
	})
}

func TestBlanksBeforeARecordsData(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		must(t, s.AddRecord("x", "A  10.0.0.7"))
		must(t, s.AddRecord("alias", "CNAME \t x "))
		must(t, s.AddRecord("text", "TXT  two "))
		r := s.Host("a").Resolver()
		ips, err := r.LookupNetIP(context.Background(), "ip4", "alias.")
		must(t, err)
		sameStrings(t, "alias", sorted(ips), []string{"10.0.0.7"})
		texts, err := r.LookupTXT(context.Background(), "text.")
		must(t, err)
		sameStrings(t, "text", texts, []string{" two "})
	})
}

// An answer that no message holds is cut short, at once, and not lost.
func TestAnswerThatIsTooLongForAStream(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		must(t, s.AddRecord("x", "TXT "+strings.Repeat("x", 65279)))
		start := time.Now()
		if got, err := s.Host("a").Resolver().LookupTXT(context.Background(), "x."); err == nil {
			t.Errorf("%d texts, want an error", len(got))
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

// lookups runs several hosts that resolve names at the same instants over links that lose packets, and tells what came of it.
func lookups(t *testing.T, seed uint64) (hash string) {
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, &gosimnet.SimNetConfig{Seed: seed, MinHop: time.Millisecond, MaxHop: 30 * time.Millisecond,
			Link: gosimnet.LinkConfig{Loss: 0.3, Duplicate: 0.1, Ordering: gosimnet.Unordered}})
		manyAddresses(t, s)
		done := make(chan bool)
		const hosts = 6
		for i := range hosts {
			h := s.Host(fmt.Sprint("h", i))
			go func() {
				for _, name := range []string{"h0.", "h1.", "many.", "nobody."} {
					h.Resolver().LookupHost(context.Background(), name)
				}
				done <- true
			}()
		}
		for range hosts {
			<-done
		}
		time.Sleep(time.Minute)
		hash = s.TraceHash()
	})
	return hash
}

func TestLookupsRepeat(t *testing.T) {
	want := lookups(t, 1)
	for range 20 {
		if got := lookups(t, 1); got != want {
			t.Fatal("the same seed gave another run")
		}
	}
	if lookups(t, 2) == want {
		t.Error("another seed gave the same run")
	}
}
