// Package integration holds tests that run real software, unchanged on both sides, over a simulated network: the
// standard library's net/http and crypto/tls, SSH, gRPC, Redis and raft, and the conformance tests of
// golang.org/x/net/nettest. It is a module of its own so that none of this software becomes a dependency of gosimnet.
package integration
