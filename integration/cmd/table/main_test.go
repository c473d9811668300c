package main

import (
	"strings"
	"testing"
)

func TestScenariosBecomeRows(t *testing.T) {
	output := `=== RUN   TestB
    b_test.go:10: scenario | b v1.2.3 | loses nothing | virtual 1m2s | real 3ms | repeats 20/20 | 
    b_test.go:11: something else | b
    a_test.go:9: scenario | a v1, b v2 | retries | virtual 500ms | real 1ms | repeats 3/20 | map order
--- PASS: TestB (0.00s)
`
	want := `| software | what it shows | virtual | real | runs alike |
| --- | --- | --- | --- | --- |
| a v1, b v2 | retries | 500ms | 1ms | 3/20 |
| b v1.2.3 | loses nothing | 1m2s | 3ms | 20/20 |
`
	var got strings.Builder
	if err := table(strings.NewReader(output), &got); err != nil {
		t.Fatal(err)
	}
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}
