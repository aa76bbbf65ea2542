package compat

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
)

// A plugin sees of a pod that it has a claim whose devices take of the node's resources,
// also where the pod is assumed there and its status does not say so yet.
func TestNodeAllocatableClaims(t *testing.T) {
	for uid, claims := range map[types.UID]int{"taking": 1, "idle": 0} {
		p := &object.Pod{UID: uid, Namespace: "ns", Name: string(uid)}
		if claims > 0 {
			p.FromDevices = []v1.NodeAllocatableResourceClaimStatus{{ResourceClaimName: "c"}}
		}
		if got := newPodInfo(p, "n").GetPod().Status.NodeAllocatableResourceClaimStatuses; len(got) != claims {
			t.Errorf("%s: got %v", uid, got)
		}
	}
}
