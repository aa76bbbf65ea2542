package conform

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/lab/oracle"
)

// grants compares which devices the pod's claims get on the node that Berth
// chose.
func (r *run) grants(pod *v1.Pod, got oracle.Record) *Disagreement {
	upstream, ok := r.want.(*oracle.Scheduler)
	if _, itself := r.got.(*oracle.Scheduler); !ok || itself {
		return nil
	}
	if diff := compareGrants(upstream, pod, got.Node, got.Writes); diff != "" {
		return r.disagree(diff)
	}
	return nil
}

// compareGrants compares what kube-scheduler would give the pod's claims on the
// node with what Berth writes; "" if it is the same.
func compareGrants(upstream *oracle.Scheduler, pod *v1.Pod, node string, writes []framework.Write) string {
	wanted, err := upstream.Grants(pod, node)
	if err != nil {
		return fmt.Sprintf("devices on node %s: %v", node, err)
	}
	given := map[string][]string{}
	made := oracle.Made{}
	for _, w := range writes {
		status, _ := w.Patch["status"].(map[string]any)
		a, granted := status["allocation"].(*resourcev1.AllocationResult)
		found, uses := status["extendedResourceClaimStatus"].(map[string]any)
		switch {
		case w.Create != nil:
			made.Claim = w.Create.(*resourcev1.ResourceClaim)
		case w.Object.Kind == object.ResourceClaims && granted && made.Claim != nil && w.Object.Name == made.Claim.Name:
			made.Allocation = a
		case w.Object.Kind == object.ResourceClaims && granted:
			given[w.Object.Key()] = oracle.Devices(a)
		case uses && made.Claim != nil && found["resourceClaimName"] == made.Claim.Name:
			made.Uses = found["requestMappings"].([]v1.ContainerExtendedResourceRequest)
		}
	}
	oracle.Taken(takenOf(writes), given)
	if made.Claim != nil {
		given[oracle.ExtendedClaim] = made.Text()
	}
	if maps.EqualFunc(wanted, given, slices.Equal) {
		return ""
	}
	return fmt.Sprintf("devices on node %s: kube-scheduler %v, Berth %v", node, wanted, given)
}

// takenOf is what the writes say that devices take of the node's resources.
func takenOf(writes []framework.Write) []v1.NodeAllocatableResourceClaimStatus {
	for _, w := range writes {
		status, _ := w.Patch["status"].(map[string]any)
		if list, says := status["nodeAllocatableResourceClaimStatuses"].([]v1.NodeAllocatableResourceClaimStatus); says {
			return list
		}
	}
	return nil
}

// patchClaim does what the API server does with a patch of a claim.
func patchClaim(c *resourcev1.ResourceClaim, raw, patch []byte, strategic bool) ([]metav1.Object, error) {
	apply := jsonpatch.MergePatch
	if strategic {
		apply = func(raw, patch []byte) ([]byte, error) {
			return strategicpatch.StrategicMergePatch(raw, patch, resourcev1.ResourceClaim{})
		}
	}
	raw, err := apply(raw, patch)
	if err != nil {
		return nil, err
	}
	now := &resourcev1.ResourceClaim{}
	if err := json.Unmarshal(raw, now); err != nil {
		return nil, err
	}
	switch a := c.Status.Allocation; {
	case len(now.Status.ReservedFor) > 0 && now.Status.Allocation == nil:
		return nil, fmt.Errorf("the claim is reserved, but no device is allocated")
	case a != nil && now.Status.Allocation != nil && !slices.Equal(oracle.Devices(a), oracle.Devices(now.Status.Allocation)):
		return nil, fmt.Errorf("the claim already has devices")
	}
	return []metav1.Object{now}, nil
}
