// Package smtp runs github.com/emersion/go-smtp, client and server, over a simulated network: a greylisted message
// that comes in the end, and one that comes twice. A server takes a listener, and a client a connection:
//
//	listener, err := network.Host("mx").Listen("tcp", ":25")
//	server := smtp.NewServer(backend)
//	go server.Serve(listener)
//	t.Cleanup(func() { server.Close() })
//	conn, err := network.Host("sender").DialContext(ctx, "tcp", "mx:25")
//	client := smtp.NewClient(conn)
//
// The package's SendMail would dial by package net.
package smtp
