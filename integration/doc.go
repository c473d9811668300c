// Package integration holds the conformance tests of golang.org/x/net/nettest and tests of the standard library's
// net/http and crypto/tls, of SSH and others over a simulated network, unchanged on both sides. The directories beside it hold
// one scenario or more of each piece of real software, and how to wire it. It is a module of its own so that none of this
// software becomes a dependency of gosimnet.
package integration
