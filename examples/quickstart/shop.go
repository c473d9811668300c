// Package quickstart is a shop made of three small web services. The test runs them on three hosts of a simulated network, and breaks that network.
//
// Nothing in the package itself knows of a simulation: it is net/http, as it would run in production.
package quickstart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// Shop is the service that customers talk to. It asks the other two, at http://stock/ and http://price/.
type Shop struct {
	Backends *http.Client
	Patience time.Duration // with both together
}

// ServeHTTP answers with what the other services say: with 504 if one does not answer in time, and with 502 if one
// cannot be reached.
func (s *Shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), s.Patience)
	defer cancel()
	stock, err := s.ask(ctx, "http://stock/")
	var price string
	if err == nil {
		price, err = s.ask(ctx, "http://price/")
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		http.Error(w, "no answer in time", http.StatusGatewayTimeout)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
	default:
		fmt.Fprintf(w, "%s, %s", stock, price)
	}
}

// ask gets the text of a page.
func (s *Shop) ask(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := s.Backends.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// Stock is the service that knows how much tea there is. It counts its answers, in memory.
type Stock struct{ answers atomic.Int64 }

// ServeHTTP tells the stock.
func (s *Stock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "plenty of tea (answer %d since the start)", s.answers.Add(1))
}

// Price is the service that knows what tea costs.
func Price(w http.ResponseWriter, r *http.Request) {
	io.WriteString(w, "two pounds")
}
