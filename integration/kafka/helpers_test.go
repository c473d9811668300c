package kafka

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/glycerine/gosimnet"
)

// software is what the scenarios run.
const software = "github.com/twmb/franz-go v1.22.3 with its kfake"

// TestMain has goroutines run one after the other, so that those that one instant sets going do so in one order in
// nearly all runs. It fails if anything is left running after all tests.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	goleak.VerifyTestMain(m)
}

// topic has one partition, the leader of which is broker 0, on host "kafka0".
const topic = "topic"

// cluster runs three brokers, on hosts kafka0 to kafka2, until the test ends; there are hosts "producer" and
// "consumer", too.
func cluster(t *testing.T, network *gosimnet.Simnet) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(1, topic), kfake.ListenFn(listener(network)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	network.Host("producer")
	network.Host("consumer")
	if err := c.MoveTopicPartition(topic, 0, 0); err != nil {
		t.Fatal(err)
	}
	return c
}

// listener gives each broker a host of its own. A broker tells its clients the address that its listener has.
func listener(network *gosimnet.Simnet) func(string, string) (net.Listener, error) {
	brokers := 0
	return func(string, string) (net.Listener, error) {
		host := network.Host(fmt.Sprint("kafka", brokers))
		brokers++
		return host.Listen("tcp", host.Name()+":9092")
	}
}

// connect makes a client on a host, of options that come on top of those of all: requests that are not answered
// within two seconds have failed, and are tried again 100 ms later.
func connect(t *testing.T, network *gosimnet.Simnet, host string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers("kafka0:9092", "kafka1:9092", "kafka2:9092"),
		kgo.Dialer(network.Host(host).DialContext),
		kgo.ProduceRequestTimeout(time.Second), kgo.RequestTimeoutOverhead(time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.DisableClientMetrics(),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// stored is the values of all records of the topic, as a consumer sees them.
func stored(t *testing.T, network *gosimnet.Simnet, c *kfake.Cluster) (values []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	all := int(c.PartitionInfo(topic, 0).HighWatermark)
	consumer := connect(t, network, "consumer", kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		topic: {0: kgo.NewOffset().AtStart()},
	}))
	for len(values) < all {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Errorf("the consumer has %d of %d records, and then: %v", len(values), all, err)
			break
		}
		fetches.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
	}
	return values
}
