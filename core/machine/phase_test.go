package machine

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/queue"
)

var update = flag.Bool("update", false, "write the diagrams into docs/overview.md")

// The diagrams in docs/overview.md are those of the tables of legal moves.
func TestDiagramsAreOfTheTables(t *testing.T) {
	const file = "../../docs/overview.md"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for name, drawn := range map[string]string{"places": placeDiagram(), "phases": phaseDiagram()} { // any order: each has its own place
		begin, end := fmt.Sprintf("<!-- %s: begin -->\n", name), fmt.Sprintf("<!-- %s: end -->", name)
		before, rest, found := strings.Cut(doc, begin)
		old, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s has no %q and %q", file, begin, end)
		}
		if old != drawn && !*update {
			t.Errorf("the diagram %q is not that of the table: run go test ./core/machine -run TestDiagramsAreOfTheTables -update", name)
		}
		doc = before + begin + drawn + end + after
	}
	if *update {
		if err := os.WriteFile(file, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func placeDiagram() string {
	var d diagram
	for from, tos := range queue.Moves {
		for to, why := range tos {
			if from == to || queue.Place(to) != queue.Nowhere { // any place is left by Delete
				d.add(from, to, queue.Place(from), queue.Place(to), why)
			}
		}
	}
	return d.String()
}

func phaseDiagram() string {
	var d diagram
	for from, tos := range moves {
		for to, why := range tos {
			d.add(from, to, phase(from), phase(to), why)
		}
	}
	return d.String()
}

// diagram is the drawing of a table of moves, and its rows.
type diagram struct{ states, arrows, rows strings.Builder }

func (d *diagram) add(from, to int, a, b fmt.Stringer, why string) {
	if from == to {
		fmt.Fprintf(&d.states, "    s%d: %s\n", from, a)
	}
	if why != "" {
		fmt.Fprintf(&d.arrows, "    s%d --> s%d\n", from, to)
		fmt.Fprintf(&d.rows, "| %s | %s | %s |\n", a, b, why)
	}
}

func (d *diagram) String() string {
	return "```mermaid\nstateDiagram-v2\n" + d.states.String() + d.arrows.String() + "```\n\n| From | To | When |\n|---|---|---|\n" + d.rows.String()
}

// Every phase but the first is entered, and every one but the last is left.
func TestPhasesAreReached(t *testing.T) {
	for p := range phases {
		come, left := p == int(reserve), p == int(ended)
		for q := range phases {
			come, left = come || moves[q][p] != "", left || moves[p][q] != ""
		}
		if !come || !left {
			t.Errorf("%q: entered %t, left %t", phase(p), come, left)
		}
	}
}
