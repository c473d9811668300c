package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"path"
	"path/filepath"
	"strings"
)

// place is where a block of code begins.
type place struct {
	file         string // without its directory
	line, column int
}

// calls is how often a function is called for one operation.
type calls struct {
	function string
	perOp    float64
}

// parse reads a coverage profile: how often each block was entered, by its beginning.
func parse(r io.Reader) (map[place]int, error) {
	counts := make(map[place]int)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		file, block, ok := strings.Cut(lines.Text(), ":")
		if !ok || file == "mode" {
			continue
		}
		p := place{file: path.Base(file)}
		var endLine, endColumn, statements, count int
		if _, err := fmt.Sscanf(block, "%d.%d,%d.%d %d %d", &p.line, &p.column, &endLine, &endColumn, &statements, &count); err != nil {
			return nil, fmt.Errorf("coverage profile, %q: %w", lines.Text(), err)
		}
		counts[p] = max(counts[p], count)
	}
	return counts, lines.Err()
}

// functionsIn are the functions of the package in a directory, by the beginnings of their bodies.
func functionsIn(dir string) (map[place]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	functions := make(map[place]string)
	set := token.NewFileSet()
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				functions[beginning(set.Position(d.Body.Lbrace))] = name(d)
			}
		}
	}
	return functions, nil
}

// beginning is where the coverage tool says that a body begins: at its brace.
func beginning(p token.Position) place { return place{filepath.Base(p.Filename), p.Line, p.Column} }

// name is a function's name, with that of its receiver.
func name(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	return "(" + types.ExprString(d.Recv.List[0].Type) + ")." + d.Name.Name
}

// perOperation is how often each function is called for each of n operations more.
func perOperation(functions map[place]string, once, twice map[place]int, n int) (all []calls) {
	for p, f := range functions {
		all = append(all, calls{f, float64(twice[p]-once[p]) / float64(n)})
	}
	return all
}
