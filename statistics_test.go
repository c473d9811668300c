package gosimnet_test

import (
	"encoding/binary"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
)

// statistics skips a test of many packets and few goroutines while the race detector watches, which makes it take ten times as long.
func statistics(t *testing.T) {
	t.Helper()
	if raced {
		t.Skip("statistics, without the race detector")
	}
}

// arrival is a numbered datagram that has come.
type arrival struct {
	n        int
	sent, at time.Duration // since the volley began
}

func (a arrival) took() time.Duration { return a.at - a.sent }

// volley sends n numbered datagrams of a size from one host to another, gap apart, and lists those that arrive within a while after the last,
// in the order of arrival.
func volley(t *testing.T, s *gosimnet.Simnet, from, to string, n, size int, gap, while time.Duration) []arrival {
	t.Helper()
	return volleyAt(t, s, from, to, n, size, func() time.Duration { return gap }, while)
}

// volleyAt is volley with gaps that differ.
func volleyAt(t *testing.T, s *gosimnet.Simnet, from, to string, n, size int, gap func() time.Duration, while time.Duration) []arrival {
	t.Helper()
	sink := listenUDP(t, s, to, ":7")
	defer sink.Close()
	socket := listenUDP(t, s, from, ":0")
	defer socket.Close()
	dst := udpAddr(s.Host(to).Addrs()[0].AsSlice(), 7)
	start := time.Now()
	sent := make([]time.Duration, n)
	var got []arrival
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 64<<10)
		for {
			m, _, err := sink.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			if m != max(size, 4) {
				t.Errorf("a datagram of %d bytes, want %d", m, size)
			}
			i := int(binary.LittleEndian.Uint32(buf))
			got = append(got, arrival{i, sent[i], time.Since(start)})
		}
	}()
	b := make([]byte, max(size, 4))
	for i := range n {
		sent[i] = time.Since(start)
		binary.LittleEndian.PutUint32(b, uint32(i))
		if _, err := socket.WriteTo(b, dst); err != nil {
			t.Fatal(err)
		}
		if d := gap(); d > 0 {
			time.Sleep(d)
		}
	}
	time.Sleep(while)
	sink.Close()
	<-done
	return got
}

// listenUDP opens a socket whose receive queue is never full.
func listenUDP(t *testing.T, s *gosimnet.Simnet, host, address string) *gosimnet.PacketConn {
	t.Helper()
	c, err := s.Host(host).ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	p := c.(*gosimnet.PacketConn)
	if err := p.SetReadBuffer(1 << 30); err != nil {
		t.Fatal(err)
	}
	return p
}

// numbers are those of the arrivals, in their order.
func numbers(as []arrival) []int {
	ns := make([]int, 0, len(as))
	for _, a := range as {
		ns = append(ns, a.n)
	}
	return ns
}

// delays are how long the arrivals took, in seconds, ascending.
func delays(as []arrival) []float64 {
	ds := make([]float64, 0, len(as))
	for _, a := range as {
		ds = append(ds, a.took().Seconds())
	}
	slices.Sort(ds)
	return ds
}

// near fails unless got is within a fraction of want.
func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within*math.Abs(want)) {
		t.Errorf("%s: %.6g, want %.6g within %g %%", what, got, want, 100*within)
	}
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

func deviation(xs []float64) float64 {
	m, sum := mean(xs), 0.0
	for _, x := range xs {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / float64(len(xs)-1))
}

// distance is Kolmogorov's and Smirnov's: how far the distribution of ascending samples is from a theoretical one.
// Of 100,000 samples it exceeds 0.0062 once in a thousand times.
func distance(samples []float64, cumulative func(x float64) float64) float64 {
	n, d := float64(len(samples)), 0.0
	for i, x := range samples {
		f := cumulative(x)
		d = max(d, math.Abs(f-float64(i)/n), math.Abs(float64(i+1)/n-f))
	}
	return d
}

// around reports whether two durations differ by less than a microsecond.
func around(a, b time.Duration) bool { return (a - b).Abs() < time.Microsecond }

func udpAddr(ip net.IP, port int) *net.UDPAddr { return &net.UDPAddr{IP: ip, Port: port} }

// errorNames fails unless err says all that is wanted.
func errorNames(t *testing.T, err error, wants ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one that names %q", wants)
		return
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %q", err, want)
		}
	}
}

// settingError is what SetLink says of a config; New, SetUplink and SetDownlink must say as much.
func settingError(t *testing.T, cfg gosimnet.LinkConfig) error {
	t.Helper()
	if _, err := gosimnet.New(&gosimnet.SimNetConfig{Link: cfg}); err == nil {
		t.Errorf("New takes %+v", cfg)
	}
	s := newNet(t, nil)
	s.Host("a")
	for _, set := range []func(string, gosimnet.LinkConfig) error{s.SetUplink, s.SetDownlink} {
		if err := set("a", cfg); err == nil {
			t.Errorf("SetUplink or SetDownlink takes %+v", cfg)
		}
	}
	return s.SetLink("", "", cfg)
}
