package webservice

import (
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// retry makes a request until it is answered with something else than an error of the server. After a failure it waits
// as long as Retry-After says, else half a second, doubled each time. The log says when each attempt began and how it
// ended.
func retry(c *http.Client, url string) (log []string) {
	start := scenario.StartClock()
	for wait := 500 * time.Millisecond; ; wait *= 2 {
		began := start.Elapsed().Truncate(time.Microsecond)
		pause, outcome := wait, ""
		resp, err := c.Get(url)
		if err != nil {
			outcome = "time-out"
		} else {
			resp.Body.Close()
			outcome = resp.Status[:3]
			if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
				pause = time.Duration(s) * time.Second
			}
		}
		log = append(log, fmt.Sprintf("%v to %v: %s", began, start.Elapsed().Truncate(time.Microsecond), outcome))
		if outcome == "200" {
			return log
		}
		time.Sleep(pause)
	}
}

// A client that retries meets a host without power, then one that has power and is not ready: RFC 9110, section 10.2.3,
// Retry-After. All its attempts begin and end when its time-out, its back-off and the server say, and one of them is
// served.
func TestRetriesKeepTheirTimes(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software("net/http"), Shows: "time-outs, back-off and Retry-After, at exact times", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		var served atomic.Int32
		power(t, net.Host("server"), nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if served.Add(1) == 1 {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		time.AfterFunc(5*time.Second, func() { net.AlterHost("server", gosimnet.POWERON) })
		if _, err := net.AlterHost("server", gosimnet.SHUTDOWN); err != nil {
			t.Fatal(err)
		}
		c, _ := newClient(t, net.Host("client"), nil)
		c.Timeout = time.Second
		want := []string{
			"0s to 1s: time-out",
			"1.5s to 2.5s: time-out",
			"3.5s to 4.5s: time-out",
			"6.5s to 6.54s: 503",
			"13.54s to 13.56s: 200", // on the connection that there is
		}
		if got := retry(c, "http://server/"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q,\nwant %q", got, want)
		}
		if got := served.Load(); got != 2 {
			t.Errorf("%d requests were served, want 2", got)
		}
	})
}
