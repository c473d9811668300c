//go:build race

package gosimnet_test

// raced is whether the race detector watches.
const raced = true
