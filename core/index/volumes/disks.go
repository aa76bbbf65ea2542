package volumes

import (
	"math"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
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
func (x *Index) RowsWithDisk(d *object.Disk) (written, read DiskRows, sure bool) {
	written.pods = x.disks[diskName{d.Kind, d.Name, false}]
	if !d.ReadOnly || d.Kind == object.AWSElasticBlockStore {
		read.pods = x.disks[diskName{d.Kind, d.Name, true}]
	}
	return written, read, d.Kind != object.RBD
}

// In calls visit with the place of each of the rows that is one of them.
func (d DiskRows) In(rows []table.Row, visit func(i int)) {
	if len(d.pods) == 0 {
		return
	}
	at, last := 0, table.Row(math.MaxInt32)
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
func (x *Index) countDisks(pl *table.Placed, sign int32) {
	for i := range pl.Pod.Volumes {
		if d := pl.Pod.Volumes[i].Disk; d != nil {
			x.disks.add(diskName{d.Kind, d.Name, d.ReadOnly}, pl.Row, sign)
		}
	}
}
