package quickstart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/simtest"
)

// TestShop tells a story: a shop of three services, on three hosts, and what their network does to them. All times in it are virtual, and exact, so
// that the test can ask for them to the microsecond. Run it with -v to read along.
func TestShop(t *testing.T) {
	begin := time.Now()
	var virtual time.Duration
	simtest.Run(t, func(t *testing.T, network *gosimnet.Simnet) {
		s := &story{T: t, network: network, begin: time.Now()}
		s.openTheShop()
		s.everydayLife()
		s.answersGetLost()
		s.theStockLosesPower()
		virtual += time.Since(s.begin)
	})
	t.Logf("%v of virtual time took %v of real time", virtual.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))
}

// oneWay is the latency of a link: a packet takes so long there, and its answer as long back.
const oneWay = 10 * time.Millisecond

// openTheShop starts the software of three hosts, and introduces two customers.
func (s *story) openTheShop() {
	// Every link has one-way latency of 10 ms unless told otherwise, which is also the default.
	s.must(s.network.SetLink("", "", gosimnet.LinkConfig{Latency: gosimnet.Constant(oneWay)}))

	// A host's software is a function. It is started now, and anew whenever the host gets its power back; when that goes, ctx is cancelled.
	shop, stock, price := s.network.Host("shop"), s.network.Host("stock"), s.network.Host("price")
	shop.Run(func(ctx context.Context) error {
		// The one thing that the simulation asks for: dial and listen by the host, not by package net.
		backends := &http.Client{Transport: &http.Transport{DialContext: shop.DialContext}}
		return serve(shop, &Shop{Backends: backends, Patience: time.Second})
	})
	stock.Run(func(ctx context.Context) error { return serve(stock, &Stock{}) })
	price.Run(func(ctx context.Context) error { return serve(price, http.HandlerFunc(Price)) })

	// Ann lives nearby, Bob across an ocean. His link is slow in both directions.
	s.ann, s.bob = s.customer("ann"), s.customer("bob")
	ocean := gosimnet.LinkConfig{Latency: gosimnet.Constant(150 * time.Millisecond)}
	s.must(s.network.SetLink("bob", "shop", ocean))
	s.must(s.network.SetLink("shop", "bob", ocean))
	s.say("The shop is open: three hosts, and two customers, ann and bob.")
}

// serve is a web server at a host. When the host loses power, Accept returns an error, and Serve does, too.
func serve(h *gosimnet.Host, handler http.Handler) error {
	l, err := h.Listen("tcp", ":80")
	if err != nil {
		return err
	}
	return http.Serve(l, handler)
}

// everydayLife shows what latency does.
func (s *story) everydayLife() {
	s.say("Ann's first visit makes three connections, of one round trip each, and three requests: 12 crossings of 10 ms.")
	s.get(s.ann, "http://shop/", 200, "plenty of tea (answer 1 since the start), two pounds", 120*time.Millisecond)

	s.say("The connections are kept, so that her second visit is three requests: 6 crossings.")
	s.get(s.ann, "http://shop/", 200, "plenty of tea (answer 2 since the start), two pounds", 60*time.Millisecond)

	s.say("Bob's visit crosses the ocean four times, and uses the shop's own connections.")
	s.get(s.bob, "http://shop/", 200, "plenty of tea (answer 3 since the start), two pounds", 640*time.Millisecond)

	s.say("Ann mistypes a port. Nobody listens there; the refusal takes a round trip.")
	s.dial("ann", "shop:8080", time.Minute, syscall.ECONNREFUSED, 20*time.Millisecond)
}

// answersGetLost is a partition of one direction.
func (s *story) answersGetLost() {
	heal, err := s.network.CutLink(gosimnet.DropPackets, "stock", "shop")
	s.must(err)
	s.say("A cable breaks, one way: nothing from the stock reaches the shop. What the shop sends still arrives.")
	s.get(s.ann, "http://shop/", 504, "no answer in time", time.Second+2*oneWay)

	s.say("The rest of the network works. Ann asks the stock herself: it has answered the shop, number 4, in vain.")
	s.get(s.ann, "http://stock/", 200, "plenty of tea (answer 5 since the start)", 40*time.Millisecond)

	heal()
	s.say("The cable is mended. The shop had given up its connection to the stock, and makes a new one.")
	s.get(s.ann, "http://shop/", 200, "plenty of tea (answer 6 since the start), two pounds", 80*time.Millisecond)
}

// theStockLosesPower is a power cut: no goodbye to anybody, no memory afterwards.
func (s *story) theStockLosesPower() {
	s.alter("stock", gosimnet.SHUTDOWN)
	s.say("The stock loses power. Its connections vanish without a word: the shop's request is never answered.")
	s.get(s.ann, "http://shop/", 504, "no answer in time", time.Second+2*oneWay)

	s.say("Nobody refuses a new connection either; whoever dials must give up by himself.")
	s.dial("bob", "stock:80", 3*time.Second, os.ErrDeadlineExceeded, 3*time.Second)

	time.Sleep(time.Hour)
	s.alter("stock", gosimnet.POWERON)
	s.say("An hour later the power is back. The stock's software starts again, and has forgotten what it counted.")
	s.get(s.ann, "http://shop/", 200, "plenty of tea (answer 1 since the start), two pounds", 80*time.Millisecond)

	s.alter("stock", gosimnet.SHUTDOWN)
	s.alter("stock", gosimnet.POWERON)
	s.say("The lights flicker. The shop asks on its old connection, is told by a reset that nobody knows it, and asks again on a new one.")
	s.get(s.ann, "http://shop/", 200, "plenty of tea (answer 1 since the start), two pounds", 100*time.Millisecond)
	s.say("No customer noticed.")
}

// story is what the chapters share.
type story struct {
	*testing.T
	network  *gosimnet.Simnet
	begin    time.Time
	ann, bob *customer
}

// customer is a web browser on a host of its own.
type customer struct {
	name   string
	client *http.Client
}

func (s *story) customer(name string) *customer {
	host := s.network.Host(name)
	return &customer{name, &http.Client{Transport: &http.Transport{DialContext: host.DialContext}}}
}

// say prints a line with the virtual time.
func (s *story) say(format string, args ...any) {
	fmt.Fprintf(s.Output(), "%14v  %s\n", time.Since(s.begin).Round(time.Microsecond), fmt.Sprintf(format, args...))
}

// get visits a page, and checks what comes back, and when.
func (s *story) get(c *customer, url string, status int, text string, want time.Duration) {
	s.Helper()
	asked := time.Now()
	resp, err := c.client.Get(url)
	s.must(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	s.must(err)
	took := time.Since(asked)
	got := strings.TrimSpace(string(body))
	s.say("    %s: GET %s → %d %q in %v", c.name, url, resp.StatusCode, got, took.Round(time.Microsecond))
	if resp.StatusCode != status || got != text {
		s.Errorf("%s got %d %q, want %d %q", c.name, resp.StatusCode, got, status, text)
	}
	s.checkTime(took, want)
}

// dial connects in vain, and checks why not, and how long that took.
func (s *story) dial(host, address string, patience time.Duration, why error, want time.Duration) {
	s.Helper()
	asked := time.Now()
	_, err := s.network.Host(host).DialTimeout("tcp", address, patience)
	took := time.Since(asked)
	s.say("    %s: %v after %v", host, err, took.Round(time.Microsecond))
	var op *net.OpError
	if !errors.Is(err, why) || !errors.As(err, &op) {
		s.Errorf("%s: %v, want a *net.OpError that is %v", host, err, why)
	}
	s.checkTime(took, want)
}

// checkTime compares durations to the microsecond: each crossing of a link takes a nanosecond or two more than its latency.
func (s *story) checkTime(took, want time.Duration) {
	s.Helper()
	if took.Round(time.Microsecond) != want {
		s.Errorf("took %v, want %v", took, want)
	}
}

func (s *story) alter(host string, what gosimnet.Alteration) {
	s.Helper()
	_, err := s.network.AlterHost(host, what)
	s.must(err)
}

func (s *story) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}
