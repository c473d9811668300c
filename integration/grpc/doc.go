// Package grpc holds scenarios of google.golang.org/grpc over a simulated network: unary calls and streams, keepalive,
// retry policy, round robin over a resolver, health checking, draining and back-off.
//
// The wiring is a listener on the one side and a context dialer on the other. The target's scheme is passthrough, or
// that of a resolver of one's own, so that the dialling host looks names up and not package net:
//
//	l, err := net.Host("server").Listen("tcp", ":80")
//	go server.Serve(l)
//	cc, err := grpc.NewClient("passthrough:///server:80", grpc.WithTransportCredentials(insecure.NewCredentials()),
//		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
//			return net.Host("client").DialContext(ctx, "tcp", address)
//		}))
//
// Runs repeat as far as grpc-go lets them: round_robin begins at a backend drawn from math/rand/v2, which has no seed,
// and so are the jitters of the retry policy and of MaxConnectionAge. The jitter of connecting can be turned off, by
// backoff.Config.
package grpc
