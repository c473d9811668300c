// Package webservice holds scenarios of the standard library's net/http, httptest and httputil over a simulated
// network: HTTP/1.1, HTTP/2 over TLS, a reverse proxy and Server-Sent Events, whose peers lose power, fall silent, shut
// down and are cut off.
//
// The wiring is the listener of one host and the dialling function of another; names are looked up by the dialling host:
//
//	l, err := net.Host("server").Listen("tcp", ":80")
//	go (&http.Server{Handler: handler}).Serve(l)
//	c := &http.Client{Transport: &http.Transport{DialContext: net.Host("client").DialContext}}
//	resp, err := c.Get("http://server/")
//
// For HTTP/2 set ForceAttemptHTTP2, which a DialContext of one's own turns off. An httptest.Server takes a listener, too:
// &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}}, and its Client's Transport takes a DialContext.
// httptest.NewServer listens on the real loopback, and its goroutines would keep a bubble from ending.
package webservice
