package postgres

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// latency is that of every link, one way; a query and its answer take two of them.
const latency = 10 * time.Millisecond

// setup is how long a new connection takes: the dial, and the answer to the client's first message.
const setup = 4 * latency
