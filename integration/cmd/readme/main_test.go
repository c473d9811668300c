package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadmeHasScenariosAndDocumentation(t *testing.T) {
	output := `=== RUN   TestB
    b_test.go:10: scenario | b v1.2.3 | loses nothing | virtual 1m2s | real 3ms | repeats 20/20 | 
    b_test.go:11: something else | b
    a_test.go:9: scenario | a v1, b v2 | retries | virtual 500ms | real 1ms | repeats 3/20 | map order
--- PASS: TestB (0.00s)
`
	want := beginning + `| software | what it shows | virtual | real | runs alike |
| --- | --- | --- | --- | --- |
| a v1, b v2 | retries | 500ms | 1ms | 3/20: map order |
| b v1.2.3 | loses nothing | 1m2s | 3ms | 20/20 |

## letters

Package letters runs a and b:

	a.Dial = host.Dial
`
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "letters"), 0o777); err != nil {
		t.Fatal(err)
	}
	source := "// Package letters runs\n// a and b:\n//\n//\ta.Dial = host.Dial\npackage letters\n"
	if err := os.WriteFile(filepath.Join(root, "letters", "doc.go"), []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	if err := readme(strings.NewReader(output), root, &got); err != nil {
		t.Fatal(err)
	}
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}
