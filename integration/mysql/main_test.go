package mysql

import (
	"io"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"
)

// TestMain silences what driver and server log about connections that break, for that is what happens here on
// purpose.
func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard)
	mysql.SetLogger(&mysql.NopLogger{})
	goleak.VerifyTestMain(m)
}

// latency is that of every link, one way; a statement and its answer take two of them.
const latency = 10 * time.Millisecond
