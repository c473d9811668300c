// Package redis runs github.com/redis/go-redis/v9 against a server made with github.com/tidwall/redcon, both
// unchanged. It shows connections of a pool that are stale after the server's power cycle, time-outs of all kinds,
// and pipelines that are cut in the middle.
//
// Wiring:
//
//	listener, err := network.Host("server").Listen("tcp", ":6379")
//	go redcon.NewServer("", handler, nil, nil).Serve(listener)
//	rdb := redis.NewClient(&redis.Options{
//		Addr: "server:6379", Dialer: network.Host("client").DialContext,
//		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}}) // it resolves names
//	t.Cleanup(func() { rdb.Close() })
//
// What to know: the client looks for dead connections with a system call on the file descriptor, which simulated
// connections do not have; a peer that has lost its power would not be found out by it either. Its pool keeps timers
// in a sync.Pool, and a timer of one bubble is of no use in the next: a test in which commands wait for a free
// connection begins with two calls of runtime.GC if others of the same process did so before. The delay between
// retries is drawn from the global source of math/rand; MinRetryBackoff: -1 does without.
package redis
