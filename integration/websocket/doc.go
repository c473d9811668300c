// Package websocket holds scenarios of github.com/coder/websocket over a simulated network: connections that are cut
// between messages and in one, closing handshakes with peers that answer and that do not, pings that find dead peers,
// and a server that says goodbye.
//
// The wiring is net/http's, as a WebSocket begins as a request. The server's Accept takes over the connection that its
// listener has accepted; the client's Dial takes an http.Client:
//
//	l, err := net.Host("server").Listen("tcp", ":80")
//	go http.Serve(l, handler) // which calls websocket.Accept(w, r, nil)
//	c := &http.Client{Transport: &http.Transport{DialContext: net.Host("client").DialContext}}
//	conn, _, err := websocket.Dial(ctx, "ws://server/", &websocket.DialOptions{HTTPClient: c})
//
// The masks of what clients send come from crypto/rand, which testing/cryptotest seeds; they change no sizes.
package websocket
