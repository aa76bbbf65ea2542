package features

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/version"
)

// A pod is read without its resources as a whole where the gates are off, and is not
// changed by that.
func TestPodFields(t *testing.T) {
	list := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	for flag, want := range map[string]string{
		"": "spec status allocated",
		"InPlacePodLevelResourcesVerticalScaling=false": "spec",
		"PodLevelResources=false,InPlacePodLevelResourcesVerticalScaling=false,PodLevelResourcesFixDefaulting=false,PodLevelResourcesFixKubeletQOSClass=false": "",
	} {
		gates := New()
		if err := gates.Set(flag); err != nil {
			t.Fatal(err)
		}
		fields := PodFields(gates)
		pod := &v1.Pod{
			Spec:   v1.PodSpec{Resources: &v1.ResourceRequirements{Requests: list}},
			Status: v1.PodStatus{Resources: &v1.ResourceRequirements{Requests: list}, AllocatedResources: list},
		}
		if got := wholeOf(fields(pod)); got != want {
			t.Errorf("--feature-gates=%s: %q is read, want %q", flag, got, want)
		}
		if got := wholeOf(pod); got != "spec status allocated" {
			t.Errorf("--feature-gates=%s: the pod has %q left", flag, got)
		}
		if plain := (&v1.Pod{}); fields(plain) != plain {
			t.Errorf("--feature-gates=%s: a pod without such fields is copied", flag)
		}
	}
}

// wholeOf names the resources of the pod as a whole.
func wholeOf(p *v1.Pod) string {
	found := ""
	for _, f := range []struct {
		name string
		set  bool
	}{{"spec", p.Spec.Resources != nil}, {"status", p.Status.Resources != nil}, {"allocated", p.Status.AllocatedResources != nil}} {
		if f.set && found != "" {
			found += " "
		}
		if f.set {
			found += f.name
		}
	}
	return found
}

// What containers have got is read unless InPlacePodVerticalScaling is off, as an earlier
// version allows.
func TestContainersWithoutResources(t *testing.T) {
	got := &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}
	pod := &v1.Pod{Status: v1.PodStatus{
		ContainerStatuses:     []v1.ContainerStatus{{Name: "a", Resources: got, AllocatedResources: got.Requests}},
		InitContainerStatuses: []v1.ContainerStatus{{Name: "b", Resources: got}},
		Conditions:            []v1.PodCondition{{Type: v1.PodResizePending, Reason: v1.PodReasonInfeasible}},
	}}
	for flag, want := range map[string]bool{"": true, "InPlacePodVerticalScaling=false": false} {
		gates := New()
		must(gates.SetEmulationVersion(version.MajorMinor(1, 34)))
		if err := gates.Set(flag); err != nil {
			t.Fatal(err)
		}
		read := PodFields(gates)(pod).Status
		c, init := read.ContainerStatuses[0], read.InitContainerStatuses[0]
		if has := c.Resources != nil && c.AllocatedResources != nil && init.Resources != nil && len(read.Conditions) > 0; has != want || c.Name != "a" {
			t.Errorf("--feature-gates=%s: %v, %v", flag, c, init)
		}
		if pod.Status.ContainerStatuses[0].Resources == nil {
			t.Errorf("--feature-gates=%s: the pod is changed", flag)
		}
	}
}

// What devices take of a node's resources counts with the gate DRANodeAllocatableResources
// alone.
func TestDevicesWithoutTheirGate(t *testing.T) {
	pod := &v1.Pod{Status: v1.PodStatus{NodeAllocatableResourceClaimStatuses: []v1.NodeAllocatableResourceClaimStatus{{ResourceClaimName: "c"}}}}
	for flag, want := range map[string]int{"": 0, "DRANodeAllocatableResources=true": 1} {
		gates := New()
		if err := gates.Set(flag); err != nil {
			t.Fatal(err)
		}
		if got := len(PodFields(gates)(pod).Status.NodeAllocatableResourceClaimStatuses); got != want || len(pod.Status.NodeAllocatableResourceClaimStatuses) != 1 {
			t.Errorf("--feature-gates=%s: %d are read, want %d", flag, got, want)
		}
	}
}
