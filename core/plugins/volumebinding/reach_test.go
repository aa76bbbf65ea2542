package volumebinding

import (
	"testing"

	"github.com/berth-scheduler/berth/core/object"
)

// A volume that is made for a claim is reachable from the nodes that have the
// chosen node's values of the driver's topology keys; without any, from all.
func TestMadeVolumeReach(t *testing.T) {
	node := func(name string, labels ...string) *object.Node {
		n := &object.Node{Name: name, Labels: map[string]string{}}
		for i := 0; i < len(labels); i += 2 {
			n.Labels[labels[i]] = labels[i+1]
		}
		return n
	}
	chosen := node("n", "zone", "a", "rack", "1", "arch", "x")
	others := []*object.Node{
		chosen, node("same", "zone", "a", "rack", "1"), node("rack", "zone", "a", "rack", "2"), node("zone", "zone", "b", "rack", "1"), node("bare"),
	}
	everywhere := "n same rack zone bare "
	for name, c := range map[string]struct {
		drivers []object.CSINodeDriver
		want    string
	}{
		"by one key":                {[]object.CSINodeDriver{{Name: "csi.example.com", TopologyKeys: []string{"zone"}}}, "n same rack "},
		"by two keys":               {[]object.CSINodeDriver{{Name: "csi.example.com", TopologyKeys: []string{"zone", "rack"}}}, "n same "},
		"a label that is not there": {[]object.CSINodeDriver{{Name: "csi.example.com", TopologyKeys: []string{"zone", "row"}}}, "n same rack "},
		"no label is there":         {[]object.CSINodeDriver{{Name: "csi.example.com", TopologyKeys: []string{"row"}}}, everywhere},
		"no keys":                   {[]object.CSINodeDriver{{Name: "csi.example.com"}}, everywhere},
		"another driver's keys":     {[]object.CSINodeDriver{{Name: "other", TopologyKeys: []string{"zone"}}}, everywhere},
	} {
		t.Run(name, func(t *testing.T) {
			tb, p := stage()
			tb.SetNode(chosen)
			tb.Objects().Set(&object.CSINode{Meta: object.Meta{Kind: object.CSINodes, Name: "n"}, Drivers: c.drivers})
			writes := reserved(t, plugin(t), tb, p)
			made := writes[1].Result[0].(*object.PersistentVolume)
			got := ""
			for _, n := range others {
				if accessible(nil, made, n) {
					got += n.Name + " "
				}
			}
			if got != c.want {
				t.Errorf("reachable from %q, want %q", got, c.want)
			}
		})
	}
}
