package machine

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/queue"
)

var update = flag.Bool("update", false, "write testdata/moves.md")

// testdata/moves.md draws the tables of legal moves.
func TestDiagramsAreOfTheTables(t *testing.T) {
	const file = "testdata/moves.md"
	drawn := "# Places of the queue, and phases of a binding cycle\n\n" +
		"Made by `go test ./core/machine -run TestDiagramsAreOfTheTables -update`.\n\n" +
		"## The places of the queue\n\n" +
		"A pod that comes from a snapshot begins at the place that it had. Any place is left when the pod is bound or deleted.\n\n" +
		placeDiagram() + "\n## The phases of a binding cycle\n\n" + phaseDiagram()
	if *update {
		if err := os.WriteFile(file, []byte(drawn), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != drawn {
		t.Errorf("%s does not draw the tables: run go test ./core/machine -run TestDiagramsAreOfTheTables -update", file)
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
