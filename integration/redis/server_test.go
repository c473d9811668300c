package redis

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/redcon"

	"github.com/glycerine/gosimnet"
)

// store is a database that survives its host's power cuts, and remembers which writes it has applied.
type store struct {
	mu      sync.Mutex
	values  map[string]string
	applied []string // the keys of writes, in order
}

// serve makes the store the software of host "server"; there is a host "client", too.
func serve(net *gosimnet.Simnet) *store {
	s := &store{values: map[string]string{}}
	host := net.Host("server")
	net.Host("client")
	host.Run(func(ctx context.Context) error {
		l, err := host.Listen("tcp", ":6379")
		if err != nil {
			return err
		}
		srv := redcon.NewServer("", s.handle, nil, nil)
		stop := context.AfterFunc(ctx, func() { l.Close() })
		defer stop()
		return srv.Serve(l)
	})
	return s
}

// transaction is what a connection has queued since MULTI.
type transaction struct{ queue []redcon.Command }

// handle is redcon's handler: a command of an open transaction is queued, any other is applied.
func (s *store) handle(c redcon.Conn, cmd redcon.Command) {
	name := strings.ToLower(string(cmd.Args[0]))
	tx, open := c.Context().(*transaction)
	switch {
	case name == "multi":
		c.SetContext(new(transaction))
		c.WriteString("OK")
	case name == "exec" && open:
		c.SetContext(nil)
		c.WriteArray(len(tx.queue))
		for _, queued := range tx.queue {
			s.apply(c, queued)
		}
	case open:
		tx.queue = append(tx.queue, cmd)
		c.WriteString("QUEUED")
	default:
		s.apply(c, cmd)
	}
}

// apply answers one command. BLPOP waits for ever: it is not answered.
func (s *store) apply(c redcon.Conn, cmd redcon.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name := strings.ToLower(string(cmd.Args[0])); name {
	case "ping":
		c.WriteString("PONG")
	case "get":
		c.WriteBulkString(s.values[string(cmd.Args[1])])
	case "set":
		s.write(cmd, string(cmd.Args[2]))
		c.WriteString("OK")
	case "append":
		value := s.values[string(cmd.Args[1])] + string(cmd.Args[2])
		s.write(cmd, value)
		c.WriteInt(len(value))
	case "incr":
		n, _ := strconv.Atoi(s.values[string(cmd.Args[1])])
		s.write(cmd, strconv.Itoa(n+1))
		c.WriteInt(n + 1)
	case "blpop":
	default: // HELLO, too: an old server
		c.WriteError("ERR unknown command " + name)
	}
}

// write changes a value. The caller holds the mutex.
func (s *store) write(cmd redcon.Command, value string) {
	key := string(cmd.Args[1])
	s.values[key] = value
	s.applied = append(s.applied, key)
}

// journal is the keys of all writes so far, and forgets them.
func (s *store) journal() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.applied = nil }()
	return slices.Clone(s.applied)
}
