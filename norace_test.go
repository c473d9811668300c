//go:build !race

package gosimnet_test

const raced = false
