package volumes

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// A row has the disks of its pods for as long as one of them has it. A disk of another
// kind or name is another one.
func TestRowsWithDisk(t *testing.T) {
	tb := table.New()
	row := tb.SetNode(&object.Node{Name: "a"})
	tb.SetNode(&object.Node{Name: "b"})
	disk := object.Disk{Kind: object.RBD, Name: "d", Pool: "p", Monitors: []string{"m"}}
	kind, name := disk, disk
	kind.Kind, name.Name = object.ISCSI, "e"
	place := func(uid string) {
		p := &object.Pod{UID: types.UID(uid)}
		p.Volumes = []object.Volume{{}, {Disk: &object.Disk{Kind: object.RBD, Name: "d", Pool: "q"}}}
		tb.AddPod(p, "a")
	}
	has := func(d *object.Disk, rows ...table.Row) (found []table.Row) {
		written, read, _ := Of(tb).RowsWithDisk(d)
		for _, of := range []DiskRows{written, read} {
			of.In(rows, func(i int) { found = append(found, rows[i]) })
		}
		return found
	}
	check := func(when string, want bool) {
		t.Helper()
		for _, rows := range [][]table.Row{{row, 1 - row}, {1 - row, row}, {row, row}, {1 - row}} {
			var in []table.Row
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
	tb := table.New()
	row := tb.SetNode(&object.Node{Name: "a"})
	for i, kind := range []object.DiskKind{object.GCEPersistentDisk, object.AWSElasticBlockStore, object.ISCSI, object.RBD} {
		p := &object.Pod{UID: types.UID(rune('a' + i))}
		p.Volumes = []object.Volume{{Disk: &object.Disk{Kind: kind, Name: "d", ReadOnly: true}}}
		tb.AddPod(p, "a")
		for _, readOnly := range []bool{false, true} {
			written, read, sure := Of(tb).RowsWithDisk(&object.Disk{Kind: kind, Name: "d", ReadOnly: readOnly})
			in := 0
			written.In([]table.Row{row}, func(int) { t.Errorf("kind %d: nobody writes", kind) })
			read.In([]table.Row{row}, func(int) { in++ })
			if want := !readOnly || kind == object.AWSElasticBlockStore; (in == 1) != want || sure != (kind != object.RBD) {
				t.Errorf("kind %d, read only %v: in the way %v, want %v; sure %v", kind, readOnly, in == 1, want, sure)
			}
		}
	}
}
