// Package libp2p runs github.com/libp2p/go-libp2p with its QUIC transport, and go-libp2p-pubsub on top of it, over
// simulated UDP: twenty peers whose gossip gets through partitions. The QUIC transport has hooks for sockets and for
// routes:
//
//	sockets := quicreuse.OverrideListenUDP(func(proto string, laddr *net.UDPAddr) (net.PacketConn, error) {
//		return host.ListenPacket(proto, laddr.String())
//	})
//	routes := quicreuse.OverrideSourceIPSelector(func() (quicreuse.SourceIPSelector, error) {
//		return route{ip}, nil // its PreferredSourceIPForDestination is always host.Addrs()[0]
//	})
//	connections := func(
//		r quic.StatelessResetKey, k quic.TokenGeneratorKey, o ...quicreuse.Option,
//	) (*quicreuse.ConnManager, error) {
//		cm, err := quicreuse.NewConnManager(r, k, o...)
//		t.Cleanup(func() { cm.Close() }) // a peer does not close what it is given, and a goroutine would outlive the bubble
//		return cm, err
//	}
//	peer, err := libp2p.New(libp2p.QUICReuse(connections, sockets, routes), libp2p.Transport(libp2pquic.NewTransport),
//		libp2p.ListenAddrStrings("/ip4/"+host.Addrs()[0].String()+"/udp/4001/quic-v1"), libp2p.DisableRelay())
//
// The tests here make the peer of its parts, a swarm and a basic host, as libp2p.New does: the package libp2p itself
// also imports webtransport-go, whose last version, 0.13.0, does not build with quic-go 0.65, which this module needs
// for other tests. What they use of libp2p does. (go-libp2p-pubsub is 0.18, because 0.19 wants Go 1.26.6, and this
// module is content with 1.26.0.) Peers listen on the host's own address, not on 0.0.0.0, for which libp2p would ask
// the machine's real interfaces.
package libp2p
