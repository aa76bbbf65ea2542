package resource

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func list(cpu, memory string) v1.ResourceList {
	l := v1.ResourceList{}
	for name, text := range map[v1.ResourceName]string{"cpu": cpu, "memory": memory} { // any order: each by itself
		if text != "" {
			l[name] = resource.MustParse(text)
		}
	}
	return l
}

// What devices take comes on top of what containers request, and is within what the
// pod requests as a whole, which has to cover both.
func TestDevicesAddToRequests(t *testing.T) {
	for name, c := range map[string]struct {
		container, pod, devices, overhead v1.ResourceList
		cpu, memory, usageCPU, nonZeroCPU int64
		uncovered                         string
	}{
		"containers":               {container: list("1", "1"), devices: list("2", "3"), cpu: 3000, memory: 4, usageCPU: 3000, nonZeroCPU: 3000},
		"nothing else":             {devices: list("2", ""), cpu: 2000, usageCPU: 2000, nonZeroCPU: 2100},
		"halves":                   {container: list("", "500m"), devices: list("", "500m"), memory: 1, nonZeroCPU: 100},
		"overhead":                 {devices: list("2", ""), overhead: list("1", ""), cpu: 3000, usageCPU: 3000, nonZeroCPU: 3100},
		"a pod that covers":        {container: list("1", ""), pod: list("4", ""), devices: list("3", ""), cpu: 4000, usageCPU: 4000, nonZeroCPU: 4000},
		"a pod that does not":      {container: list("1", ""), pod: list("3", ""), devices: list("3", ""), cpu: 3000, usageCPU: 3000, nonZeroCPU: 3000, uncovered: "pod level request for cpu is insufficient to cover the aggregated container and node-allocatable DRA requests"},
		"both, the first by name":  {pod: list("1", "1"), devices: list("3", "3"), cpu: 1000, memory: 1, usageCPU: 1000, nonZeroCPU: 1000, uncovered: "pod level request for cpu is insufficient to cover the aggregated container and node-allocatable DRA requests"},
		"a resource it leaves out": {pod: list("1", ""), devices: list("", "3"), cpu: 1000, memory: 3, usageCPU: 1000, nonZeroCPU: 1000},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: c.container}}}, Overhead: c.overhead}}
		if c.pod != nil {
			pod.Spec.Resources = &v1.ResourceRequirements{Requests: c.pod}
		}
		taken := []v1.NodeAllocatableResourceClaimStatus{{ResourceClaimName: "c"}}
		for name, q := range c.devices { // any order: sums
			taken[0].Mapping = append(taken[0].Mapping, v1.NodeAllocatableMappedResources{Name: name, Quantity: &q})
		}
		v, d := RequestsWithDevices(pod, taken), WithDevices(pod, taken)
		if v.MilliCPU != c.cpu || v.Memory != c.memory || d.Usage.MilliCPU != c.usageCPU || d.NonZero.MilliCPU != c.nonZeroCPU {
			t.Errorf("%s: got %+v, %+v", name, v, d)
		}
		if d.Usage.MilliCPU != v.MilliCPU || d.Usage.Memory != v.Memory {
			t.Errorf("%s: the pod takes %+v, and %+v was compared with the node", name, d.Usage, v)
		}
		if got := Uncovered(pod, taken); got != c.uncovered {
			t.Errorf("%s: uncovered is %q", name, got)
		}
	}
}

// Nor may a container's limit and what its devices take exceed the limit of the pod, nor all huge
// pages together.
func TestDevicesAreWithinLimits(t *testing.T) {
	const hugePages = v1.ResourceName("hugepages-2Mi")
	for name, c := range map[string]struct {
		container, pod v1.ResourceList
		taken          v1.NodeAllocatableResourceClaimStatus
		want           string
	}{
		"within":                  {container: list("1", ""), pod: list("3", ""), taken: taking("cpu", "2", "")},
		"beyond":                  {container: list("1", ""), pod: list("2", ""), taken: taking("cpu", "2", ""), want: "pod level limit for cpu is insufficient to cover the limit and DRA overhead for container a"},
		"by an overhead":          {container: list("1", ""), pod: list("2", ""), taken: taking("cpu", "", "2"), want: "pod level limit for cpu is insufficient to cover the limit and DRA overhead for container a"},
		"without limit":           {container: list("", "1"), pod: list("1", "2"), taken: taking("cpu", "2", "")},
		"without that of the pod": {container: list("1", ""), pod: list("", "2"), taken: taking("cpu", "2", "")},
		"huge pages":              {pod: v1.ResourceList{hugePages: resource.MustParse("2Mi")}, taken: taking(hugePages, "4Mi", ""), want: "pod level limit for hugepages-2Mi is insufficient to cover the aggregated container and node-allocatable DRA limits"},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{Resources: &v1.ResourceRequirements{Limits: c.pod},
			Containers: []v1.Container{{Name: "a", Resources: v1.ResourceRequirements{Limits: c.container}}, {Name: "b"}}}}
		if got := Uncovered(pod, []v1.NodeAllocatableResourceClaimStatus{c.taken}); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// taking is what a claim of container a takes: one resource, mapped or as an overhead of
// each container.
func taking(name v1.ResourceName, mapped, perContainer string) v1.NodeAllocatableResourceClaimStatus {
	s := v1.NodeAllocatableResourceClaimStatus{ResourceClaimName: "c", Containers: []string{"a"}}
	if mapped != "" {
		s.Mapping = []v1.NodeAllocatableMappedResources{{Name: name, Quantity: new(resource.MustParse(mapped))}}
	}
	if perContainer != "" {
		s.Overhead = []v1.NodeAllocatableOverheadResources{{Name: name, PerContainer: new(resource.MustParse(perContainer))}}
	}
	return s
}
