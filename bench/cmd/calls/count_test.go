package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const source = `package post

type office struct{}

func (o *office) send(n int) {
	if n > 0 {
		o.stamp()
	}
}

func (o *office) stamp() {}

func open() *office { return nil }
`

func TestFunctionsIn(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"office.go", "office_test.go"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := functionsIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[place]string{
		{"office.go", 5, 30}:  "(*office).send",
		{"office.go", 11, 26}: "(*office).stamp",
		{"office.go", 13, 21}: "open",
	}
	if !maps.Equal(got, want) {
		t.Errorf("functions %v, want %v", got, want)
	}
}

func TestParse(t *testing.T) {
	got, err := parse(strings.NewReader("mode: count\nexample.com/post/office.go:5.30,6.11 1 20\nexample.com/post/office.go:6.11,8.3 1 10\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (map[place]int{{"office.go", 5, 30}: 20, {"office.go", 6, 11}: 10}); !maps.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
	if _, err := parse(strings.NewReader("mode: count\noffice.go:rubbish\n")); err == nil {
		t.Error("no error")
	}
}

// What happens once, or at the beginning of each run, does not count.
func TestPerOperation(t *testing.T) {
	send, stamp := place{"office.go", 5, 30}, place{"office.go", 11, 26}
	functions := map[place]string{send: "(*office).send", stamp: "(*office).stamp", {"office.go", 13, 21}: "open"}
	var out strings.Builder
	write(&out, perOperation(functions, map[place]int{send: 1020, stamp: 507}, map[place]int{send: 2020, stamp: 1007}, 1000), regexp.MustCompile(""), 0.01)
	want := "| function | calls |\n| --- | ---: |\n| (*office).send | 1.00 |\n| (*office).stamp | 0.50 |\n"
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}
