package webservice

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	stdnet "net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// feed sends an event a second, whose number is the second, from the one after Last-Event-ID on; what has happened
// before is sent at once. It asks clients to come back three seconds after a connection has ended.
type feed struct{ epoch time.Time }

func (f *feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	last, _ := strconv.Atoi(r.Header.Get("Last-Event-ID"))
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "retry: 3000\n\n")
	w.(http.Flusher).Flush()
	for n := last + 1; ; n++ {
		select {
		case <-time.After(time.Until(f.epoch.Add(time.Duration(n) * time.Second))):
		case <-r.Context().Done():
			return
		}
		fmt.Fprintf(w, "id: %d\ndata: event %d\n\n", n, n)
		w.(http.Flusher).Flush()
	}
}

// listener is a client of Server-Sent Events as the HTML standard describes it: it remembers the last event's id and
// the time to wait, and connects again whenever a connection ends.
type listener struct {
	client *http.Client
	last   string
	retry  time.Duration
	events func(id string)
	ended  func(err error)
}

// listen goes on until the context ends.
func (l *listener) listen(ctx context.Context, url string) {
	for ctx.Err() == nil {
		err := l.connect(ctx, url)
		if ctx.Err() == nil {
			l.ended(err)
			time.Sleep(l.retry)
		}
	}
}

// connect is one connection.
func (l *listener) connect(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return err
	}
	if l.last != "" {
		req.Header.Set("Last-Event-ID", l.last)
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			l.last = value
		case "retry":
			ms, _ := strconv.Atoi(value)
			l.retry = time.Duration(ms) * time.Millisecond
		case "data":
			l.events(l.last)
		}
	}
	return lines.Err()
}

// The host of a feed loses power for half a minute. A client that only reads is told nothing
// (donovanhide/eventsource#38, EventSource/eventsource#121: it "will hang there"), unless somebody asks: here TCP's
// keep-alive, 5 s after the last event and then every second; the third silence ends the connection. It comes back
// every three seconds, as it was asked to, and with Last-Event-ID it misses no event and gets none twice. When the host
// is off and on within the five seconds, the first question is answered by a reset.
func TestServerSentEventsSurviveAPowerCycle(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software("net/http, Server-Sent Events"), Shows: "no event is lost or doubled over two power cycles", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		start := scenario.StartClock()
		power(t, net.Host("server"), nil, &feed{epoch: time.Now()})
		dialer := net.Host("client").Dialer()
		dialer.KeepAliveConfig = stdnet.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: time.Second, Count: 3}
		dialer.Timeout = time.Second
		tr := &http.Transport{DialContext: dialer.DialContext}
		t.Cleanup(tr.CloseIdleConnections)
		ctx, cancel := context.WithCancel(t.Context())
		var ids, log []string
		l := &listener{client: &http.Client{Transport: tr}, retry: time.Second,
			events: func(id string) { ids = append(ids, id) },
			ended: func(err error) {
				log = append(log, fmt.Sprintf("%v: %s", start.Elapsed().Truncate(time.Millisecond), failure(err)))
			},
		}
		done := make(chan struct{})
		go func() { defer close(done); l.listen(ctx, "http://server/") }()

		time.Sleep(10500 * time.Millisecond)
		scenario.PowerCycle(t, net, "server", 30*time.Second)
		time.Sleep(20 * time.Second)
		scenario.PowerCycle(t, net, "server", 2*time.Second)
		time.Sleep(15 * time.Second)
		cancel()
		<-done
		want := []string{
			"18.01s: timed out",  // the last event came at 10.01 s; questions at 15.01, 16.01 and 17.01 s
			"22.01s: no answer",  // dials from 21.01 s, 25.01 s …, a second each
			"26.01s: no answer",  //
			"30.01s: no answer",  //
			"34.01s: no answer",  //
			"38.01s: no answer",  //
			"1m5.03s: was reset", // the last event came at 60.01 s; a question at 65.01 s
		}
		if fmt.Sprint(log) != fmt.Sprint(want) {
			t.Errorf("connections ended at %q,\nwant %q", log, want)
		}
		for n, id := range ids {
			if id != fmt.Sprint(n+1) {
				t.Fatalf("events %v, want 1, 2, 3 …", ids)
			}
		}
		if len(ids) != 77 { // until 77.5 s
			t.Errorf("%d events, want 77", len(ids))
		}
	})
}

// failure names the ways in which a connection ends.
func failure(err error) string {
	var timeout stdnet.Error
	switch {
	case errors.Is(err, syscall.ETIMEDOUT):
		return "timed out"
	case errors.Is(err, syscall.ECONNRESET):
		return "was reset"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer"
	}
	return fmt.Sprint(err)
}
