package oracle

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/berth-scheduler/berth/sim/generate"
)

// A node and another have a device each, and share one of the network's by their labels.
// One loses its label. kube-scheduler scores it by the label that it had, and by the one that it
// has when the oracle has it count again, as it does after each change.
func TestDevicesAreCountedAgain(t *testing.T) {
	nic := "example.com/nic"
	slice := func(name, node string) *resourcev1.ResourceSlice {
		spec := resourcev1.ResourceSliceSpec{Driver: "nic.example.com", Pool: resourcev1.ResourcePool{Name: name, ResourceSliceCount: 1}, Devices: []resourcev1.Device{{Name: "one"}}}
		if spec.NodeName = &node; node == "" {
			spec.NodeName, spec.NodeSelector = nil, &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: "network", Operator: v1.NodeSelectorOpExists}}}}}
		}
		return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	labelled := func(name string) *v1.Node {
		n := node(name, "2")
		n.Labels["network"] = "yes"
		return n
	}
	s, err := New(generate.World{Nodes: []*v1.Node{labelled("a"), labelled("b")},
		Objects: []metav1.Object{
			&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "nic"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: &nic}},
			slice("a", "a"), slice("b", "b"), slice("net", "")},
		Config: "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- pluginConfig:\n" +
			"  - {name: NodeResourcesBalancedAllocation, args: {resources: [{name: cpu, weight: 1}, {name: example.com/nic, weight: 1}]}}\n"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	p := pod("p", "1")
	p.Spec.Containers[0].Resources.Requests[v1.ResourceName(nic)] = resource.MustParse("1")
	apart := func() bool { // by how many devices there are
		var scores []int64
		for _, n := range s.Decide(p).Nodes {
			for _, score := range n.Scores {
				if score.Plugin == names.NodeResourcesBalancedAllocation {
					scores = append(scores, score.Score)
				}
			}
		}
		return len(scores) == 2 && scores[0] != scores[1]
	}
	if apart() {
		t.Error("nodes that are alike have not the same score")
	}
	if err := s.changeNode(generate.Change{Verb: generate.Update, Node: node("a", "2")}); err != nil {
		t.Fatal(err)
	}
	if apart() {
		t.Error("kube-scheduler sees the change: a line of docs/deviations.md is out of date")
	}
	if _, err := s.Apply(generate.Change{Verb: generate.Update, Node: node("a", "2")}, nil); err != nil {
		t.Fatal(err)
	}
	if !apart() {
		t.Error("the device of the network still counts on the node that has lost its label")
	}
}
