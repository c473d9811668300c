package mqtt

import (
	"slices"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// message is one that a subscriber has got.
type message struct {
	payload string
	dup     bool
}

// inbox is what a subscriber has got.
type inbox struct {
	mu  sync.Mutex
	got []message
}

func (i *inbox) receive(_ paho.Client, m paho.Message) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.got = append(i.got, message{string(m.Payload()), m.Duplicate()})
}

// want fails the test unless these messages have come.
func (i *inbox) want(t *testing.T, want ...message) {
	t.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	if !slices.Equal(i.got, want) {
		t.Errorf("the subscriber has got %v, want %v", i.got, want)
	}
}

// Times after a client has connected, if it sends its last message about a second after that, and the network is cut
// then, for 10 s from when it finds out.
const (
	// It looks every 2.5 s, sends a ping when there was no message for 10 s, and has lost patience 5 s after that.
	foundOut = 12500*time.Millisecond + patience
	// It dials at once, after a pause of a second, and after one of two.
	back = foundOut + patience + time.Second + patience + 2*time.Second + 2*roundTrip
)

// A message of QoS 1 whose PUBACK is lost comes twice. The client finds the partition by its keep-alive, connects
// again, and sends with the DUP flag what nobody has acknowledged: MQTT 3.1.1, section 4.4, and
// https://github.com/eclipse-paho/paho.mqtt.golang/issues/487, where the flag was missing. The token that Publish has
// returned is done, without an error, as soon as the client is connected, before the message has been sent again:
// https://github.com/eclipse-paho/paho.mqtt.golang/issues/563, "token.Wait() does not wait for completion".
func TestLostAcknowledgementMeansTwoMessages(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "QoS 1: the PUBACK is lost, the message comes twice, and DUP says so", Repeats: true,
		Config: usual,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		w := broker(t, net)
		var in inbox
		done(t, client(t, net, "subscriber", nil).Subscribe("topic", 1, in.receive))
		lost := make(chan struct{})
		publisher := client(t, net, "publisher", func(o *paho.ClientOptions) {
			o.SetConnectionLostHandler(func(paho.Client, error) { close(lost) })
		})
		begin := scenario.StartClock()
		time.Sleep(time.Second)

		start := scenario.StartClock()
		done(t, publisher.Publish("topic", 1, false, "one"))
		start.At(t, "the acknowledgement", roundTrip)
		heal := scenario.Must(net.CutLink(gosimnet.DropPackets, "broker", "publisher"))(t)
		token := publisher.Publish("topic", 1, false, "two")
		<-lost
		begin.At(t, "the end of the connection", foundOut)
		time.Sleep(10 * time.Second)
		heal()
		done(t, token)
		begin.At(t, "the end of the second Publish", back)
		w.want(t, published{"one", 1, false}, published{"two", 2, false})
		time.Sleep(time.Second)
		w.want(t, published{"one", 1, false}, published{"two", 2, false}, published{"two", 2, true})
		in.want(t, message{"one", false}, message{"two", false}, message{"two", false}) // the broker's own messages are new
	})
}

// A message of QoS 1 that a subscriber has not acknowledged comes again, with the DUP flag, when it has connected
// again, and not before: https://github.com/mochi-mqtt/server/issues/405. A message of QoS 0 does not.
func TestSubscriberGetsWhatItMissed(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "a subscriber that was cut off gets messages of QoS 1 when it is back, and none of QoS 0", Repeats: true,
		Config: usual,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		broker(t, net)
		publisher := client(t, net, "publisher", nil)
		var in inbox
		connected := make(chan struct{}, 2)
		lost := make(chan struct{})
		subscriber := client(t, net, "subscriber", func(o *paho.ClientOptions) {
			o.SetConnectionLostHandler(func(paho.Client, error) { close(lost) })
			o.SetOnConnectHandler(func(paho.Client) { connected <- struct{}{} })
			o.SetDefaultPublishHandler(in.receive)
		})
		begin := scenario.StartClock()
		<-connected
		time.Sleep(time.Second)
		done(t, subscriber.Subscribe("topic", 1, nil))
		heal := scenario.Must(net.Partition(gosimnet.DropPackets, []string{"broker"}, []string{"subscriber"}))(t)
		for qos, payload := range []string{"gone", "kept"} {
			start := scenario.StartClock()
			done(t, publisher.Publish("topic", byte(qos), false, payload))
			start.At(t, "the acknowledgement", time.Duration(qos)*roundTrip)
			time.Sleep(time.Second)
		}
		<-lost
		begin.At(t, "the end of the connection", foundOut)
		in.want(t)
		time.Sleep(10 * time.Second)
		heal()
		<-connected
		begin.At(t, "the next connection", back)
		time.Sleep(time.Second)
		in.want(t, message{"kept", true})
	})
}
