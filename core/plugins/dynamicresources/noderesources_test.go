package dynamicresources

import (
	"fmt"
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// Where devices take resources of their node, a pod that goes calls those that have
// claims, and no others.
func TestPodsThatGoFreeNodeResources(t *testing.T) {
	gone := &framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: &object.Pod{}}
	for _, c := range []struct{ gate, claims, want bool }{{true, true, true}, {true, false, false}, {false, true, false}} {
		p := &object.Pod{}
		if c.claims {
			p.Claiming = &v1.Pod{}
		}
		got := false
		for _, w := range eventsToRegister(c.gate) {
			got = got || w.Matches(gone) && w.QueueingHintFn(p, gone)
		}
		if got != c.want {
			t.Errorf("%+v: called %t", c, got)
		}
	}
}

func mapping(capacity, times string) resourcev1.NodeAllocatableResource {
	m := &resourcev1.NodeAllocatableMapping{}
	by := &m.DeviceMultiplier
	if capacity != "" {
		m.CapacityKey, by = new(resourcev1.QualifiedName(capacity)), &m.CapacityMultiplier
	}
	if times != "" {
		*by = new(resource.MustParse(times))
	}
	return resourcev1.NodeAllocatableResource{Mapping: m}
}

// A device takes an amount of its own, or a multiple of the capacity that the claim
// consumes, and what it needs besides; the devices of a claim add up.
func TestTakesOf(t *testing.T) {
	one := new(resource.MustParse("1"))
	for name, c := range map[string]struct {
		takes    resourcev1.NodeAllocatableResource
		consumed map[resourcev1.QualifiedName]resource.Quantity
		devices  int
		want     string // "" for nothing
		fails    bool
	}{
		"each device its amount":         {takes: mapping("", "1500m"), devices: 2, want: "3 cpu"},
		"no amount is said":              {takes: mapping("", ""), devices: 1},
		"what is consumed":               {takes: mapping("cores", ""), consumed: map[resourcev1.QualifiedName]resource.Quantity{"cores": resource.MustParse("4")}, devices: 2, want: "8 cpu"},
		"a multiple of it":               {takes: mapping("cores", "0.5"), consumed: map[resourcev1.QualifiedName]resource.Quantity{"cores": resource.MustParse("5")}, devices: 1, want: "2500m cpu"},
		"another capacity is consumed":   {takes: mapping("cores", "2"), consumed: map[resourcev1.QualifiedName]resource.Quantity{"lanes": resource.MustParse("5")}, devices: 1},
		"no capacity can be consumed":    {takes: mapping("cores", "2"), devices: 1, fails: true},
		"an empty name is no capacity's": {takes: resourcev1.NodeAllocatableResource{Mapping: &resourcev1.NodeAllocatableMapping{CapacityKey: new(resourcev1.QualifiedName("")), DeviceMultiplier: one}}, devices: 1, want: "1 cpu"},
		"needed for each pod":            {takes: resourcev1.NodeAllocatableResource{Overhead: &resourcev1.NodeAllocatableOverhead{PerPod: one}}, devices: 2, want: "2 cpu per pod"},
		"needed for each container":      {takes: resourcev1.NodeAllocatableResource{Overhead: &resourcev1.NodeAllocatableOverhead{PerContainer: one}}, devices: 2, want: "2 cpu per container"},
		"no need":                        {takes: resourcev1.NodeAllocatableResource{Overhead: &resourcev1.NodeAllocatableOverhead{}}, devices: 2},
		"a node that cannot use it":      {takes: mapping("", "1"), devices: 1, want: "none"},
	} {
		node, seer := "n", &object.Node{Name: "n"}
		if c.want == "none" {
			seer.Name = "m"
		}
		slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: "d", NodeName: &node, Pool: resourcev1.ResourcePool{Name: "p", Generation: 2},
			Devices: []resourcev1.Device{{Name: "x", NodeAllocatableResources: map[v1.ResourceName]resourcev1.NodeAllocatableResource{"cpu": c.takes}}}}}
		outdated := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: "d", NodeName: &node, Pool: resourcev1.ResourcePool{Name: "p", Generation: 1},
			Devices: []resourcev1.Device{{Name: "x"}}}}
		got := &resourcev1.AllocationResult{}
		for range c.devices {
			got.Devices.Results = append(got.Devices.Results, resourcev1.DeviceRequestAllocationResult{Driver: "d", Pool: "p", Device: "x", ConsumedCapacity: c.consumed})
		}
		claim := &resourcev1.ResourceClaim{}
		claim.Name = "c"
		list, some, err := takesOf(&object.Pod{}, seer, []*resourcev1.ResourceSlice{outdated, slice}, maps.All(map[*resourcev1.ResourceClaim]*resourcev1.AllocationResult{claim: got}))
		if c.fails != (err != nil) || some != (c.want != "none") {
			t.Errorf("%s: some is %t, the error %v", name, some, err)
		}
		said := ""
		for _, s := range list {
			for _, m := range s.Mapping {
				said += fmt.Sprint(m.Quantity, " ", m.Name)
			}
			for _, o := range s.Overhead {
				if o.PerPod != nil {
					said += fmt.Sprint(o.PerPod, " ", o.Name, " per pod")
				}
				if o.PerContainer != nil {
					said += fmt.Sprint(o.PerContainer, " ", o.Name, " per container")
				}
			}
		}
		if said != c.want && c.want != "none" {
			t.Errorf("%s: got %q", name, said)
		}
	}
}

// The containers that use a claim are found by the name that the pod gives it, init
// containers first.
func TestUsers(t *testing.T) {
	claim := "claim"
	using := v1.ResourceRequirements{Claims: []v1.ResourceClaim{{Name: "mine"}}}
	p := &object.Pod{Claiming: &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Name: "init", Resources: using}},
		Containers:     []v1.Container{{Name: "idle"}, {Name: "main", Resources: using}},
		ResourceClaims: []v1.PodResourceClaim{{Name: "mine", ResourceClaimName: &claim}},
	}}}
	if got := containersUsing(p, claim); len(got) != 2 || got[0] != "init" || got[1] != "main" {
		t.Errorf("got %v", got)
	}
	if got := containersUsing(p, "another"); len(got) != 0 {
		t.Errorf("of another claim: %v", got)
	}
}
