// Package sftp runs github.com/pkg/sftp over golang.org/x/crypto/ssh, both unchanged on both sides: a large file
// through a flapping link, an upload that is resumed after a power cut, and servers that vanish.
//
// Wiring:
//
//	conn, err := network.Host("client").Dial("tcp", "server:22")
//	c, channels, requests, err := ssh.NewClientConn(conn, "server:22", config) // in place of ssh.Dial
//	files, err := sftp.NewClient(ssh.NewClient(c, channels, requests))
//
// and on the server's side ssh.NewServerConn over what Host.Listen accepts. Set the network's SendBuffer to 4 MiB or
// more: SSH holds a mutex while it writes, and a goroutine that waits for a mutex lets no virtual time pass; the
// window of a channel is 2 MiB.
package sftp
