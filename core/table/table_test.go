package table

import (
	"fmt"
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

func node(name string) *object.Node { return &object.Node{Name: name, AllowedPods: 110} }

func pod(uid string, milliCPU int64) *object.Pod {
	v := resource.Vector{MilliCPU: milliCPU}
	return &object.Pod{UID: types.UID(uid), Demand: resource.Demand{Usage: v, NonZero: v}}
}

// A node that goes and comes back under its name finds its pods again, on the
// same row; they are counted all the while.
func TestNodeKeepsItsPods(t *testing.T) {
	tb := New()
	before := tb.AddPod(pod("early", 100), "a") // its node is not known yet
	if _, ok := tb.Find("a"); ok || tb.Name(before.Row) != "a" {
		t.Fatalf("a is found %v, its row is called %q", ok, tb.Name(before.Row))
	}
	r := tb.SetNode(node("a"))
	tb.AddPod(pod("late", 20), "a")
	tb.RemoveNode("a")
	tb.SetNode(node("b"))
	if again := tb.SetNode(node("a")); again != r || r != before.Row || tb.Used(CPU)[r] != 120 || len(tb.Pods(r)) != 2 {
		t.Errorf("a is on row %d (was %d) with %d pods, %dm", again, r, len(tb.Pods(r)), tb.Used(CPU)[again])
	}
}

// A row that is used again brings nothing with it.
func TestRowsAreUsedAgain(t *testing.T) {
	tb := New()
	for i := range 100 {
		name := fmt.Sprint("node-", i)
		n := node(name)
		n.Allocatable = resource.Vector{MilliCPU: 5, Scalars: []resource.Scalar{{Name: "example.com/a", Value: 3}}}
		r := tb.SetNode(n)
		p := pod("p", 7)
		p.HostPorts = []object.HostPort{{Port: 80}}
		if i%2 == 0 {
			tb.AddPod(p, name)
		}
		tb.RemoveNode(name)
		tb.RemovePod("p")
		if r != 0 || tb.Rows() != 1 {
			t.Fatalf("%s came to row %d of %d", name, r, tb.Rows())
		}
	}
	r := tb.SetNode(node("last"))
	if err := tb.Check(); err != nil || tb.Used(CPU)[r] != 0 || tb.Allocatable(CPU)[r] != 0 {
		t.Errorf("%v; uses %dm of %dm", err, tb.Used(CPU)[r], tb.Allocatable(CPU)[r])
	}
}

// Changes and rollbacks in the wrong order panic.
func TestCheckpointMisuse(t *testing.T) {
	for name, misuse := range map[string]func(*Table){
		"node set":    func(tb *Table) { tb.Checkpoint(); tb.SetNode(node("a")) },
		"node gone":   func(tb *Table) { tb.SetNode(node("a")); tb.Checkpoint(); tb.RemoveNode("a") },
		"outer first": func(tb *Table) { m := tb.Checkpoint(); tb.Checkpoint(); tb.Undo(m) },
		"twice":       func(tb *Table) { m := tb.Checkpoint(); tb.Undo(m); tb.Undo(m) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			misuse(New())
		}()
	}
}

// Check finds what is wrong in any column.
func TestCheckFindsDamage(t *testing.T) {
	damages := map[string]func(*Table){
		"used":        func(tb *Table) { tb.columns.used[Memory][0]++ },
		"allocatable": func(tb *Table) { tb.columns.allocatable[CPU][0]-- },
		"non-zero":    func(tb *Table) { tb.columns.nonZero[1][0]++ },
		"pod count":   func(tb *Table) { tb.columns.podCount[0]++ },
		"room":        func(tb *Table) { tb.columns.allowedPods[0]++ },
		"live":        func(tb *Table) { tb.live++ },
		"lost pod":    func(tb *Table) { delete(tb.placed, "p") },
		"moved pod":   func(tb *Table) { tb.placed["p"].Row = 1 },
		"ghost row":   func(tb *Table) { tb.rows.of["ghost"] = 1 },
	}
	for name, damage := range damages {
		tb := New()
		tb.SetNode(node("a"))
		tb.SetNode(node("b"))
		tb.AddPod(pod("p", 100), "a")
		if err := tb.Check(); err != nil {
			t.Fatal(err)
		}
		if damage(tb); tb.Check() == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

// What is free in percent follows the pods on a node. A row is left out of the loop (its Left is
// negative) while the pods leave less room for a filter than for a score.
func TestPercentsFollowPods(t *testing.T) {
	tb := New()
	row := tb.SetNode(&object.Node{Name: "n", Allocatable: resource.Vector{MilliCPU: 100, Memory: 100}, AllowedPods: 9})
	free := func() (cpu, memory int) {
		p := tb.Percents()[row]
		return int(math.Floor(p.CPU.Left / PercentUnits)), int(math.Floor(p.Memory.Left / PercentUnits))
	}
	amount := resource.Vector{MilliCPU: 30, Memory: 10}
	for i, step := range []struct {
		do          func()
		cpu, memory int // free, in percent
	}{
		{func() {}, 100, 100},
		{func() {
			tb.AddPod(&object.Pod{UID: "p", Demand: resource.Demand{Usage: amount, NonZero: amount}}, "n")
		}, 70, 90},
		{func() { tb.AddPod(&object.Pod{UID: "q", Demand: resource.Demand{Usage: amount}}, "n") }, -1, -1},
		{func() { tb.RemovePod("q") }, 70, 90},
		{func() { tb.RemovePod("p") }, 100, 100},
	} {
		step.do()
		if cpu, memory := free(); cpu != step.cpu || memory != step.memory {
			t.Errorf("step %d: %d and %d percent free, want %d and %d", i, cpu, memory, step.cpu, step.memory)
		}
	}
}
