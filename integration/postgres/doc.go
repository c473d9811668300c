// Package postgres runs jackc/pgx over the simulated network against a small server made of jeroenrinzema/psql-wire:
// how a query is cancelled over a second connection, when the pool looks after its connections and when it finds out
// that they are dead, and how long a dial into nowhere takes.
//
// The wiring is two functions of the client's configuration. Without LookupFunc the names would go to package net's
// resolver; pgx uses DialFunc for cancel requests, too, with the address that the connection's RemoteAddr tells:
//
//	config, err := pgx.ParseConfig("postgres://user@db/shop?sslmode=disable") // or a pool's ConnConfig
//	config.DialFunc = client.DialContext
//	config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
//	conn, err := pgx.ConnectConfig(ctx, config)
//
// The server takes a listener:
//
//	listener, err := host.Listen("tcp", ":5432")
//	server, err := wire.NewServer(parse)
//	go server.Serve(listener)
//
// Two things must be done for runs that repeat. psql-wire tells its parameters in the order of a map, a message and a
// segment each; a connection that sends when the server next reads makes one segment of them. And pgx asks to cancel
// from goroutines of its own, at instants at which the pool may dial, too; a dialer that lets such requests wait for
// 100 ns keeps them apart.
package postgres
