package table

import (
	"testing"

	"github.com/berth-scheduler/berth/core/object"
)

// A row has the disks of its pods for as long as one of them has it. A disk of another
// kind or name is another one.
func TestRowsWithDisk(t *testing.T) {
	tb := New()
	row := tb.SetNode(&object.Node{Name: "a"})
	tb.SetNode(&object.Node{Name: "b"})
	disk := object.Disk{Kind: object.RBD, Name: "d", Pool: "p", Monitors: []string{"m"}}
	kind, name := disk, disk
	kind.Kind, name.Name = object.ISCSI, "e"
	place := func(uid string) {
		p := pod(uid, 1)
		p.Volumes = []object.Volume{{}, {Disk: &object.Disk{Kind: object.RBD, Name: "d", Pool: "q"}}}
		tb.AddPod(p, "a")
	}
	check := func(when string, want bool) {
		t.Helper()
		if tb.RowsWithDisk(&disk).Has(row) != want || tb.RowsWithDisk(&kind).Has(row) || tb.RowsWithDisk(&name).Has(row) || tb.RowsWithDisk(&disk).Has(1-row) {
			t.Errorf("%s: the disk is on %v", when, tb.RowsWithDisk(&disk))
		}
		if err := tb.Check(); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	check("at first", false)
	place("1")
	place("2")
	check("two pods", true)
	tb.RemovePod("1")
	check("one pod", true)
	tb.Rebuild()
	check("rebuilt", true)
	tb.RemovePod("2")
	check("no pod", false)
}
