package postgres

import "net"

// batching is a listener whose connections send what is written when the server reads the next message, as PostgreSQL
// does. psql-wire sends each message at once, those about its parameters in the order of a map: in one segment their
// order does not matter to the trace.
type batching struct{ net.Listener }

func (l batching) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &batch{Conn: c}, nil
}

// batch is a connection with a buffer for writing. The server uses each from one goroutine.
type batch struct {
	net.Conn
	out []byte
}

func (c *batch) Write(p []byte) (int, error) {
	c.out = append(c.out, p...)
	return len(p), nil
}

func (c *batch) Read(p []byte) (int, error) {
	if err := c.flush(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *batch) Close() error {
	err := c.flush()
	if closing := c.Conn.Close(); err == nil {
		err = closing
	}
	return err
}

// flush sends what has been written.
func (c *batch) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	_, err := c.Conn.Write(c.out)
	c.out = c.out[:0]
	return err
}
