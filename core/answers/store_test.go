package answers

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// plugin says of a node what its name and the pod's name add up to, in a number of
// answers that the pod's priority bounds, and a shift, of which each is an epoch.
func plugin(shift *int64) *framework.Plugin {
	answer := func(in *framework.Input, r table.Row) int64 {
		n := in.Table.Node(r)
		if n == nil {
			return 99 // of no meaning
		}
		return (n.Allocatable.MilliCPU + *shift + int64(len(in.Pod.Name))) % int64(in.Pod.Priority)
	}
	pl := &framework.Plugin{Name: "Sum"}
	pl.Epoch = func(*table.Table) uint64 { return uint64(*shift) }
	pl.Sign = func(key []byte, _ *table.Table, p *object.Pod) []byte {
		return append(append(key, p.Name...), byte(p.Priority))
	}
	pl.Filter = func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
		for i, r := range rows {
			out[i] = framework.Verdict(answer(in, r))
		}
	}
	pl.Score = func(in *framework.Input, rows []table.Row, out []int64) {
		for i, r := range rows {
			out[i] = -answer(in, r)
		}
	}
	return pl
}

// Whatever nodes come, change and go, a partition says of each what its plugin says now,
// by row and by sets, and the store keeps no more bytes than it may.
func TestPartitionsAreNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shift := int64(0)
		tb, pl := table.New(), plugin(&shift)
		var store Store
		var held [2]*Partition // as a view holds them, of the first pod
		pods := []*object.Pod{{Name: "a", Priority: 2}, {Name: "bb", Priority: 5}, {Name: "ccc", Priority: 2 * mostSets}}
		node := func(i int) {
			n := &object.Node{Name: fmt.Sprint("n", i)}
			n.Allocatable.MilliCPU = rapid.Int64Range(0, 40).Draw(t, "cpu")
			tb.SetNode(n)
		}
		for i := range rapid.IntRange(0, 200).Draw(t, "nodes") {
			node(i)
		}
		in := func(p *object.Pod) *framework.Input { return &framework.Input{Table: tb, Pod: p} }
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			if rapid.IntRange(0, 3).Draw(t, "epoch") == 0 {
				shift++
				held = [2]*Partition{}
			}
			for range rapid.IntRange(0, 20).Draw(t, "changes") {
				if i := rapid.IntRange(0, 250).Draw(t, "node"); rapid.Bool().Draw(t, "remove") {
					tb.RemoveNode(fmt.Sprint("n", i))
				} else {
					node(i)
				}
			}
			for _, pod := range pods {
				filter, score := store.Filter(pl, in(pod)), store.Score(pl, in(pod))
				compare(t, &store, filter, tb, func(r table.Row, out []framework.Verdict) uint64 {
					pl.Filter(in(pod), []table.Row{r}, out)
					return uint64(out[0])
				})
				compare(t, &store, score, tb, func(r table.Row, _ []framework.Verdict) uint64 {
					out := []int64{0}
					pl.Score(in(pod), []table.Row{r}, out)
					return uint64(out[0])
				})
			}
			if held[0] == nil {
				held = [2]*Partition{store.Filter(pl, in(pods[0])), store.Score(pl, in(pods[0]))}
			}
			store.Follow(held[0], pl, in(pods[0]))
			store.Follow(held[1], pl, in(pods[0]))
			if p := store.Filter(pl, in(pods[0])); held[0] != p || held[1] == p {
				t.Fatal("the partition of a signature is another one")
			}
		}
	})
}

// compare compares all that a partition says of rows with nodes with what its plugin says.
func compare(t *rapid.T, store *Store, p *Partition, tb *table.Table, says func(table.Row, []framework.Verdict) uint64) {
	live, byAnswer := store.Live(tb), map[uint64][]table.Row{}
	written := make([]int64, tb.Rows())
	p.Write(tb.All(), written)
	for _, r := range tb.All() {
		if live.Has(r) != (tb.Node(r) != nil) {
			t.Fatalf("row %d is live: %v", r, live.Has(r))
		}
		if !live.Has(r) {
			continue
		}
		want := says(r, make([]framework.Verdict, 1))
		if byAnswer[want] = append(byAnswer[want], r); p.At(r) != want || written[r] != int64(want) {
			t.Fatalf("row %d: %d, %d written, want %d", r, p.At(r), written[r], want)
		}
		if want != 0 && p.IsZero() {
			t.Fatalf("row %d has %d, though all are said to be 0", r, want)
		}
	}
	left, split, counted := slices.Clone(live), map[uint64]bool{}, slices.Clone(live)
	p.Split(live, make(table.RowSet, len(live)), func(answer uint64, part table.RowSet) {
		if split[answer] || !slices.Equal(part.Append(nil), byAnswer[answer]) {
			t.Fatalf("%d: rows %v, want %v", answer, part.Append(nil), byAnswer[answer])
		}
		split[answer] = true
	})
	for answer := range byAnswer { // any order: each by itself
		if !split[answer] {
			t.Fatalf("%d was left out", answer)
		}
	}
	p.Count(counted, func(answer uint64, rows table.RowSet) {
		if answer == 0 || !slices.Equal(rows.Append(nil), byAnswer[answer]) {
			t.Fatalf("%d counts rows %v, want %v", answer, rows.Append(nil), byAnswer[answer])
		}
		delete(byAnswer, answer)
	})
	if p.Reject(left); !slices.Equal(left, counted) || !slices.Equal(left.Append(nil), byAnswer[0]) {
		t.Fatalf("left %v, want %v", left.Append(nil), byAnswer[0])
	}
	if delete(byAnswer, 0); len(byAnswer) > 0 {
		t.Fatalf("not counted: %v", byAnswer)
	}
}

// Signatures without end, and answers that come and go, leave no more than the bound.
func TestStoreIsBounded(t *testing.T) {
	tb, pl := table.New(), plugin(new(int64))
	for i := range 300 {
		n := &object.Node{Name: fmt.Sprint("n", i)}
		n.Allocatable.MilliCPU = int64(i)
		tb.SetNode(n)
	}
	var store Store
	for i := range 4000 {
		pod := &object.Pod{Name: fmt.Sprint("p", i), Priority: int32(2 + bits.OnesCount(uint(i))*8)}
		store.Filter(pl, &framework.Input{Table: tb, Pod: pod})
		if n, bytes := store.Len(); bytes > baseBytes+bytesPerRow*tb.Rows() || n > bytes/fixedBytes {
			t.Fatalf("%d partitions with %d bytes", n, bytes)
		}
	}
	before := store.bytes
	if store.recount(); store.bytes != before {
		t.Errorf("counted %d bytes, there are %d", before, store.bytes)
	}
	pod := &object.Pod{Priority: 1 << 20} // one answer a node
	n := &object.Node{Name: "n0"}
	few, store := table.New(), Store{}
	for i := range 1000 {
		n := *n
		n.Allocatable.MilliCPU = int64(i)
		few.SetNode(&n)
		if p := store.Filter(pl, &framework.Input{Table: few, Pod: pod}); p.Column != nil {
			t.Fatalf("a column for one node after %d answers", i)
		}
	}
}
