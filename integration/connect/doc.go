// Package connect holds scenarios of connectrpc.com/connect over a simulated network: streams that are cut, by each of
// the protocols that it speaks, deadlines that travel with a call, and calls over connections that have died.
//
// The wiring is net/http's: a handler behind a listener of one host, and an http.Client that dials from another.
// Streams in both directions, and the gRPC protocol, need HTTP/2; without TLS that is UnencryptedHTTP2 in the Protocols
// of the server and of the Transport:
//
//	l, err := net.Host("server").Listen("tcp", ":80")
//	go (&http.Server{Handler: connect.NewUnaryHandler(procedure, f), Protocols: p}).Serve(l)
//	c := &http.Client{Transport: &http.Transport{DialContext: net.Host("client").DialContext, Protocols: p}}
//	client := connect.NewClient[Req, Res](c, "http://server"+procedure, connect.WithGRPC())
package connect
