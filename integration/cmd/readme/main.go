// Command readme writes the module's README: a table of what scenarios have logged, and the documentation of their
// packages, which says how the software is wired.
//
//	go test -v ./... | go run ./cmd/readme >README.md
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const beginning = `# Real software over a simulated network

Each row is a scenario, a test in a directory of this module: the software is unmodified, from its published module, and runs in
virtual time in a bubble. "Runs alike" is how many of several runs with one seed have the same trace; where that is not all
of them, the package's section below says why, and what can be done. The table was made by

    go test -v ./... | go run ./cmd/readme >README.md

Environment variable SIMNET_SCENARIO_RUNS says how often each scenario runs.

`

func main() {
	var out strings.Builder
	if err := readme(os.Stdin, ".", &out); err != nil {
		log.Fatal(err)
	}
	fmt.Print(out.String())
}

// readme writes everything: the table from the output of tests, the sections from the packages in the folders below one.
func readme(tests io.Reader, root string, w io.Writer) error {
	rows, err := table(tests)
	if err != nil {
		return err
	}
	sections, err := sections(root)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, beginning+rows+sections)
	return err
}

// table makes a row for each scenario in the output of tests, in the order of the software's names.
func table(r io.Reader) (string, error) {
	var rows []string
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if row, ok := row(lines.Text()); ok {
			rows = append(rows, row)
		}
	}
	slices.Sort(rows)
	rows = append([]string{"| software | what it shows | virtual | real | runs alike |", "| --- | --- | --- | --- | --- |"}, rows...)
	return strings.Join(rows, "\n") + "\n", lines.Err()
}

// row is a scenario's row of the table, if a line of output is its report.
func row(line string) (string, bool) {
	_, report, ok := strings.Cut(line, ": scenario | ")
	cells := strings.Split(report, " | ")
	if !ok || len(cells) < 5 {
		return "", false
	}
	software, shows := cells[0], cells[1]
	virtual, _ := strings.CutPrefix(cells[2], "virtual ")
	real, _ := strings.CutPrefix(cells[3], "real ")
	alike, _ := strings.CutPrefix(strings.TrimRight(strings.Join(cells[4:], ": "), " |:"), "repeats ")
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", software, shows, virtual, real, alike), true
}

// sections are the documentation of the packages in the folders of one, each under the folder's name.
func sections(root string) (string, error) {
	files, err := filepath.Glob(filepath.Join(root, "*", "doc.go"))
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&all, "\n## %s\n\n%s", filepath.Base(filepath.Dir(name)), markdown(file))
	}
	return all.String(), nil
}

// markdown is a package's documentation.
func markdown(file *ast.File) string {
	var p comment.Parser
	printer := comment.Printer{HeadingLevel: 3, HeadingID: func(*comment.Heading) string { return "" }}
	return string(printer.Markdown(p.Parse(file.Doc.Text())))
}
