// Package netrpc holds scenarios of the standard library's net/rpc over a simulated network: what becomes of calls, and
// of a reply in the middle, when a connection is cut, and how long they wait when nothing says that it is.
//
// The wiring is any connection and any listener:
//
//	l, err := net.Host("server").Listen("tcp", ":1234")
//	go server.Accept(l)
//	conn, err := net.Host("client").Dial("tcp", "server:1234")
//	client := rpc.NewClient(conn)
//	err = client.Call("Shop.Buy", args, &reply)
//
// rpc.Dial and rpc.DialHTTP dial package net, and cannot be used. A server's goroutines end with their connections:
// close clients.
package netrpc
