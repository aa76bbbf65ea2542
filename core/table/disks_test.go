package table

import (
	"slices"
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
	has := func(d *object.Disk, rows ...Row) (found []Row) {
		written, read, _ := tb.RowsWithDisk(d)
		for _, of := range []DiskRows{written, read} {
			of.In(rows, func(i int) { found = append(found, rows[i]) })
		}
		return found
	}
	check := func(when string, want bool) {
		t.Helper()
		for _, rows := range [][]Row{{row, 1 - row}, {1 - row, row}, {row, row}, {1 - row}} {
			var in []Row
			for _, r := range rows {
				if r == row && want {
					in = append(in, r)
				}
			}
			if got := has(&disk, rows...); !slices.Equal(got, in) {
				t.Errorf("%s: of the rows %v the disk is on %v, want %v", when, rows, got, in)
			}
		}
		if got := append(has(&kind, row), has(&name, row)...); len(got) > 0 {
			t.Errorf("%s: another disk is on %v", when, got)
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

// Disks that are only read are in the way of those who write, and of nobody who reads
// but for EBS; of an RBD image more has to be known.
func TestDisksThatAreOnlyRead(t *testing.T) {
	tb := New()
	row := tb.SetNode(&object.Node{Name: "a"})
	for i, kind := range []object.DiskKind{object.GCEPersistentDisk, object.AWSElasticBlockStore, object.ISCSI, object.RBD} {
		p := pod(string(rune('a'+i)), 1)
		p.Volumes = []object.Volume{{Disk: &object.Disk{Kind: kind, Name: "d", ReadOnly: true}}}
		tb.AddPod(p, "a")
		for _, readOnly := range []bool{false, true} {
			written, read, sure := tb.RowsWithDisk(&object.Disk{Kind: kind, Name: "d", ReadOnly: readOnly})
			in := 0
			written.In([]Row{row}, func(int) { t.Errorf("kind %d: nobody writes", kind) })
			read.In([]Row{row}, func(int) { in++ })
			if want := !readOnly || kind == object.AWSElasticBlockStore; (in == 1) != want || sure != (kind != object.RBD) {
				t.Errorf("kind %d, read only %v: in the way %v, want %v; sure %v", kind, readOnly, in == 1, want, sure)
			}
		}
	}
}
