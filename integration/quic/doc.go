// Package quic runs github.com/quic-go/quic-go and its http3, client and server, over simulated UDP: a transfer under
// loss and reordering, migration to another path, time-outs, path MTU discovery, and HTTP/3 across a power cut of the
// server. Nothing in quic-go is replaced. A Transport takes its socket from a host:
//
//	packets, err := network.Host("server").ListenPacket("udp", ":443")
//	server := &quic.Transport{Conn: packets} // server.Listen(tlsConfig, quicConfig), or http3.Server{…}.Serve(packets)
//	packets, err = network.Host("client").ListenPacket("udp", ":0")
//	client := &quic.Transport{Conn: packets}
//	address := &net.UDPAddr{IP: network.Host("server").Addrs()[0].AsSlice(), Port: 443}
//	conn, err := client.Dial(ctx, address, tlsConfig, quicConfig)
//	t.Cleanup(func() { client.Close(); packets.Close() })
//
// An http3.Transport takes a Dial function that does the same. Transport.Close leaves the socket open; close that as
// well.
//
// Only a socket with a SyscallConn can have the Don't Fragment bit, and quic-go looks for the path's MTU only with
// that bit; a simulated socket has no file descriptor. The test of the path MTU shows the few lines that give a
// socket what quic-go asks for. ECN and segmentation offload need the kernel, and are off.
//
// quic-go packs what it finds, in goroutines of its own, and what programs and the network do at the same instant is found by
// chance. Runs repeat if GOMAXPROCS is 1, bursts do not arrive at one instant (give links a rate), the keys of the TLS
// handshake fit one datagram (X25519), and programs pause before they write when something has arrived.
package quic
