// Package etcdraft holds scenarios of go.etcd.io/raft/v3 over a simulated network: leaders that are cut off in one
// direction or both, with and without CheckQuorum and PreVote, power cuts, and bad weather. That module is the
// protocol without clock, disk or network; the scenarios give it those by a loop of their own in one goroutine for
// each node, in which messages are datagrams and the read deadline is the clock:
//
//	socket, err := host.ListenPacket("udp", ":2380")
//	socket.SetReadDeadline(tick)
//	n, _, err := socket.ReadFrom(buf) // os.ErrDeadlineExceeded: rn.Tick(); otherwise rn.Step(message)
//	for ready := rn.Ready(); …; {    // write to the disk, then:
//		socket.WriteTo(message, peers[message.GetTo()])
//	}
//
// With one goroutine for each node, a start of the nodes one after the other, and crypto/rand, of which the module
// draws its election time-outs, seeded by testing/cryptotest, all runs are alike.
package etcdraft
