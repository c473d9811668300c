package gosimnet_test

import (
	"syscall"
	"time"
)

// realNow is the time that the process has used, whatever the bubble's clock says.
func realNow() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
