package volumes

import (
	"math"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// diskName identifies an in-tree disk (GCE, EBS, RBD, iSCSI): volumes with equal names are
// the same disk, on which pods may conflict. Users that only read it are counted apart.
type diskName struct {
	kind     object.DiskKind
	name     string
	readOnly bool
}

// DiskRows are the rows on which pods use one in-tree disk, with the number of uses. They are
// valid until the table changes.
type DiskRows struct{ pods rowCounts }

// RowsWithDisk returns the rows on which the disk d may conflict with disks of pods there:
// those on which pods write to it, and those on which pods only read it, empty if that does
// not conflict with d. sure is false if a disk there has to be compared with d to know
// (RBD, by its monitors).
func (x *Index) RowsWithDisk(d *object.Disk) (written, read DiskRows, sure bool) {
	written.pods = x.disks[diskName{d.Kind, d.Name, false}]
	if !d.ReadOnly || d.Kind == object.AWSElasticBlockStore {
		read.pods = x.disks[diskName{d.Kind, d.Name, true}]
	}
	return written, read, d.Kind != object.RBD
}

// In calls visit with the index in rows of each row on which pods use the disk. It is
// fastest if rows are ascending.
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

// countDisks adds the in-tree disks of a placed pod to the counts (sign 1) or subtracts
// them (-1).
func (x *Index) countDisks(pl *table.Placed, sign int32) {
	for i := range pl.Pod.Volumes {
		if d := pl.Pod.Volumes[i].Disk; d != nil {
			x.disks.add(diskName{d.Kind, d.Name, d.ReadOnly}, pl.Row, sign)
		}
	}
}
