//go:build race

package bench

// raced is whether the race detector watches.
const raced = true
