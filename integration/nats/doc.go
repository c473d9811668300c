// Package nats runs github.com/nats-io/nats.go against github.com/nats-io/nats-server/v2 with JetStream, both
// unchanged: a reconnection after a power cycle, and what becomes of messages that were acknowledged, and of those
// that were not.
//
// Wiring of a client:
//
//	nc, err := nats.Connect("nats://nats:4222", nats.SkipHostLookup(), nats.SetCustomDialer(dialer)) // it dials by Host
//
// and of a server, which opens sockets of its own, but serves connections within the process besides. Between them
// and a listener of the simulation there is a proxy, of io.Copy in both directions; an option of the server that
// takes a net.Listener would make it needless.
//
//	srv, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true, DisableShortFirstPing: true})
//	srv.Start()
//	c, err := listener.Accept() // Host.Listen("tcp", ":4222")
//	inside, err := srv.InProcessConn()
//	go splice(c, inside)
//
// What to know about clients in bubbles. A nats.Conn holds its mutex while it dials and greets a server. Whoever
// calls one of its methods meanwhile, be it only to ask for its state, waits for the mutex, and a goroutine that
// waits for a mutex lets no virtual time pass: the bubble stands still. Call a connection only while it is up, as its
// DisconnectErrHandler and ReconnectHandler tell; after the first there is ReconnectWait until it dials. Publish to
// streams by PublishAsync, the time-outs of which need no mutex. nats.go would have to unlock around the dial to make
// this needless. It also keeps timers in a sync.Pool, where those of one bubble are of no use in the next: begin with
// two calls of runtime.GC, which empty it.
//
// The files of a server are real ones. What is written to them takes no virtual time.
package nats
