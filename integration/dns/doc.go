// Package dns runs github.com/miekg/dns, client and server, over simulated UDP and TCP: lost queries, late answers,
// truncated ones. A server takes what a host listens on, and a client talks over a connection that a host has
// dialled:
//
//	packets, err := network.Host("server").ListenPacket("udp", ":53")
//	server := &dns.Server{PacketConn: packets, Handler: handler} // or Listener: of Listen("tcp", ":53")
//	go server.ActivateAndServe()
//	conn, err := network.Host("client").Dial("udp", "server:53")
//	answer, roundTrip, err := new(dns.Client).ExchangeWithConn(question, &dns.Conn{Conn: conn})
//
// Client.Exchange would dial by package net. The client tells UDP from TCP by the methods of the connection.
package dns
