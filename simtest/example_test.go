package simtest_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/simtest"
)

// In a test, t is the test's own.
var t *testing.T

func ExampleRun() {
	simtest.Run(t, func(t *testing.T, network *gosimnet.Simnet) {
		network.Host("server")
		if _, err := network.AlterHost("server", gosimnet.SHUTDOWN); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		_, err := network.Host("client").DialTimeout("tcp", "server:80", time.Minute)
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != time.Minute {
			t.Errorf("dialling a host without power: %v after %v", err, time.Since(begin))
		}
	})
}

func ExampleRun_seeds() {
	cfg := &gosimnet.SimNetConfig{Seed: 1000, Link: gosimnet.LossyWiFi()}
	simtest.Run(t, func(t *testing.T, network *gosimnet.Simnet) {
		// Runs a hundred times, with the seeds 1000 to 1099.
	}, simtest.WithConfig(cfg), simtest.WithSeeds(100), simtest.WithTimeout(time.Hour))
}
