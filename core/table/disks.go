package table

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/object"
)

// diskName is what all disks have in common that conflict.
type diskName struct {
	kind object.DiskKind
	name string
}

// DiskRows are the rows with pods that have disks of one kind and name. They are valid
// until the table changes.
type DiskRows struct{ pods rowCounts }

// Has tells whether the row is one of them.
func (d DiskRows) Has(r Row) bool { return d.pods.of(r) > 0 }

// RowsWithDisk are the rows with pods that have a disk of the disk's kind and name: the
// disk conflicts with nothing on any other row.
func (t *Table) RowsWithDisk(d *object.Disk) DiskRows {
	return DiskRows{t.volumes.disks[diskName{d.Kind, d.Name}]}
}

// countDisks counts the disks of a placed pod (sign 1) or takes them off (-1).
func (t *Table) countDisks(pl *Placed, sign int32) {
	for i := range pl.Pod.Volumes {
		d := pl.Pod.Volumes[i].Disk
		if d == nil {
			continue
		}
		at := diskName{d.Kind, d.Name}
		if _, list := t.volumes.disks[at].add(pl.Row, sign); len(list) > 0 {
			t.volumes.disks[at] = list
		} else {
			delete(t.volumes.disks, at)
		}
	}
}

// checkDisks compares the rows with a recount.
func (t *Table) checkDisks() error {
	users := map[diskName]map[Row]int32{}
	rows := 0
	for _, pl := range t.placed { // any order: sums
		for i := range pl.Pod.Volumes {
			d := pl.Pod.Volumes[i].Disk
			if d == nil {
				continue
			}
			at := diskName{d.Kind, d.Name}
			if users[at] == nil {
				users[at] = map[Row]int32{}
			}
			if users[at][pl.Row]++; users[at][pl.Row] == 1 {
				rows++
			}
		}
	}
	for at, list := range t.volumes.disks { // any order: an error is an error
		rows -= len(list)
		for _, c := range list {
			if n := users[at][c.Row]; n != c.N {
				return fmt.Errorf("table: disk %v is counted %d times on node %q, recounted %d", at, c.N, t.names[c.Row], n)
			}
		}
	}
	if rows != 0 {
		return fmt.Errorf("table: disks are on %d rows more than are counted", rows)
	}
	return nil
}
