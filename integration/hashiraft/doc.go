// Package hashiraft holds scenarios of github.com/hashicorp/raft over a simulated network: isolated leaders, power
// cuts with restarts from disks, and disks that forget. Raft runs unmodified, with its own NetworkTransport. All
// that it needs is a raft.StreamLayer, which is a listener of its host and a Dial by it:
//
//	type layer struct {
//		net.Listener
//		host *gosimnet.Host
//	}
//
//	func (l layer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
//		return l.host.DialTimeout("tcp", string(address), timeout)
//	}
//
//	listener, err := host.Listen("tcp", host.Name()+":7000") // not ":7000": raft tells its peers this address
//	transport := raft.NewNetworkTransport(layer{listener, host}, 3, time.Second, io.Discard)
//
// A node that is to lose its power is started by Host.Run, with its stores, which are its disk, made outside of
// the function that Run calls, and everything else inside.
package hashiraft
