package volumebinding

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
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
				if accessible(plugintest.Table(), made, n) {
					got += n.Name + " "
				}
			}
			if got != c.want {
				t.Errorf("reachable from %q, want %q", got, c.want)
			}
		})
	}
}

// Which nodes reach a volume is the same by the numbers of a label's values and by the
// selector, whether or not free volumes are pinned by the label.
func TestReachByNumbers(t *testing.T) {
	terms := func(list ...[]v1.NodeSelectorRequirement) *match.NodeSelector {
		s := &v1.NodeSelector{}
		for _, demands := range list {
			s.NodeSelectorTerms = append(s.NodeSelectorTerms, v1.NodeSelectorTerm{MatchExpressions: demands})
		}
		return match.NewNodeSelector(nil, s)
	}
	in := func(key string, values ...string) v1.NodeSelectorRequirement {
		return v1.NodeSelectorRequirement{Key: key, Operator: v1.NodeSelectorOpIn, Values: values}
	}
	selectors := []*match.NodeSelector{
		nil,
		terms([]v1.NodeSelectorRequirement{in("zone", "a")}),
		terms([]v1.NodeSelectorRequirement{in("zone", "b", "nowhere")}),
		terms([]v1.NodeSelectorRequirement{in("zone", "a"), in("disk", "ssd")}),
		terms([]v1.NodeSelectorRequirement{in("zone", "a")}, []v1.NodeSelectorRequirement{in("disk", "ssd")}),
		terms([]v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpNotIn, Values: []string{"a"}}}),
	}
	var nodes []*object.Node
	for i, labels := range []map[string]string{{}, {"zone": "a"}, {"zone": "b"}, {"zone": "a", "disk": "ssd"}, {"disk": "ssd"}, {"zone": "c"}} {
		nodes = append(nodes, &object.Node{Name: fmt.Sprint("n", i), Labels: labels})
	}
	tb, reached := plugintest.Table(nodes...), 0
	for _, pinned := range []bool{false, true} {
		if pinned {
			tb.Objects().Set(volume("free", 1, "zone", "a"))
		}
		for i, s := range selectors {
			of := reachOf(tb, s)
			if numbered := of.column != nil; numbered != (pinned && (i == 1 || i == 2)) {
				t.Errorf("selector %d, pinned %v: numbered %v", i, pinned, numbered)
			}
			for _, n := range nodes {
				row, _ := tb.Find(n.Name)
				if got, want := of.has(row, n), s.Matches(match.Subject{Labels: n.Labels}); got != want {
					t.Errorf("selector %d, pinned %v, labels %v: %v, want %v", i, pinned, n.Labels, got, want)
				} else if got {
					reached++
				}
			}
		}
	}
	if reached == 0 {
		t.Error("no node reaches anything")
	}
}
