package domain

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// tally counts pods: those that are there once, those that are tried ten times.
type tally struct {
	Follower
	table   *table.Table
	pods    int64
	counted int // how often all were counted
}

func (c *tally) sync() {
	if c.Current(c.table) {
		return
	}
	c.Follow(c.table, false, func(p table.PodChange, n int64) {
		if p.Try {
			n *= 10
		}
		c.pods += n
	}, func() (sets, rows int) {
		c.counted++
		c.pods = there(c.table)
		return 1, int(c.pods)
	})
}

func there(t *table.Table) (n int64) {
	for _, r := range t.All() {
		n += int64(len(t.Pods(r)))
	}
	return n
}

func newTally() *tally {
	tb := table.New()
	tb.SetNode(&object.Node{Name: "n"})
	return &tally{Follower: Follower{ExactTries: true}, table: tb}
}

func (c *tally) add(from, n int) {
	for i := range n {
		c.table.AddPod(&object.Pod{UID: types.UID(fmt.Sprint(from + i))}, "n")
	}
}

// Whatever came, left or was tried since the last time, outside of tries each pod counts
// once.
func TestFollowerCountsWhatIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newTally()
		for round := range rapid.IntRange(1, 6).Draw(t, "rounds") {
			c.add(rapid.IntRange(0, 400).Draw(t, "first"), rapid.SampledFrom([]int{0, 1, 3, 90}).Draw(t, "come"))
			if rapid.Bool().Draw(t, "synced") {
				c.sync()
			}
			mark := c.table.Checkpoint()
			c.add(1000*(round+1), rapid.SampledFrom([]int{0, 1, 90}).Draw(t, "tried"))
			if rapid.Bool().Draw(t, "synced in the try") {
				c.sync()
			}
			c.table.Undo(mark)
			for i := range rapid.SampledFrom([]int{0, 2, 80}).Draw(t, "leave") {
				c.table.RemovePod(types.UID(fmt.Sprint(i)))
			}
			if c.sync(); c.pods != there(c.table) {
				t.Fatalf("counted %d pods of %d", c.pods, there(c.table))
			}
		}
	})
}

// A try is counted pod by pod, however long it is. Otherwise all are counted where that is
// less work, or where the table has forgotten what came.
func TestFollowerChoosesTheLessWork(t *testing.T) {
	c := newTally()
	c.add(0, 5)
	c.sync()
	mark := c.table.Checkpoint()
	c.add(100, 90)
	if c.sync(); c.pods != 5+900 || c.counted != 1 {
		t.Errorf("in a try: counted %d, all of them %d times", c.pods, c.counted)
	}
	c.table.Undo(mark)
	c.sync()
	c.add(200, 3)
	before := c.counted
	if c.sync(); c.pods != 8 || c.counted != before {
		t.Errorf("three came: counted %d, all of them %d times more", c.pods, c.counted-before)
	}
	c.add(300, 90)
	if c.sync(); c.pods != 98 || c.counted != before+1 {
		t.Errorf("many came: counted %d, all of them %d times more", c.pods, c.counted-before)
	}
	c.AddRows(1 << 40) // to count all is out of the question
	for i := range 1 << 18 {
		c.table.RemovePod(types.UID(fmt.Sprint(i % 2)))
		c.add(i%2, 1)
	}
	if c.sync(); c.pods != there(c.table) {
		t.Errorf("what the table has forgotten: counted %d of %d", c.pods, there(c.table))
	}
}
