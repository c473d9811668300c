package kafka

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// why the scenarios do not always repeat.
const why = "kfake's own select: the last answer to what comes on a connection with its end is sent, or not; " +
	"with GOMAXPROCS=1, and without -race, all runs are alike"

// records is how many the producer sends, one every 100 ms.
const records = 100

// values are those of the records, in order.
func values() (all []string) {
	for n := range records {
		all = append(all, fmt.Sprint("record ", n))
	}
	return all
}

// acknowledgement is what the producer was told of a record, and when.
type acknowledgement struct {
	offset int64
	at     time.Duration
	err    error
}

// produce sends all records, and returns when all are acknowledged.
func produce(t *testing.T, c *kgo.Client) []acknowledgement {
	t.Helper()
	acks := make([]acknowledgement, records)
	start := time.Now()
	var pending sync.WaitGroup
	for n, value := range values() {
		pending.Add(1)
		c.Produce(t.Context(), kgo.StringRecord(value), func(r *kgo.Record, err error) {
			acks[n] = acknowledgement{r.Offset, time.Since(start), err}
			pending.Done()
		})
		time.Sleep(100 * time.Millisecond)
	}
	pending.Wait()
	return acks
}

// requests counts the produce requests that the brokers get.
type requests struct {
	mu sync.Mutex
	n  int
}

// count counts from now on.
func (r *requests) count(c *kfake.Cluster) {
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.n++
		return nil, nil, false
	})
}

// seen is how many there have been.
func (r *requests) seen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

// isolation is what happens to broker 0, the leader, for five seconds while the producer sends.
type isolation struct {
	name  string
	after time.Duration // since the producer began
	moves bool          // whether broker 1 becomes the leader, a second later

	acknowledged time.Duration // when the producer goes on, with record 20, which is sent after 2 s
	requests     int           // that the brokers get of an idempotent producer
	twice        int           // where record 20 is a second time, if the producer is not idempotent; 0: nowhere
}

// isolations are those that make a difference: record 20 takes 10 ms to the broker, and its acknowledgement 10 ms
// back.
//
// The producer gives up the old connection at 4 s, two seconds after record 20. If the leader stays, SYNs for a new
// one go out at 4.1, 5.1 and 7.1 s, and three round trips after the last, one of which is for the versions of the
// protocol, there is the acknowledgement. If the leader moves, the producer learns it from another broker at once.
var isolations = []isolation{
	{"the request is lost", 2005 * time.Millisecond, false, 7160 * time.Millisecond, 59, 86},
	{"the request is lost, and the leader moves", 2005 * time.Millisecond, true, 4120 * time.Millisecond, 89, 0},
	{"the answer is lost", 2015 * time.Millisecond, false, 7160 * time.Millisecond, 59, 22},
	{"the answer is lost, and the leader moves", 2015 * time.Millisecond, true, 4120 * time.Millisecond, 89, 22},
}

// begin makes it happen.
func (i isolation) begin(t *testing.T, network *gosimnet.Simnet, c *kfake.Cluster) {
	alter := func(how gosimnet.Alteration) {
		if _, err := network.AlterHost("kafka0", how); err != nil {
			t.Error(err)
		}
	}
	time.AfterFunc(i.after, func() { alter(gosimnet.ISOLATE) })
	time.AfterFunc(i.after+5*time.Second, func() { alter(gosimnet.UNISOLATE) })
	if i.moves {
		time.AfterFunc(i.after+time.Second, func() {
			if err := c.MoveTopicPartition(topic, 0, 1); err != nil {
				t.Error(err)
			}
		})
	}
}

// run sends all records through the isolation, and returns what the producer was told, how many requests the brokers
// got, and what is stored, without the very first record, which opens the producer's connections.
func (i isolation) run(t *testing.T, network *gosimnet.Simnet, options ...kgo.Opt) ([]acknowledgement, int, []string) {
	t.Helper()
	c := cluster(t, network)
	p := connect(t, network, "producer", append(options, kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0))...)
	if err := p.ProduceSync(t.Context(), kgo.StringRecord("first")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	var r requests
	r.count(c)
	i.begin(t, network, c)
	acks := produce(t, p)
	for n, a := range acks {
		if a.err != nil {
			t.Errorf("record %d: %v", n, a.err)
		}
	}
	if got := acks[20].at; (got - i.acknowledged).Abs() >= time.Microsecond {
		t.Errorf("record 20 was acknowledged after %v, want %v", got, i.acknowledged)
	}
	values := stored(t, network, c)
	return acks, r.seen(), values[1:]
}

// The producer gives up a request that is not answered within two seconds, closes the connection, and sends the
// records again, under the same sequence numbers, by which the broker knows those that it has: the ones that were
// answered in vain, and the ones that TCP still delivers from the old connection, when the network is whole again,
// after they have come over the new one. No record is lost, none is stored twice, and all are in order, whoever is
// the leader. See KIP-98, and https://github.com/redpanda-data/redpanda/issues/3039, of brokers that did it wrong.
func TestIdempotentProducerThroughAnIsolation(t *testing.T) {
	for _, i := range isolations {
		t.Run(i.name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software, Why: why,
				Shows: "an idempotent producer through a broker's isolation, when " + i.name + ": no loss, no duplicate",
			}, func(t *testing.T, network *gosimnet.Simnet) {
				acks, requests, got := i.run(t, network)
				if want := values(); !slices.Equal(got, want) {
					t.Errorf("stored are %q, want %q", got, want)
				}
				for n, a := range acks {
					if a.offset != int64(n+1) {
						t.Errorf("record %d was acknowledged with offset %d", n, a.offset)
					}
				}
				if requests != i.requests {
					t.Errorf("the brokers got %d requests, want %d", requests, i.requests)
				}
			})
		})
	}
}

// Without idempotence a record whose acknowledgement was lost is stored twice. So is one that never arrived: the
// producer has sent it again, and other records after it, when TCP delivers what the closed connection still had.
// Then it is out of order, too. Only a broker that is no longer the leader refuses it.
func TestProducerWithoutIdempotenceThroughAnIsolation(t *testing.T) {
	for _, i := range isolations {
		t.Run(i.name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software, Why: why,
				Shows: "a producer without idempotence through a broker's isolation, when " + i.name,
			}, func(t *testing.T, network *gosimnet.Simnet) {
				_, _, got := i.run(t, network, kgo.DisableIdempotentWrite())
				want := values()
				if i.twice > 0 {
					want = slices.Insert(want, i.twice-1, "record 20")
				}
				if !slices.Equal(got, want) {
					t.Errorf("stored are %q, want %q", got, want)
				}
			})
		})
	}
}
