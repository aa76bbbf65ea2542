package table

import (
	"fmt"
	"math"

	"github.com/berth-scheduler/berth/core/object"
)

// diskName is what all disks have in common that conflict; those that are only read
// stand for themselves.
type diskName struct {
	kind     object.DiskKind
	name     string
	readOnly bool
}

// DiskRows are the rows with pods that have a disk of one name that may conflict with
// another. They are valid until the table changes.
type DiskRows struct{ pods rowCounts }

// RowsWithDisk returns the rows with pods that have a disk of the disk's kind and name, and
// those of them where these are only read, if they matter to the disk: it
// conflicts with nothing on any other row. sure: it conflicts with any of them.
func (t *Table) RowsWithDisk(d *object.Disk) (written, read DiskRows, sure bool) {
	written.pods = t.volumes.disks[diskName{d.Kind, d.Name, false}]
	if !d.ReadOnly || d.Kind == object.AWSElasticBlockStore {
		read.pods = t.volumes.disks[diskName{d.Kind, d.Name, true}]
	}
	return written, read, d.Kind != object.RBD
}

// In calls visit with the place of each of the rows that is one of them.
func (d DiskRows) In(rows []Row, visit func(i int)) {
	if len(d.pods) == 0 {
		return
	}
	at, last := 0, Row(math.MaxInt32)
	for i, r := range rows {
		if r <= last { // the first, or they come in another order
			at, _ = d.pods.find(r)
		}
		for at < len(d.pods) && d.pods[at].Row < r {
			at++
		}
		if last = r; at < len(d.pods) && d.pods[at].Row == r {
			visit(i)
		}
	}
}

// countDisks counts the disks of a placed pod (sign 1) or takes them off (-1).
func (t *Table) countDisks(pl *Placed, sign int32) {
	for i := range pl.Pod.Volumes {
		d := pl.Pod.Volumes[i].Disk
		if d == nil {
			continue
		}
		at := diskName{d.Kind, d.Name, d.ReadOnly}
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
			at := diskName{d.Kind, d.Name, d.ReadOnly}
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
