package gosimnet

import (
	"net"
	"time"
)

// SimNet is Simnet under its earlier name.
type SimNet = Simnet

// NewSimNet is New for a config that is known to be good: an impossible one gives a network that is closed from
// the start, so that its first use reports net.ErrClosed. New says what is wrong with it.
func NewSimNet(cfg *SimNetConfig) *SimNet {
	s, err := New(cfg)
	if err == nil {
		return s
	}
	s, _ = New(nil)
	s.Close()
	return s
}

// SimClient is a host that dials message circuits, known by the host's name.
type SimClient struct {
	host *Host
	conn net.Conn
}

// NewSimClient makes a client. Its name is its host's, and its address.
func (s *Simnet) NewSimClient(name string) (cli *SimClient, err error) {
	h, err := s.host(name)
	if err != nil {
		return nil, err
	}
	return &SimClient{host: h}, nil
}

// Dial connects to a server by its name. The network may be empty, or any: it is a message circuit.
func (c *SimClient) Dial(network, address string) (nc net.Conn, err error) {
	nc, err = c.host.Dial("simnet", address)
	if err != nil {
		return nil, err
	}
	c.host.net.locked(func() { c.conn = nc })
	return nc, nil
}

// LocalAddr is the client's address, "" before Dial.
func (c *SimClient) LocalAddr() string { return c.addr(net.Conn.LocalAddr) }

// RemoteAddr is the address of the server that was dialled last, "" before Dial.
func (c *SimClient) RemoteAddr() string { return c.addr(net.Conn.RemoteAddr) }

func (c *SimClient) addr(of func(net.Conn) net.Addr) string {
	var conn net.Conn
	c.host.net.locked(func() { conn = c.conn })
	if conn == nil {
		return ""
	}
	return of(conn).String()
}

// NewTimer makes a timer of the client's host.
func (c *SimClient) NewTimer(dur time.Duration) (ti *SimTimer) { return c.host.NewTimer(dur) }

// Close closes the connection that was dialled last.
func (c *SimClient) Close() error {
	var conn net.Conn
	c.host.net.locked(func() { conn = c.conn })
	if conn == nil {
		return nil
	}
	return ignoreClosed(conn.Close())
}

// SimServer is a host that accepts message circuits, known by the host's name.
type SimServer struct {
	host     *Host
	err      error
	listener *Listener
}

// NewSimServer makes a server. Its name is its host's, and its address.
func (s *Simnet) NewSimServer(name string) (srv *SimServer) {
	h, err := s.host(name)
	return &SimServer{host: h, err: err}
}

// Listen announces the server. Network and address are ignored: it is a message circuit endpoint by the server's name.
func (s *SimServer) Listen(network, addr string) (lsn net.Listener, err error) {
	if s.err != nil {
		return nil, opError("listen", "simnet", nil, nil, s.err)
	}
	l, err := s.host.listen("simnet", "")
	if err != nil {
		return nil, err
	}
	s.host.net.locked(func() { s.listener = l })
	return l, nil
}

// NewTimer makes a timer of the server's host.
func (s *SimServer) NewTimer(dur time.Duration) (ti *SimTimer) {
	if s.err != nil {
		return (&Host{broken: s.err}).NewTimer(dur)
	}
	return s.host.NewTimer(dur)
}

// Close stops listening. Blocked Accepts return net.ErrClosed.
func (s *SimServer) Close() error {
	if s.err != nil {
		return s.err
	}
	var l *Listener
	s.host.net.locked(func() { l = s.listener })
	if l == nil {
		return nil
	}
	return ignoreClosed(l.Close())
}
