// Package kafka runs github.com/twmb/franz-go against the brokers of its own package kfake, both unchanged: producers
// with and without idempotence through the isolation of the broker that leads.
//
// Wiring:
//
//	brokers, err := kfake.NewCluster(kfake.ListenFn(func(_, _ string) (net.Listener, error) {
//		n++ // a host for each broker, which tells clients the address that its listener has
//		return network.Host(fmt.Sprint("kafka", n)).Listen("tcp", fmt.Sprint("kafka", n, ":9092"))
//	}))
//	client, err := kgo.NewClient(kgo.SeedBrokers("kafka1:9092"), kgo.Dialer(network.Host("client").DialContext))
//
// The brokers share one memory, so that nothing of what goes on between brokers is seen: a new leader has all that
// the old one had. The default of MetadataMinAge makes a client wait for seconds before it asks for a new leader.
package kafka
