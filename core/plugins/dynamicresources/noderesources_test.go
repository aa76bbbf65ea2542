package dynamicresources

import (
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

func mapping(capacity, times string) resourcev1.NodeAllocatableResourceMapping {
	m := resourcev1.NodeAllocatableResourceMapping{}
	if capacity != "" {
		m.CapacityKey = new(resourcev1.QualifiedName(capacity))
	}
	if times != "" {
		m.AllocationMultiplier = new(resource.MustParse(times))
	}
	return m
}

// A device takes an amount of its own, or a multiple of the capacity that the claim
// consumes; the devices of a claim add up.
func TestTakesOf(t *testing.T) {
	for name, c := range map[string]struct {
		mapping  resourcev1.NodeAllocatableResourceMapping
		consumed map[resourcev1.QualifiedName]resource.Quantity
		devices  int
		want     string // "" for nothing
		fails    bool
	}{
		"each device its amount":         {mapping: mapping("", "1500m"), devices: 2, want: "3"},
		"no amount is said":              {mapping: mapping("", ""), devices: 1, want: "0"},
		"what is consumed":               {mapping: mapping("cores", ""), consumed: map[resourcev1.QualifiedName]resource.Quantity{"cores": resource.MustParse("4")}, devices: 2, want: "8"},
		"a multiple of it":               {mapping: mapping("cores", "0.5"), consumed: map[resourcev1.QualifiedName]resource.Quantity{"cores": resource.MustParse("5")}, devices: 1, want: "2500m"},
		"another capacity is consumed":   {mapping: mapping("cores", "2"), consumed: map[resourcev1.QualifiedName]resource.Quantity{"lanes": resource.MustParse("5")}, devices: 1},
		"no capacity can be consumed":    {mapping: mapping("cores", "2"), devices: 1, fails: true},
		"an empty name is no capacity's": {mapping: resourcev1.NodeAllocatableResourceMapping{CapacityKey: new(resourcev1.QualifiedName("")), AllocationMultiplier: new(resource.MustParse("2"))}, devices: 1, want: "2"},
	} {
		slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: "d", Pool: resourcev1.ResourcePool{Name: "p", Generation: 2},
			Devices: []resourcev1.Device{{Name: "x", NodeAllocatableResourceMappings: map[v1.ResourceName]resourcev1.NodeAllocatableResourceMapping{"cpu": c.mapping}}}}}
		outdated := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: "d", Pool: resourcev1.ResourcePool{Name: "p", Generation: 1},
			Devices: []resourcev1.Device{{Name: "x"}}}}
		got := resourcev1.AllocationResult{}
		for range c.devices {
			got.Devices.Results = append(got.Devices.Results, resourcev1.DeviceRequestAllocationResult{Driver: "d", Pool: "p", Device: "x", ConsumedCapacity: c.consumed})
		}
		claim := &resourcev1.ResourceClaim{}
		claim.Name = "c"
		list, some, err := takesOf(&object.Pod{}, []*resourcev1.ResourceSlice{outdated, slice}, []*resourcev1.ResourceClaim{claim}, []resourcev1.AllocationResult{got})
		switch {
		case c.fails != (err != nil) || !some:
			t.Errorf("%s: some is %t, the error %v", name, some, err)
		case c.want == "" && len(list) > 0, c.want != "" && len(list) != 1:
			t.Errorf("%s: got %v", name, list)
		case c.want != "":
			if q := list[0].Resources[v1.ResourceCPU]; q.Cmp(resource.MustParse(c.want)) != 0 {
				t.Errorf("%s: got %s, want %s", name, q.String(), c.want)
			}
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
