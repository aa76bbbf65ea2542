// Command way prints through how many files of core a pod goes from its watch event to its
// binding, and past how many returns, by package and in all: `cd tools && go run ./way`. With
// -v it lists the returns.
//
// It runs TestWayOfAPod of core/machine under coverage twice, as a whole and its setup alone.
// A return counts if it ran more often in the whole. Plugins and API objects are listed, and
// not part of the sum.
package main

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/berth-scheduler/berth/"

// place is a line and a column of a file.
type place struct{ line, column int }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.line, q.line), cmp.Compare(p.column, q.column))
}

// block is a run of statements that coverage counts as one.
type block struct {
	file     string
	from, to place
}

func main() {
	verbose := flag.Bool("v", false, "list the returns")
	flag.Parse()
	dir, err := os.MkdirTemp("", "way")
	check(err)
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "machine.test")
	run("", "go", "test", "-vet=off", "-c", "-o", binary, "-covermode=count", "-coverpkg="+module+"core/...", module+"core/machine")
	whole, setup := counts(binary, filepath.Join(dir, "whole"), ""), counts(binary, filepath.Join(dir, "setup"), "setup")
	blocks := map[string][]block{}
	for b, n := range whole { // any order: they are searched
		if n > setup[b] {
			blocks[b.file] = append(blocks[b.file], b)
		}
	}
	files, returns := map[string]int{}, map[string]int{}
	allFiles, allReturns := 0, 0
	for _, file := range slices.Sorted(maps.Keys(blocks)) {
		n := countReturns(file, blocks[file], *verbose)
		pkg := path.Dir(file)
		files[pkg]++
		returns[pkg] += n
		if !strings.HasPrefix(pkg, "core/plugins") && pkg != "core/object" {
			allFiles++
			allReturns += n
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(files)) {
		fmt.Printf("%-40s %3d files %4d returns\n", pkg, files[pkg], returns[pkg])
	}
	fmt.Printf("%-40s %3d files %4d returns\n", "without plugins and objects", allFiles, allReturns)
}

// counts runs the test and returns how often each block ran.
func counts(binary, profile, way string) map[block]int {
	run(way, binary, "-test.run=^TestWayOfAPod$", "-test.coverprofile="+profile)
	f, err := os.Open(profile)
	check(err)
	defer f.Close()
	counts := map[block]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var b block
		var statements, n int
		file, rest, _ := strings.Cut(strings.TrimPrefix(lines.Text(), module), ":")
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.from.line, &b.from.column, &b.to.line, &b.to.column, &statements, &n); err == nil {
			b.file = file
			counts[b] = n
		}
	}
	return counts
}

// countReturns returns how many return statements of the file are in one of the blocks.
func countReturns(file string, blocks []block, list bool) (n int) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, filepath.Join("..", file), nil, parser.SkipObjectResolution)
	check(err)
	ast.Inspect(f, func(node ast.Node) bool {
		if r, is := node.(*ast.ReturnStmt); is {
			at := set.Position(r.Pos())
			p := place{at.Line, at.Column}
			if slices.ContainsFunc(blocks, func(b block) bool { return b.from.compare(p) <= 0 && p.compare(b.to) < 0 }) {
				n++
				if list {
					fmt.Printf("%s:%d\n", file, at.Line)
				}
			}
		}
		return true
	})
	return n
}

// run runs a command for the way, in the package's folder, and ends the program if it fails.
func run(way, name string, args ...string) {
	cmd := exec.Command(name, args...)
	cmd.Dir = "../core/machine"
	cmd.Env = append(os.Environ(), "BERTH_WAY="+way)
	if out, err := cmd.CombinedOutput(); err != nil {
		log.Fatalf("%v: %v\n%s", cmd, err, out)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
