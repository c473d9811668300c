// Package mysql runs go-sql-driver/mysql against an unmodified dolthub/go-mysql-server, both over the simulated
// network: what becomes of a transaction whose connection is cut before, during and after its COMMIT, what the
// server's table holds then, and what the client is told. All of the server lives in the bubble.
//
// The client's wiring is the driver's hook for networks of one's own. The name after the @ is the key of the hook,
// and the address reaches it as it stands, so that no name is looked up by package net:
//
//	mysql.RegisterDialContext("simnet", func(ctx context.Context, address string) (net.Conn, error) {
//		return client.DialContext(ctx, "tcp", address)
//	})
//	db, err := sql.Open("mysql", "root@simnet(db:3306)/shop")
//
// The server's is a field of its configuration:
//
//	listener, err := host.Listen("tcp", ":3306")
//	config := server.Config{Listener: listener}
//	srv, err := server.NewServer(config, engine, sql.NewContext, memory.NewSessionBuilder(provider), nil)
//	go srv.Start()
//
// One thing of the driver does not work here: before it takes a connection out of the pool it looks at the file
// descriptor for an end that has arrived meanwhile (the option checkConnLiveness), and simulated connections have
// none. It then goes on as it does on Windows, without that look, and the statement itself meets the end. The
// smallest hook would be an interface with the same question that the driver asks in place of syscall.Conn. Likewise
// the server cannot poll its clients' sockets during a long query, which it does by /proc and for *net.TCPConn only.
package mysql
