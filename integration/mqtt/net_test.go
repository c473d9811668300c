package mqtt

import (
	"cmp"
	"io"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
	"go.uber.org/goleak"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

const (
	software  = "github.com/eclipse/paho.mqtt.golang v1.5.1, github.com/mochi-mqtt/server/v2 v2.7.9"
	latency   = 10 * time.Millisecond
	roundTrip = 2 * latency
	keepAlive = 10 * time.Second
	patience  = 5 * time.Second
)

var usual = &gosimnet.SimNetConfig{MinHop: latency}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watch is a hook of the broker that notes what clients publish.
type watch struct {
	mqtt.HookBase
	mu   sync.Mutex
	seen []published
}

// published is a PUBLISH that the broker has read.
type published struct {
	payload string
	id      uint16
	dup     bool
}

func (w *watch) ID() string           { return "watch" }
func (w *watch) Provides(b byte) bool { return b == mqtt.OnPacketRead }

func (w *watch) OnPacketRead(_ *mqtt.Client, p packets.Packet) (packets.Packet, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.FixedHeader.Type == packets.Publish {
		w.seen = append(w.seen, published{string(p.Payload), p.PacketID, p.FixedHeader.Dup})
	}
	return p, nil
}

// want fails the test unless the broker has read these messages.
func (w *watch) want(t *testing.T, want ...published) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.seen, want) {
		t.Errorf("the broker has read %v, want %v", w.seen, want)
	}
}

// broker runs on the host "broker" for as long as the test runs.
func broker(t *testing.T, network *gosimnet.Simnet) *watch {
	t.Helper()
	w := new(watch)
	b := mqtt.New(&mqtt.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	l := scenario.Must(network.Host("broker").Listen("tcp", ":1883"))(t)
	err := cmp.Or(b.AddHook(new(auth.AllowHook), nil), b.AddHook(w, nil), b.AddListener(listeners.NewNet("tcp", l)), b.Serve())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return w
}

// client is a client on a host of its name, whose session the broker keeps. Its keep-alives are 10 s apart; they and
// dials may take 5 s.
func client(t *testing.T, network *gosimnet.Simnet, name string, setup func(*paho.ClientOptions)) paho.Client {
	t.Helper()
	h := network.Host(name)
	o := paho.NewClientOptions().AddBroker("tcp://broker:1883").SetClientID(name).SetCleanSession(false).
		SetKeepAlive(keepAlive).SetPingTimeout(patience).SetConnectTimeout(patience).SetProtocolVersion(4).
		SetCustomOpenConnectionFn(func(uri *url.URL, _ paho.ClientOptions) (net.Conn, error) {
			return h.DialTimeout("tcp", uri.Host, patience)
		})
	if setup != nil {
		setup(o)
	}
	c := paho.NewClient(o)
	done(t, c.Connect())
	t.Cleanup(func() { c.Disconnect(0) })
	return c
}

// done waits for the end of what a client does.
func done(t *testing.T, token paho.Token) {
	t.Helper()
	token.Wait()
	if err := token.Error(); err != nil {
		t.Fatal(err)
	}
}
