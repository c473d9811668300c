package gosimnet_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// isOpError reports whether an error is what package net's calls give.
func isOpError(err error, op string) bool {
	var oe *net.OpError
	return errors.As(err, &oe) && oe.Op == op && oe.Err != nil
}

func FuzzAddresses(f *testing.F) {
	for _, network := range []string{"tcp", "tcp4", "udp6", "simnet", "", "unix"} {
		for _, address := range []string{"", ":", ":0", "b:80", "localhost:http", "[::]:1", "[fe80::1%eth0]:9", "10.0.0.2:65536", "b:-1", "b:80:80", "224.0.0.1:1", "\x00:1", "b.:80", "[b]:1"} {
			f.Add(network, address)
		}
	}
	f.Fuzz(func(t *testing.T, network, address string) {
		synctest.Test(t, func(t *testing.T) {
			s := threeHosts(t, nil)
			a, b := s.Host("a"), s.Host("b")
			c, err := a.DialTimeout(network, address, 30*time.Second)
			if err != nil && !isOpError(err, "dial") {
				t.Errorf("Dial(%q, %q): %#v", network, address, err)
			}
			if (c == nil) == (err == nil) {
				t.Errorf("Dial(%q, %q): %v beside %v", network, address, c, err)
			}
			l, err := b.Listen(network, address)
			if err != nil && !isOpError(err, "listen") {
				t.Errorf("Listen(%q, %q): %#v", network, address, err)
			}
			if err == nil {
				again := l.Addr().String()
				if _, err := b.Listen(network, again); err == nil {
					t.Errorf("two listen on %s %q", network, again)
				}
				noError(t, l.Close())
				_, err = b.Listen(network, again)
				noError(t, err)
				_, err = a.DialTimeout(network, again, time.Second)
				if err != nil && !isOpError(err, "dial") {
					t.Errorf("Dial(%q, %q): %#v", network, again, err)
				}
			}
			p, err := b.ListenPacket(network, address)
			if err != nil && !isOpError(err, "listen") {
				t.Errorf("ListenPacket(%q, %q): %#v", network, address, err)
			}
			if err == nil {
				noError(t, p.Close())
				_, err = b.ListenPacket(network, p.LocalAddr().String())
				noError(t, err)
			}
		})
	})
}

func FuzzNamesOfFaults(f *testing.F) {
	for _, name := range []string{"", "a", "a:80", "b for a", "10.0.0.1:80", "[fd00::1]:80", "a:0", "a:http", ":80", "a:80:80", "a/2"} {
		f.Add(name, name)
	}
	f.Fuzz(func(t *testing.T, origin, target string) {
		synctest.Test(t, func(t *testing.T) {
			s := threeHosts(t, nil)
			openCircuit(t, s, "a", "b")
			for _, err := range []error{
				s.FaultCircuit(origin, target, drop(0.5), false), s.RepairCircuit(origin, true, true, true),
				second(s.AlterCircuit(origin, gosimnet.ISOLATE, false)), second(s.AlterHost(target, gosimnet.SHUTDOWN)),
				second(s.CutLink(gosimnet.DropPackets, origin, target)), second(s.Partition(gosimnet.DropPackets, []string{origin}, []string{target})),
			} {
				if err != nil && !strings.HasPrefix(err.Error(), "gosimnet: ") {
					t.Errorf("%q, %q: %v", origin, target, err)
				}
			}
			s.Heal()
			noError(t, s.AllHealthy(true, false))
			c, server := openCircuit(t, s, "a", "c")
			say(t, c, "alive")
			wantHeard(t, server, "alive")
		})
	})
}

func FuzzRecords(f *testing.F) {
	for _, record := range []string{"", "A 10.0.0.9", "AAAA fd00::9", "CNAME b", "TXT \"hello\"", "MX 10 mail", "SRV 1 2 3 b", "PTR b", "NS b", "A", "A x", "A 10.0.0.9 10.0.0.10", "\xff"} {
		f.Add("name.test", record)
		f.Add(record, "A 10.0.0.9")
	}
	f.Fuzz(func(t *testing.T, name, record string) {
		synctest.Test(t, func(t *testing.T) {
			s := threeHosts(t, nil)
			r := s.Host("a").Resolver()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := s.AddRecord(name, record); err != nil {
				if !strings.HasPrefix(err.Error(), "gosimnet: ") {
					var dns *net.DNSError
					var addr *net.AddrError
					if !errors.As(err, &dns) && !errors.As(err, &addr) {
						t.Errorf("AddRecord(%q, %q): %v", name, record, err)
					}
				}
				return
			}
			r.LookupHost(ctx, name)
			r.LookupTXT(ctx, name)
			r.LookupMX(ctx, name)
			s.Host("a").DialContext(ctx, "tcp", net.JoinHostPort(name, "80"))
			noError(t, s.RemoveRecords(name))
		})
	})
}

// The name server gets whatever software sends it.
func FuzzQuestions(f *testing.F) {
	f.Add([]byte{}, false)
	f.Add([]byte("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01b\x00\x00\x01\x00\x01"), false)
	f.Add([]byte("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"), false)
	f.Add([]byte("\x00\x13\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01b\x00\x00\x01\x00\x01"), true)
	f.Fuzz(func(t *testing.T, question []byte, stream bool) {
		synctest.Test(t, func(t *testing.T) {
			s := threeHosts(t, nil)
			network := "udp"
			if stream {
				network = "tcp"
			}
			c, err := s.Host("a").Resolver().Dial(context.Background(), network, "192.0.2.53:53")
			noError(t, err)
			c.SetDeadline(time.Now().Add(time.Minute))
			c.Write(question)
			c.Read(make([]byte, 4096))
			noError(t, c.Close())
		})
	})
}

func FuzzParseTrace(f *testing.F) {
	for _, text := range []string{"", "0", "1\n2\n", "1\n1\n5", "2\n1", "-1", "x", "99999999999999999999", "1\n\n2", "3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := gosimnet.ParseTrace(strings.NewReader(text))
		if (trace == nil) == (err == nil) {
			t.Fatalf("ParseTrace(%q): %v beside %v", text, trace, err)
		}
		if err != nil {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			s := threeHosts(t, &gosimnet.SimNetConfig{Link: gosimnet.LinkConfig{Trace: trace}})
			c, err := s.Host("a").Dial("udp", "b:53")
			noError(t, err)
			c.Write(make([]byte, 5000))
			time.Sleep(time.Second)
		})
	})
}
