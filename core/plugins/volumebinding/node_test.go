package volumebinding

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/index/freevolumes"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// A node meets claims alike whether or not somebody wants to know how.
func TestVerdictWithoutAPlan(t *testing.T) {
	n := &object.Node{Name: "n", Labels: map[string]string{"zone": "a"}}
	tb := plugintest.Table(n)
	tb.Objects().Set(volume("small", 1, ""))
	tb.Objects().Set(volume("large", 9, "")) // the only one for a claim of 5
	for i := range 2 * freevolumes.Few {
		tb.Objects().Set(volume(fmt.Sprint("here ", i), 3, "zone", "a"))
		tb.Objects().Set(volume(fmt.Sprint("elsewhere ", i), 5, "zone", "b"))
	}
	kept := volume("kept", 9, "zone", "b")
	kept.Claim = &object.ClaimReference{Namespace: "ns", Name: "kept"}
	tb.Objects().Set(kept)
	here := []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"a"}}}}}
	elsewhere := []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"b"}}}}}
	var claims []*claim
	for _, class := range []*object.StorageClass{
		{Provisioner: "driver"}, {Provisioner: "driver", Topologies: here}, {Provisioner: "driver", Topologies: elsewhere}, {Provisioner: notSupported},
	} {
		for _, selected := range []string{"", "n", "other"} {
			for _, bytes := range []int64{0, 1, 2, 5} {
				c := &object.PersistentVolumeClaim{Class: "class", Bytes: bytes, VolumeMode: v1.PersistentVolumeFilesystem, SelectedNode: selected}
				if bytes == 0 {
					c.Namespace, c.Name = "ns", "kept"
				}
				claims = append(claims, &claim{PersistentVolumeClaim: c, class: class, volumes: suitable(tb, c, 1)},
					&claim{PersistentVolumeClaim: c, class: class, volumes: suitable(tb, c, 1), limited: true})
			}
		}
	}
	for _, a := range claims {
		for _, b := range claims {
			pc := &podClaims{}
			for _, c := range []*claim{a, b} {
				if c.SelectedNode != "" {
					pc.toProvision = append(pc.toProvision, c)
				} else {
					pc.toMatch = append(pc.toMatch, c)
				}
			}
			if short, long := pc.on(tb, 0, n, nil), pc.on(tb, 0, n, &choice{}); short != long {
				t.Fatalf("%+v and %+v: verdict %d without a plan, %d with one", a, b, short, long)
			}
		}
	}
}
