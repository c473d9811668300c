package gosimnet_test

import (
	"testing"

	"github.com/glycerine/gosimnet"
)

// newNet makes a network that is closed when the test ends.
func newNet(t *testing.T, cfg *gosimnet.SimNetConfig) *gosimnet.Simnet {
	t.Helper()
	s, err := gosimnet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
