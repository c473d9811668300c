package gosimnet

import (
	"context"
	"net"
)

// Network is what a service needs of a network. A *Host is one, and so is OS: a service that takes a Network runs over
// the simulation in tests, and over package net in production.
type Network interface {
	Dial(network, address string) (net.Conn, error)
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	Listen(network, address string) (net.Listener, error)
	ListenPacket(network, address string) (net.PacketConn, error)
}

// OS is the real network, by package net.
var OS Network = osNetwork{}

type osNetwork struct{}

func (osNetwork) Dial(network, address string) (net.Conn, error) { return net.Dial(network, address) }

func (osNetwork) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

func (osNetwork) Listen(network, address string) (net.Listener, error) {
	return net.Listen(network, address)
}

func (osNetwork) ListenPacket(network, address string) (net.PacketConn, error) {
	return net.ListenPacket(network, address)
}

var _ Network = (*Host)(nil)
