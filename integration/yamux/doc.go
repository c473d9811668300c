// Package yamux runs github.com/hashicorp/yamux, both ends, over a simulated stream: streams that are stalled among
// healthy ones, by a reader and by a lost segment, and sessions that a partition ends. A session takes any
// connection:
//
//	listener, err := network.Host("server").Listen("tcp", ":80")
//	conn, err := listener.Accept()
//	server, err := yamux.Server(conn, config)
//	conn, err = network.Host("client").Dial("tcp", "server:80")
//	client, err := yamux.Client(conn, config)
//	t.Cleanup(func() { client.Close(); server.Close() })
//
// yamux keeps timers in a sync.Pool of the process. A timer belongs to the bubble that made it, and the runtime ends
// the process when another bubble waits for it: "select on synctest channel from outside bubble". Two garbage
// collections empty a pool: call runtime.GC twice at the beginning of each bubble.
package yamux
