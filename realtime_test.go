package gosimnet_test

import (
	"syscall"
	"time"
)

// wallNow is the time of day, whatever the bubble's clock says.
func wallNow() time.Duration {
	var tv syscall.Timeval
	_ = syscall.Gettimeofday(&tv)
	return time.Duration(tv.Nano())
}

// realNow is the time that the process has used, whatever the bubble's clock says.
func realNow() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
