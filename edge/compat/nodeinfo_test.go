package compat

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/object"
)

// A plugin sees which pods have a claim whose devices take of the node's resources, also of
// a pod that is assumed there and whose status does not say so yet.
func TestNodeAllocatableClaims(t *testing.T) {
	taking := func(uid string) fwk.PodInfo {
		return newPodInfo(&object.Pod{UID: types.UID(uid), Namespace: "ns", Name: uid,
			FromDevices: []v1.NodeAllocatableResourceClaimStatus{{ResourceClaimName: "c"}}}, "n")
	}
	n := &nodeInfo{requested: &amounts{}, nonZero: &amounts{}, allocatable: &amounts{}}
	n.add(taking("a"))
	n.add(taking("b"))
	n.add(newPodInfo(&object.Pod{UID: "idle", Namespace: "ns", Name: "idle"}, "n"))
	states := n.GetNodeAllocatableDRAClaimState()
	if got := states[types.NamespacedName{Namespace: "ns", Name: "c"}]; len(states) != 1 || got == nil || !got.ConsumerPods.HasAll("a", "b") || got.ConsumerPods.Len() != 2 {
		t.Errorf("got %v", states)
	}
}
