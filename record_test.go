package gosimnet_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// rough is a link on which everything happens to datagrams.
func rough() gosimnet.LinkConfig {
	return gosimnet.LinkConfig{Latency: gosimnet.Exponential(5*ms, 30*ms), Ordering: gosimnet.Unordered, Loss: 0.2, Duplicate: 0.2, Corrupt: 0.1, Reorder: 0.1,
		BitsPerSecond: 1e6, QueueBytes: 1000, Overflow: gosimnet.DropRandom}
}

// overheard sends numbered datagrams from a to b and to c, while c is cut off for a while, and tells every byte that arrives, and when.
func overheard(t *testing.T, seed uint64, cfg gosimnet.LinkConfig, begin func(s *gosimnet.Simnet)) (log []string, stats gosimnet.LinkStats) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, &gosimnet.SimNetConfig{Seed: seed, Link: cfg})
		for _, h := range []string{"a", "b", "c"} {
			s.Host(h)
		}
		begin(s)
		from := newSender(t, s, "a")
		start := time.Now()
		logs := make(chan []string, 2)
		for _, h := range []string{"b", "c"} {
			sink := listenUDP(t, s, h, ":7")
			time.AfterFunc(10*time.Second, func() { sink.Close() })
			go func() {
				var log []string
				for buf := make([]byte, 100); ; {
					n, _, err := sink.ReadFrom(buf)
					if err != nil {
						logs <- log
						return
					}
					log = append(log, fmt.Sprintf("%s %x %v", h, buf[:n], time.Since(start)))
				}
			}()
		}
		for i := range 200 {
			for _, h := range []string{"b", "c"} {
				fmt.Fprintf(to{from.socket, udpAddr(s.Host(h).Addrs()[0].AsSlice(), 7)}, "number %d to %s", i, h)
			}
			time.Sleep(ms)
		}
		time.Sleep(20 * time.Second)
		log = append(<-logs, <-logs...)
		stats = statsOf(t, s, "a", "b")
	})
	slices.Sort(log)
	return log, stats
}

func TestRecordedFatesAreReplayedOnOtherLinks(t *testing.T) {
	var rec *gosimnet.Recording
	want, stats := overheard(t, 1, rough(), func(s *gosimnet.Simnet) { rec = s.RecordFates() })
	if stats.Lost.Packets < 20 || stats.Duplicated.Packets < 20 || stats.Corrupted.Packets < 10 {
		t.Errorf("little happened: %v", stats)
	}
	var saved bytes.Buffer
	n, err := rec.WriteTo(&saved)
	if err != nil || n != int64(saved.Len()) || strings.Count(saved.String(), "\n") != 400 {
		t.Fatalf("%d bytes and %d lines written: %v", n, strings.Count(saved.String(), "\n"), err)
	}
	read, err := gosimnet.ReadRecording(bytes.NewReader(saved.Bytes()))
	must(t, err)
	for name, cfg := range map[string]gosimnet.LinkConfig{"plain": {}, "the same": rough(), "losing all": {Loss: 1}, "slow": {BitsPerSecond: 100}} {
		for which, rec := range map[string]*gosimnet.Recording{"made": rec, "saved": read} {
			got, _ := overheard(t, 1, cfg, func(s *gosimnet.Simnet) { s.ReplayFates(rec) })
			if !slices.Equal(got, want) {
				t.Errorf("the recording that was %s, on a link that is %s: %d lines, want %d, the same", which, name, len(got), len(want))
			}
		}
	}
	got, _ := overheard(t, 1, gosimnet.LinkConfig{}, func(s *gosimnet.Simnet) { s.ReplayFates(rec)() })
	if len(got) != 400 {
		t.Errorf("a replay that was stopped: %d of 400 arrive on a plain link", len(got))
	}
}

func TestARecordingCanBeEdited(t *testing.T) {
	fates := `{"network":"udp","from":"a","to":"b","srcPort":9,"dstPort":7,"flow":0,"n":1,"lost":"loss"}

{"network":"udp","from":"a","to":"b","srcPort":9,"dstPort":7,"n":2,"delays":[50000000,60000000]}
{"network":"udp","from":"a","to":"b","srcPort":9,"dstPort":7,"n":3}
`
	rec, err := gosimnet.ReadRecording(strings.NewReader(fates))
	must(t, err)
	synctest.Test(t, func(t *testing.T) {
		s := someHosts(t)
		stop := s.ReplayFates(rec)
		a := newSender(t, s, "a")
		a.send(4, "b", "b", "b", "b", "b", "c")
		time.Sleep(time.Second)
		wantDelivered(t, s, "the second is lost, the third is late and comes twice", "a→b@10ms a→b@10ms a→b@10ms a→c@10.01ms a→b@50ms a→b@60ms")
		stop()
		stop()
	})
}

func TestRecordedFatesOverruleRulesAndPartitions(t *testing.T) {
	rec, err := gosimnet.ReadRecording(strings.NewReader(`{"network":"udp","from":"a","to":"b","srcPort":9,"dstPort":7,"n":0,"delays":[30000000]}
{"network":"udp","from":"a","to":"b","srcPort":9,"dstPort":7,"n":1,"lost":"partition"}`))
	must(t, err)
	synctest.Test(t, func(t *testing.T) {
		s := someHosts(t)
		s.ReplayFates(rec)
		asked := 0
		s.AddRule(func(*gosimnet.Packet) gosimnet.Verdict { asked++; return gosimnet.Drop() })
		must(t, second(s.Partition(gosimnet.DropPackets, []string{"a"}, []string{"b", "c"})))
		newSender(t, s, "a").send(4, "b", "b", "b", "c", "d")
		time.Sleep(time.Second)
		wantDelivered(t, s, "the one whose fate it is", "a→b@30ms")
		stats := statsOf(t, s, "a", "b")
		if asked != 3 || stats.LostTo[gosimnet.CausePartition].Packets != 2 {
			t.Errorf("the rule was asked %d times; %v", asked, stats)
		}
	})
}

func TestStreamsAreRecordedAndReplayed(t *testing.T) {
	run := func(cfg gosimnet.LinkConfig, begin func(s *gosimnet.Simnet)) (took time.Duration, lost uint64) {
		synctest.Test(t, func(t *testing.T) {
			s := newNet(t, &gosimnet.SimNetConfig{Link: cfg})
			s.Host("a")
			s.Host("b")
			// Acknowledgements are not recorded: the way back is the same in both runs, and the way there cuts streams into small segments.
			setLink(t, s, "b", "a", straight(10*ms))
			setLink(t, s, "a", "b", cfg)
			begin(s)
			client, server := streamPair(t, s)
			start := time.Now()
			go func() {
				client.Write(make([]byte, 100_000))
				client.Close()
			}()
			if n, err := io.Copy(io.Discard, server); n != 100_000 || err != nil {
				t.Errorf("read %d bytes: %v", n, err)
			}
			took, lost = time.Since(start), statsOf(t, s, "a", "b").Lost.Packets
		})
		return took, lost
	}
	var rec *gosimnet.Recording
	bad := gosimnet.LinkConfig{Latency: gosimnet.Uniform(5*ms, 20*ms), Loss: 0.2}
	want, lost := run(bad, func(s *gosimnet.Simnet) { rec = s.RecordFates() })
	if lost < 5 || want < 300*ms {
		t.Errorf("%d packets lost, %v taken", lost, want)
	}
	if got, again := run(gosimnet.LinkConfig{BitsPerSecond: gosimnet.Gbps100}, func(s *gosimnet.Simnet) { s.ReplayFates(rec) }); !around(got, want) || again != lost {
		t.Errorf("replayed: %v and %d lost, want %v and %d", got, again, want, lost)
	}
}

func TestFates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := someHosts(t)
		setLink(t, s, "a", "c", gosimnet.LinkConfig{Loss: 1})
		setLink(t, s, "a", "d", gosimnet.LinkConfig{Duplicate: 1, Corrupt: 1})
		a := newSender(t, s, "a")
		a.send(4, "b") // before the recording
		rec := s.RecordFates()
		a.send(4, "b", "c", "d")
		time.Sleep(time.Second)
		a.send(4, "b") // under way when the recording stops
		rec.Stop()
		rec.Stop()
		time.Sleep(time.Second)
		a.send(4, "b") // after it
		time.Sleep(time.Second)
		var got []string
		for _, f := range rec.Fates() {
			got = append(got, fmt.Sprintf("%s %s:%d→%s:%d #%d/%d %v %q %v", f.Network, f.From, f.SrcPort, f.To, f.DstPort, f.Flow, f.N, f.Delays, f.Lost, f.Corrupted))
		}
		want := []string{`udp a:9→b:7 #0/1 [10.000001ms] "" false`, `udp a:9→c:7 #0/0 [] "loss" false`, `udp a:9→d:7 #0/0 [10.000001ms 10.000001ms] "" true`, `udp a:9→b:7 #0/2 [] "" false`}
		if !slices.Equal(got, want) {
			t.Errorf("fates:\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		clear(rec.Fates()[0].Delays)
		if d := rec.Fates()[0].Delays[0]; !around(d, 10*ms) {
			t.Errorf("who looks at a fate can change it: %v", d)
		}
	})
}

func TestFlowsOfOneNameAreNumbered(t *testing.T) {
	var rec *gosimnet.Recording
	run := func(cfg gosimnet.LinkConfig, begin func(s *gosimnet.Simnet)) (got string) {
		synctest.Test(t, func(t *testing.T) {
			s := twoHosts(t, cfg)
			begin(s)
			for range 3 { // the same port each time
				a := newSender(t, s, "a")
				a.send(4, "b", "b", "b")
				time.Sleep(time.Second)
				a.socket.Close()
			}
			got = delivered(s)
		})
		return got
	}
	want := run(gosimnet.LinkConfig{Loss: 0.5}, func(s *gosimnet.Simnet) { rec = s.RecordFates() })
	if got := run(gosimnet.LinkConfig{}, func(s *gosimnet.Simnet) { s.ReplayFates(rec) }); got != want {
		t.Errorf("replayed: %s, want %s", got, want)
	}
	if got := run(gosimnet.LinkConfig{}, func(s *gosimnet.Simnet) { s.ReplayFates(nil) }); strings.Count(got, "a→b") != 9 {
		t.Errorf("a replay of nothing: %s", got)
	}
}

func TestRecordingsThatCannotBeReadAreErrors(t *testing.T) {
	for text, names := range map[string][]string{
		"{\"n\":0}\nnonsense\n":    {"line 2"},
		"{\"n\":-1}\n":             {"line 1"},
		"\n\n{\"delays\":[0]}\n":   {"line 3", "0s"},
		"{\"delays\":[1,-5]}\n":    {"line 1", "-5ns"},
		"{\"delays\":\"soon\"}\n":  {"line 1"},
		"{\"delays\":[1e30]}\n":    {"line 1"},
		"{\"srcPort\":70000}\n":    {"line 1"},
		"[\"udp\"]":                {"line 1"},
		strings.Repeat("x", 1<<20): {"recording"},
	} {
		errorNames(t, second(gosimnet.ReadRecording(strings.NewReader(text))), names...)
	}
	errorNames(t, second(gosimnet.ReadRecording(nil)), "nothing")
	if _, err := gosimnet.ReadRecording(iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a reader that fails: %v", err)
	}
	var none *gosimnet.Recording
	none.Stop()
	if n, err := none.WriteTo(io.Discard); n != 0 || err != nil || len(none.Fates()) != 0 {
		t.Errorf("no recording: %d bytes, %v", n, err)
	}
	s := newNet(t, nil)
	s.Close()
	rec := s.RecordFates()
	rec.Stop()
	s.ReplayFates(rec)()
	s.Capture(nil).Stop()
}

func TestWritersThatFailEndARecording(t *testing.T) {
	rec, err := gosimnet.ReadRecording(strings.NewReader("{\"n\":1}\n{\"n\":2}\n"))
	must(t, err)
	r, w := io.Pipe()
	r.CloseWithError(io.ErrShortWrite)
	if n, err := rec.WriteTo(w); n != 0 || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestCapturedPacketsAreSentOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, straight(10*ms))
		s.Classify(letter)
		sink, from := listenUDP(t, s, "b", ":7"), listenUDP(t, s, "a", ":9")
		dst := udpAddr(s.Host("b").Addrs()[0].AsSlice(), 7)
		read := func(n int) (got []string) {
			buf := make([]byte, 100)
			for range n {
				m, _, err := sink.ReadFrom(buf)
				must(t, err)
				got = append(got, string(buf[:m]))
			}
			return got
		}
		from.WriteTo([]byte("Vote before"), dst)
		time.Sleep(ms)
		capture := s.Capture(func(p *gosimnet.Packet) bool { return p.Kind == "udp:V" })
		for _, text := range []string{"Vote 1", "Append 1", "Vote 2"} {
			from.WriteTo([]byte(text), dst)
			time.Sleep(ms)
		}
		capture.Stop()
		from.WriteTo([]byte("Vote 3"), dst)
		if got := read(5); len(got) != 5 {
			t.Errorf("arrived: %q", got)
		}
		var kept []string
		for _, p := range capture.Packets() {
			kept = append(kept, fmt.Sprintf("%s→%s:%d %s", p.From, p.To, p.Dst.Port(), p.Payload))
			clear(p.Payload) // it is a copy
		}
		if !slices.Equal(kept, []string{"a→b:7 Vote 1", "a→b:7 Vote 2"}) {
			t.Errorf("kept: %q", kept)
		}
		from.Close() // stale packets need no sender
		must(t, second(s.AlterHost("a", gosimnet.SHUTDOWN)))
		time.Sleep(time.Hour)
		for range 2 {
			start := time.Now()
			if n := capture.Resend(); n != 2 {
				t.Errorf("%d sent once more", n)
			}
			if got := read(2); !slices.Equal(got, []string{"Vote 1", "Vote 2"}) || !around(time.Since(start), 10*ms) {
				t.Errorf("arrived: %q after %v", got, time.Since(start))
			}
		}
		if stats := statsOf(t, s, "a", "b"); stats.Duplicated.Packets != 4 || stats.Sent.Packets != 5 || stats.Delivered.Packets != 9 {
			t.Errorf("%v", stats)
		}
		if got := s.Delivered(); got["udp:V"] != 8 || got["udp:A"] != 1 {
			t.Errorf("by kind: %v", got)
		}
		must(t, second(s.CutLink(gosimnet.DropPackets, "a", "b")))
		capture.Resend()
		time.Sleep(time.Second)
		if stats := statsOf(t, s, "a", "b"); stats.LostTo[gosimnet.CausePartition].Packets != 2 {
			t.Errorf("%v", stats)
		}
	})
}

func TestCapturedMessagesAndStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, straight(10*ms))
		capture := s.Capture(nil)
		l, err := s.Host("b").Listen("simnet", "service")
		must(t, err)
		c, err := s.Host("a").Dial("simnet", "service")
		must(t, err)
		peer, err := l.Accept()
		must(t, err)
		must(t, second(c.Write([]byte("message"))))
		buf := make([]byte, 100)
		must(t, second(peer.Read(buf)))
		client, server := streamPair(t, s)
		data := bytes.Repeat([]byte("stream"), 1000)
		client.Write(data)
		must(t, second(io.ReadFull(server, make([]byte, len(data)))))
		sum := sha256.New()
		for _, p := range capture.Packets() {
			if p.Network == "tcp" {
				sum.Write(p.Payload)
			}
		}
		if want := sha256.Sum256(data); !bytes.Equal(sum.Sum(nil), want[:]) {
			t.Error("the captured segments are not what was sent")
		}
		if n := capture.Resend(); n != 1 {
			t.Errorf("%d packets sent once more, want the message alone: a stream would hide it", n)
		}
		if n, err := peer.Read(buf); string(buf[:n]) != "message" || err != nil {
			t.Errorf("read %q, %v", buf[:n], err)
		}
		peer.Close()
		c.Close()
		if n := capture.Resend(); n != 0 {
			t.Errorf("%d messages of a circuit that is over sent once more", n)
		}
	})
}

// A message that is sent once more takes room in its circuit, and gives back no more than that when it is read.
func TestMessagesSentOnceMoreLeaveTheRoomAsItWas(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		client, server := openCircuit(t, s, "a", "b")
		message := make([]byte, 100<<10)
		fit := func() (n int) {
			noError(t, client.SetWriteDeadline(time.Now().Add(time.Second)))
			for {
				if _, err := client.Write(message); err != nil {
					return n
				}
				n++
			}
		}
		drain := func() {
			noError(t, server.SetReadDeadline(time.Now().Add(time.Second)))
			for {
				if _, err := server.Read(message); err != nil {
					return
				}
			}
		}
		capture := s.Capture(nil)
		before := fit()
		capture.Stop()
		drain()
		if n := capture.Resend(); n != before {
			t.Errorf("%d messages are sent once more, want %d", n, before)
		}
		drain()
		if after := fit(); after != before {
			t.Errorf("%d messages fit after that, and %d before", after, before)
		}
	})
}
