// Package gossip holds scenarios of github.com/hashicorp/memberlist and github.com/hashicorp/serf over a simulated
// network: fifty nodes that find each other, lose packets, lose one of their two transports, lose a member, and
// are divided. Both run unmodified, over a memberlist.NodeAwareTransport of a simulated host's datagrams and
// streams, in transport_test.go: a socket, a listener, and a goroutine for each that passes on what comes.
// memberlist's own NetTransport opens real sockets. The wiring:
//
//	transport, err := newTransport(host) // a socket and a listener at port 7946, and Dial by the host
//	cfg := memberlist.DefaultLANConfig()
//	cfg.Name, cfg.Transport = host.Name(), transport
//	m, err := memberlist.Create(cfg) // for serf: serfConfig.MemberlistConfig = cfg
//	m.Join([]string{"n1/10.0.0.1:7946"}) // addresses, not names, which memberlist looks up by package net
package gossip
