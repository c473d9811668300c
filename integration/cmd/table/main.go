// Command table makes a Markdown table of what scenarios have logged:
//
//	go test -v ./... | go run ./cmd/table
package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
)

func main() {
	if err := table(os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// table reads the output of tests and writes a row for each scenario, in the order of the software's names.
func table(r io.Reader, w io.Writer) error {
	var rows []string
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if row, ok := row(lines.Text()); ok {
			rows = append(rows, row)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	slices.Sort(rows)
	rows = append([]string{"| software | what it shows | virtual | real | runs alike |", "| --- | --- | --- | --- | --- |"}, rows...)
	_, err := fmt.Fprintln(w, strings.Join(rows, "\n"))
	return err
}

// row is a scenario's row of the table, if a line of output is its report. Why runs differ is in the package's documentation.
func row(line string) (string, bool) {
	_, report, ok := strings.Cut(line, ": scenario | ")
	cells := strings.Split(report, " | ")
	if !ok || len(cells) < 5 {
		return "", false
	}
	software, shows := cells[0], cells[1]
	virtual, _ := strings.CutPrefix(cells[2], "virtual ")
	real, _ := strings.CutPrefix(cells[3], "real ")
	alike, _ := strings.CutPrefix(strings.TrimRight(cells[4], " |"), "repeats ")
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", software, shows, virtual, real, alike), true
}
