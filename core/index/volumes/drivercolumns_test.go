package volumes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// A driver's columns say what is counted row by row, whatever comes and goes, however
// many drivers there are.
func TestDriverColumns(t *testing.T) {
	rnd, tb := rand.New(rand.NewPCG(1, 2)), table.New()
	driver := func() string { return fmt.Sprint("d", rnd.IntN(driversCounted+2)) }
	attached, limited := 0, 0
	for i := range 4000 {
		node := fmt.Sprint("n", rnd.IntN(5))
		switch uid := types.UID(fmt.Sprint(rnd.IntN(30))); rnd.IntN(8) {
		case 0:
			tb.SetNode(&object.Node{Name: node})
		case 1:
			tb.RemoveNode(node)
		case 2:
			c := &object.CSINode{Meta: object.Meta{Kind: object.CSINodes, Name: node}}
			for range rnd.IntN(4) {
				c.Drivers = append(c.Drivers, object.CSINodeDriver{Name: driver(), Limited: rnd.IntN(2) == 0, Limit: rnd.Int32N(4)})
			}
			tb.Objects().Set(c)
		case 3:
			tb.RemovePod(uid)
		case 4:
			Of(tb).CountDriver(driver())
		default:
			if tb.Pod(uid) == nil {
				v := &object.MigratedVolume{Source: object.VolumeSource{Driver: driver(), Handle: fmt.Sprint(rnd.IntN(3))}}
				tb.AddPod(&object.Pod{UID: uid, Name: string(uid), Volumes: []object.Volume{{Migrated: v}}}, node)
			}
		}
		if err := tb.Check(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if n := len(Of(tb).columns); n > driversCounted {
			t.Fatalf("%d drivers have columns", n)
		}
		for _, c := range Of(tb).columns { // any order: sums
			for r := range c.Attached {
				attached += int(c.Attached[r])
				limited += map[bool]int{true: 1}[c.Limits[r] < math.MaxInt32]
			}
		}
	}
	if attached < 1000 || limited < 1000 {
		t.Errorf("%d volumes were attached, %d limits known: the test says little", attached, limited)
	}
}
