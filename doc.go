// Package gosimnet is a network inside one process, for tests. Its hosts hand out net.Conn, net.Listener and net.PacketConn values that behave as those
// of package net do on Linux. The test decides what the network does to them: latency, loss, partitions, power cuts.
//
// In a bubble of testing/synctest the network lives by the bubble's clock, so that an hour of it takes milliseconds, and the same seed gives the same run. Outside
// bubbles the same code runs on the wall clock.
//
//	func TestService(t *testing.T) {
//		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
//			server, client := net.Host("server"), net.Host("client")
//			listener, err := server.Listen("tcp", ":80")
//			if err != nil {
//				t.Fatal(err)
//			}
//			go http.Serve(listener, handler)
//			c := http.Client{Transport: &http.Transport{DialContext: client.DialContext}}
//			resp, err := c.Get("http://server/") // 40 ms later, in virtual time
//			…
//		})
//	}
//
// Package simtest, beside this one, makes the bubble and the network, runs several seeds, and reports failures. The package in examples/quickstart is a
// longer story to read and to run.
//
// # Hosts and names
//
// [Simnet.Host] makes a host on first use, with an IPv4 address from 10.0.0.0/8 and an IPv6 address from fd00::/64; [Simnet.AddHost] makes one with addresses of one's own
// choice. Dial and Listen understand host names, IP addresses, "localhost" and an empty host. Each host has all ports to itself, for streams and for datagrams. Port 0 is
// a free one, from 49152 upwards. What is bound to 127.0.0.1 reaches its own host alone: a dial or a datagram from there to another host is EINVAL, and
// from ::1 nobody answers.
//
// Dial resolves names at once. [Host.Resolver] is a *net.Resolver for software that wants one: it asks a name server, the host "dns", over the network. Both know all hosts by their names, and
// what [Simnet.AddRecord] adds. With [Host.SetView] a name means something else to one host, or fails for it.
//
// A service takes its network as a [Network], or as the two or three functions that it needs: a *Host in tests, [OS] in production.
// In a bubble it must not look up names by package net's own resolver, which would wait outside of the bubble.
//
// # Links and latency
//
// A link is one direction between two hosts. Its latency is one-way, whatever sets it: a round trip costs both directions'. The default is 10 ms. [SimNetConfig] sets the latency
// of all links, [Simnet.SetLink] everything of one or several: the distribution of latency, loss, duplication, corruption, reordering, rate, queue and MTU.
// [Simnet.SetUplink] and [Simnet.SetDownlink] limit the rate of all that a host sends or receives. A host reaches itself in 10 µs, and
// nothing of this applies there, unless SetLink names the host as both origin and target.
//
// Every packet that crosses a link takes its latency and a few nanoseconds more, because arrivals are kept off the whole microseconds, at
// which timers of tests fire. Compare times to the microsecond.
//
// # Streams
//
// "tcp", "tcp4" and "tcp6" are streams: see [Conn]. No byte of a stream is ever lost, doubled, reordered or changed. What the network does to it shows as delay,
// and in the end as an error:
//
//   - A dial takes a round trip. If nobody listens it is ECONNREFUSED after that. If nobody answers, it is asked again after 1, 3, 7, 15, 31 and 63 s,
//     and after 127 s it is ETIMEDOUT. A listener whose backlog is full does not answer.
//   - Write copies into a buffer and returns; it waits only when the buffer, 256 KiB, is full. The receiver holds as much again.
//   - A segment that is lost is sent again after twice the round trip, but at least 200 ms, and then after twice as long each time, up to two minutes; the bytes after it
//     wait for it. After 924.6 s without an answer the connection ends with ETIMEDOUT. Acknowledgements cross the link in the other direction,
//     and get lost there, too.
//   - Close delivers what was written, and then the end of the stream. If data has arrived that was not read, it resets the connection instead.
//   - A reset is reported once, as ECONNRESET, by the call that meets it first; after that, Read is io.EOF and Write is EPIPE. After the peer has closed, the first Write
//     succeeds; when its answer has come back, Writes are EPIPE.
//   - A host that loses power says nothing. Its peers learn of it when they send: nobody answers while it is off; a reset comes when it is on again. An idle peer learns of it by
//     keep-alive probes, 150 s after the last sign of life by default.
//
// Errors are those of package net: a [net.OpError] around a syscall.Errno, os.ErrDeadlineExceeded, net.ErrClosed or a context's error; io.EOF comes bare.
//
// # Datagrams
//
// "udp", "udp4" and "udp6" are datagrams: see [PacketConn]. They may be lost, and, if the link is set so, doubled, corrupted and reordered. Sending never waits. A full receive queue loses
// what comes last. A connected socket is told once, by ECONNREFUSED, that it has sent to a closed port. There are multicast groups, see
// [Host.ListenMulticastUDP], and broadcasts, to 255.255.255.255 and, within 10.0.0.0/8, to 10.255.255.255. A datagram to several hosts is a packet for each of them, over its own link, with a fate of its
// own; the sender's host is one of them, as on Linux. Nobody is told that such a packet has met a closed port.
//
// # Message circuits
//
// "simnet" and "gosimnet" are message circuits: see [Circuit]. They open and close like streams, but one Write is one message, and one Read returns one message or a part of it. A message that is
// lost leaves a hole. Their addresses are names, any strings, each used once in the network. They are what earlier versions of this package had.
//
// # Faults
//
// All faults act at once, may be made while the network runs, and go on until they are mended. They are:
//
//   - partitions: [Simnet.Partition] between groups of hosts, [Simnet.CutLink] in one direction, [Simnet.PartitionShaped] in shapes with names. What they stop is lost, kept until
//     the partition heals, or refused;
//   - network cards that lose what they send or receive, with a probability: [Simnet.FaultHost] and [Simnet.FaultCircuit], and the Repair functions;
//   - hosts that are cut off, or lose power: [Simnet.AlterHost]. A power cut ends the host's connections, listeners and [SimTimer] values without a word. Software that [Host.Run] has started is
//     told by its context, and started again when the power is back. What the software holds in memory the simulation cannot take from it: keep it in variables of the
//     function that Run calls;
//   - links that deliver nothing for a while, and everything afterwards: [Simnet.Clog], [Simnet.SwizzleClog]; and links that lose what is under way: [Simnet.ClearLink];
//   - connections that are reset: [Simnet.ResetConns];
//   - a function that decides about every packet: [Simnet.AddRule];
//   - faults that come and go by themselves: [Simnet.SetWeather].
//
// A packet crosses a link only if nothing stops it when it leaves, nor when it arrives. [Simnet.Heal] mends everything but rules, which stay, and the power that the test itself has taken. A [SimnetBatch] makes several
// faults at one instant, or none.
//
// # Looking
//
// [Simnet.GetSimnetSnapshot] is a picture of all hosts and connections: their health, what is under way, and who waits for what. [Simnet.Trace] lists the last events, [Simnet.TraceHash] condenses
// all of them, and [Simnet.LinkStats] and [Simnet.AllLinkStats] count what became of packets, by cause. [Simnet.Capture] keeps packets, and can send them once
// more when they are stale. [Simnet.RecordFates] writes down what became of each packet, and [Simnet.ReplayFates] lets the same become of it in another run.
// A snapshot also tells who is apart from whom in the partitions that were drawn at random, which links and weathers have been set, and the last faults, however much has
// happened since.
//
// # Time and determinism
//
// The same seed gives the same run, event by event, at any GOMAXPROCS, with and without the race detector, if the software under test lets it. Every random draw is made from the seed, the names and
// ports of the two ends, and the number of the packet between them, so that one connection's fate does not depend on what others do. What is due at the same time happens in an
// order that does not depend on chance. At most one goroutine is woken at an instant, but for those whose timers and deadlines are due exactly then.
//
// What a test must do, so that its runs repeat:
//
//   - run in a bubble, and make the network there;
//   - draw its own random numbers from a source that it seeds, by [Simnet.Seed] say, not from the functions of math/rand. Keys and nonces are random, too; testing/cryptotest makes them repeat;
//   - not depend on which case a select takes when several are ready, for it chooses at random;
//   - iterate over maps in an order of its own, where the order decides what is sent first.
//
// What the network cannot make repeat:
//
//   - two goroutines of one host that dial the same address at the same instant: which of them gets which connection is chance;
//   - goroutines that make hosts at the same instant: addresses are given out in the order of creation. Draws and the trace go by names, and are the same;
//   - two goroutines of one host that look up the same name at the same instant, by resolvers of their own: which of them asks first is chance;
//   - two goroutines of one host that listen on a free port, ":0", at the same instant: which of them gets which port is chance;
//   - software that opens a listener or a socket at the very instant at which a call takes or gives its host the power, or that uses a connection at
//     the instant at which a call to ResetConns resets it: whether it still succeeds is chance;
//   - two goroutines that write to one connection at the same instant: whose bytes come first is chance; sizes and times are the same, unless rules look at packets.
//
// simtest.CheckDeterminism runs a test twice, and shows the first event that differs. With SimNetConfig.BarrierOff runs do not repeat.
//
// A goroutine that waits for a sync.Mutex is not at rest, and lets no virtual time pass. Software that holds a mutex while a Write waits for room, and has another goroutine that wants it, stops the
// bubble's clock for good, which synctest does not report but simtest.Run does: several large uploads at once over one HTTP/2, TLS or SSH connection do it, and one over HTTP/2 whose response
// is read meanwhile. A SendBuffer that is larger than such a burst prevents it. Nothing does if the mutex is held during a dial: test such software outside of bubbles.
// Two goroutines that use a TLS connection whose handshake is not over stop it, too, for one of them reads the peer's part of it with the mutex held: call Handshake first.
//
// A network must be used by the clock that it was made with: one that was made in a bubble only in that bubble, any other only outside of bubbles. Calls from the
// other side return an error. Calls from another bubble are not recognised, and the runtime ends the process. Close a network before the bubble's function
// returns.
//
// # What is not modelled
//
//   - Congestion control and slow start: a stream sends what the peer's window allows, and the link's queue decides the rest. There is no fast retransmission and no selective
//     acknowledgement: a lost segment is always found out by the retransmission time-out. Throughput over lossy links is therefore not that of a real stack.
//   - Acknowledgements have no packets of their own: counters, rules and queues do not see them. They take the latency of the way back and get lost there, but take no part in its rate. None
//     is delayed in the hope of another one.
//   - Nagle's algorithm: every Write that the window allows leaves at once, in one segment with what else is written at that instant. SetNoDelay does nothing.
//   - Headers: rates and counters are in bytes of payload.
//   - Path MTU discovery. Fragments of a datagram are not packets of their own; a datagram is lost if one of its fragments would be. Streams on links that neither lose packets nor limit their rate, and
//     at whose packets no rule looks, have segments of up to 64 KiB.
//   - Simultaneous opening, and urgent data.
//   - Routing, ARP, TTL and NAT: every host reaches every other directly, and so do broadcasts and what is sent to groups.
//   - File descriptors: there is no SyscallConn and no File, and no Control function that sets options of sockets before they are bound. With SO_REUSEADDR and SO_REUSEPORT go several
//     sockets of one port, other than those of groups, and dials from the port that a listener has. Software that insists on *net.TCPConn does not run over it.
//   - The processor and the disk: software takes no virtual time, and a power cut spares what it has written.
//
// # Time zone
//
// Importing this package sets the environment variable TZ to UTC, because github.com/glycerine/idem, which it uses, does so. Local
// times in the process are UTC then.
package gosimnet
