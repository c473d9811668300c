package gosimnet_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

func TestSecondCloseWaitsForTheFirst(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			s := newNet(t, nil) // closed by the bubble's main goroutine, too
			time.AfterFunc(time.Second, s.Close)
			if _, err := s.Host("a").Dial("tcp", "10.9.9.9:80"); !errors.Is(err, net.ErrClosed) {
				t.Errorf("dial in a network that closes: %v", err)
			}
		})
	}
}
