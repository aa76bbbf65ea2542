package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

func resourceClaim(c *resourcev1.ResourceClaim) *object.ResourceClaim {
	c = saneClaim(c)
	ask, _ := json.Marshal(&c.Spec) // API types always marshal
	decoded := &object.ResourceClaim{Meta: meta(object.ResourceClaims, &c.ObjectMeta), API: c, Ask: string(ask)}
	if a := c.Status.Allocation; a != nil && a.NodeSelector != nil {
		decoded.Nodes = match.NewNodeSelector(nil, a.NodeSelector)
		_, decoded.NodesError = nodeaffinity.NewNodeSelector(a.NodeSelector)
	}
	return decoded
}

func deviceTaintRule(r *resourcev1.DeviceTaintRule) *object.DeviceTaintRule {
	decoded := &object.DeviceTaintRule{Meta: meta(object.DeviceTaintRules, &r.ObjectMeta), Taint: r.Spec.Taint, SelectsNone: r.Spec.DeviceSelector == nil}
	if s := r.Spec.DeviceSelector; s != nil {
		decoded.Driver, decoded.Pool, decoded.Device = s.Driver, s.Pool, s.Device
	}
	return decoded
}

// podClaims returns the claims that the pod's entries name, each once. An entry that is not
// valid gives a claim with an Error, and one whose claim is not needed or made gives none.
func podClaims(p *v1.Pod) []object.PodClaim {
	if len(p.Spec.ResourceClaims) == 0 {
		return nil
	}
	var claims []object.PodClaim
	named := map[object.PodClaim]bool{}
	for i := range p.Spec.ResourceClaims {
		name, owned, err := resourceclaim.Name(p, &p.Spec.ResourceClaims[i])
		switch {
		case err != nil:
			claims = append(claims, object.PodClaim{Error: err.Error()})
		case name != nil:
			c := object.PodClaim{Claim: *name, Owned: owned}
			if !named[c] { // two entries may share a claim
				claims, named[c] = append(claims, c), true
			}
		}
	}
	return claims
}

// claiming is, of a pending pod with claims or extended resources that devices may provide, what
// its demand follows from.
func claiming(p *v1.Pod, extended []object.ExtendedRequest) *v1.Pod {
	if len(p.Spec.ResourceClaims)+len(extended) == 0 || p.Spec.NodeName != "" {
		return nil
	}
	s := &p.Spec
	return &v1.Pod{
		Spec: v1.PodSpec{InitContainers: sized(s.InitContainers), Containers: sized(s.Containers),
			Resources: s.Resources, Overhead: s.Overhead, ResourceClaims: s.ResourceClaims},
		Status: v1.PodStatus{ResourceClaimStatuses: p.Status.ResourceClaimStatuses},
	}
}

// sized is of the containers what counts for the pod's demand.
func sized(list []v1.Container) []v1.Container {
	kept := make([]v1.Container, len(list))
	for i := range list {
		kept[i] = v1.Container{Name: list[i].Name, Resources: list[i].Resources, RestartPolicy: list[i].RestartPolicy}
	}
	return kept
}

// extendedRequests lists what the containers request of resources that device
// classes may stand for. The name of a request for devices says which container
// it is for and which of its resources, by name, as in kube-scheduler.
func extendedRequests(spec *v1.PodSpec) []object.ExtendedRequest {
	var list []object.ExtendedRequest
	for at := range len(spec.InitContainers) + len(spec.Containers) {
		c, passing := containerAt(spec, at)
		if len(c.Resources.Requests) == 0 || !anyByDevices(c.Resources.Requests) {
			continue
		}
		for i, name := range slices.Sorted(maps.Keys(c.Resources.Requests)) {
			if !resource.ByDevices(name) {
				continue
			}
			q := c.Resources.Requests[name]
			count := int64(0) // also where it is no whole number
			if !q.IsZero() {  // AsInt64 counts its exponent down
				count, _ = q.AsInt64()
			}
			list = append(list, object.ExtendedRequest{Resource: name, Count: count, Container: c.Name, At: at,
				Request: fmt.Sprintf("container-%d-request-%d", at, i), Passing: passing})
		}
	}
	return list
}

// containerAt is the container at this place among init containers, then
// containers, and whether it is done before the next one starts.
func containerAt(spec *v1.PodSpec, at int) (c *v1.Container, passing bool) {
	if at < len(spec.InitContainers) {
		c = &spec.InitContainers[at]
		return c, !restartable(c)
	}
	return &spec.Containers[at-len(spec.InitContainers)], false
}

func anyByDevices(requests v1.ResourceList) bool {
	for name := range requests { // any order: one is enough
		if resource.ByDevices(name) {
			return true
		}
	}
	return false
}
