package generate

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Extended resources that device classes stand for, by what their specs may say.
const (
	nicResource = "example.com/nic"
	anyResource = "example.com/any"
)

// classed is the resources that each device class may say it stands for.
var classed = map[string][]string{"gpu": {gpu, gpu, gpu, nicResource}, "big": {gpu, gpu, nicResource}, "nic": {nicResource}, "any": {anyResource}}

// requested is what pods ask for: by what a class says, by a class's own name, and
// what no class stands for.
var requested = []string{gpu, gpu, gpu, gpu, nicResource, anyResource, anyResource, fpga,
	resourcev1.ResourceDeviceClassPrefix + "gpu", resourcev1.ResourceDeviceClassPrefix + "big", resourcev1.ResourceDeviceClassPrefix + "missing"}

// offerExtended has nodes offer some of the resources themselves, as a device
// plugin does.
func offerExtended(b *builder, n *v1.Node) {
	offer(b, n, "0", "1", "2", "4")
}

// reofferExtended leaves what a node lists with nothing of it as it is: that is no
// news to Berth, and to kube-scheduler it is.
func reofferExtended(b *builder, n *v1.Node) {
	offer(b, n, "1", "2", "4")
}

func offer(b *builder, n *v1.Node, amounts ...string) {
	l := n.Status.Allocatable.DeepCopy()
	for _, r := range []v1.ResourceName{gpu, nicResource, anyResource, fpga} {
		if q, listed := l[r]; listed && q.IsZero() {
			continue
		}
		delete(l, r)
		if b.chance(25) {
			l[r] = resource.MustParse(b.word(amounts...))
		}
		if q := l[r]; r == fpga && q.IsZero() {
			delete(l, r) // configurations ignore it: docs/deviations.md
		}
	}
	setAllocatable(n, l)
}

// requestExtended has some pods request such resources, in containers that stay
// and in init containers that pass or stay.
func requestExtended(b *builder, p *v1.Pod) {
	if !b.chance(40) {
		return
	}
	for range b.pick(0, 0, 0, 1, 2) {
		c := v1.Container{Name: fmt.Sprintf("i%d", len(p.Spec.InitContainers)), Image: "registry.k8s.io/pause:3.10"}
		if b.chance(35) {
			always := v1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		c.Resources.Requests = list("cpu", "1m")
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	some := []string{b.word(requested...), b.word(requested...)}
	for _, containers := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			for _, r := range some[:b.pick(0, 1, 1, 1, 2)] {
				containers[i].Resources.Requests[v1.ResourceName(r)] = resource.MustParse(b.word("0", "1", "1", "1", "2", "3"))
			}
		}
	}
}

func requestsExtended(p *v1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c v1.Container) bool {
		for _, r := range requested {
			if _, ok := c.Resources.Requests[v1.ResourceName(r)]; ok {
				return true
			}
		}
		return false
	})
}

// leaveClaim gives the pod a claim for what it requests: a running one its own, a
// waiting one now and then what an attempt before left behind.
func leaveClaim(b *builder, w *World, p *v1.Pod) {
	if p.Spec.NodeName == "" && !b.chance(8) {
		return
	}
	c := resourceClaim(b, p.Namespace, p.Name+"-extended-resources", resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{Name: "container-0-request-0", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu",
			AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}}})
	c.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	if b.chance(5) {
		c.Annotations = nil
	}
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: new(true)}}
	w.Objects = append(w.Objects, held(b, w, p, c))
}

// scoreExtended has NodeResourcesFit and NodeResourcesBalancedAllocation score by
// such resources. The latter of kube-scheduler does not survive a class with selectors.
func scoreExtended(b *builder, p *profile) {
	if b.chance(50) {
		s := map[string]any{"type": b.word("LeastAllocated", "MostAllocated")}
		resources := []map[string]any{{"name": "cpu", "weight": b.pick(1, 2)}}
		for _, r := range []string{gpu, nicResource, anyResource, resourcev1.ResourceDeviceClassPrefix + "gpu"} {
			if b.chance(50) {
				resources = append(resources, map[string]any{"name": r, "weight": b.pick(1, 1, 3)})
			}
		}
		s["resources"] = resources
		args := map[string]any{"scoringStrategy": s}
		if b.chance(20) {
			args["ignoredResources"] = []string{fpga}
		}
		p.args("NodeResourcesFit", args)
	}
	if b.chance(30) {
		p.args("NodeResourcesBalancedAllocation", map[string]any{"resources": []map[string]any{
			{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}, {"name": anyResource, "weight": 1}}})
	}
}
