package match

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func constraint(change func(*v1.TopologySpreadConstraint)) v1.TopologySpreadConstraint {
	c := v1.TopologySpreadConstraint{TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: v1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	change(&c)
	return c
}

func same(*v1.TopologySpreadConstraint) {}

// Fields that a constraint does not set have kube-scheduler's defaults.
func TestSpreadDefaults(t *testing.T) {
	s := NewSpread([]v1.TopologySpreadConstraint{constraint(same)}, map[string]string{"app": "web"})
	c := s.Hard[0]
	if c.MinDomains != 1 || !c.HonorAffinity || c.HonorTaints || !c.Self || len(s.Soft) != 0 {
		t.Errorf("%+v", c)
	}
	if NewSpread(nil, nil) != nil {
		t.Error("no constraints: want nil")
	}
}

// matchLabelKeys add the pod's own labels to the selector.
func TestSpreadSelectors(t *testing.T) {
	keys := func(keys ...string) func(*v1.TopologySpreadConstraint) {
		return func(c *v1.TopologySpreadConstraint) { c.MatchLabelKeys = keys }
	}
	pod := map[string]string{"app": "web", "rev": "2"}
	for _, c := range []struct {
		name   string
		change func(*v1.TopologySpreadConstraint)
		labels labels.Set
		want   bool
	}{
		{"matches", same, labels.Set{"app": "web"}, true},
		{"does not", same, labels.Set{"app": "db"}, false},
		{"nil matches nothing", func(c *v1.TopologySpreadConstraint) { c.LabelSelector = nil }, labels.Set{"app": "web"}, false},
		{"nil and keys match nothing", func(c *v1.TopologySpreadConstraint) { c.LabelSelector = nil; keys("rev")(c) }, pod, false},
		{"empty matches all", func(c *v1.TopologySpreadConstraint) { c.LabelSelector = &metav1.LabelSelector{} }, nil, true},
		{"key, same value", keys("rev"), pod, true},
		{"key, other value", keys("rev"), labels.Set{"app": "web", "rev": "1"}, false},
		{"key that the pod lacks", keys("none"), labels.Set{"app": "web"}, true},
	} {
		s := NewSpread([]v1.TopologySpreadConstraint{constraint(c.change)}, pod)
		if got := s.Hard[0].Selector.Matches(c.labels); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A selector that does not parse spoils the constraints of its own list only.
func TestSpreadInvalidSelector(t *testing.T) {
	broken := func(c *v1.TopologySpreadConstraint) {
		c.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	}
	s := NewSpread([]v1.TopologySpreadConstraint{constraint(broken), constraint(func(c *v1.TopologySpreadConstraint) {
		c.WhenUnsatisfiable = v1.ScheduleAnyway
	})}, nil)
	if s.HardInvalid == nil || s.SoftInvalid != nil || len(s.Soft) != 1 {
		t.Errorf("%+v", s)
	}
}

// Constraints that differ in any field have different keys.
func TestSpreadKeyTellsApart(t *testing.T) {
	two, honor, ignore := int32(2), v1.NodeInclusionPolicyHonor, v1.NodeInclusionPolicyIgnore
	pod := map[string]string{"app": "web", "rev": "2"}
	changes := []func(*v1.TopologySpreadConstraint){
		same,
		func(c *v1.TopologySpreadConstraint) { c.TopologyKey = "rack" },
		func(c *v1.TopologySpreadConstraint) { c.MaxSkew = 2 },
		func(c *v1.TopologySpreadConstraint) { c.MinDomains = &two },
		func(c *v1.TopologySpreadConstraint) { c.NodeAffinityPolicy = &ignore },
		func(c *v1.TopologySpreadConstraint) { c.NodeTaintsPolicy = &honor },
		func(c *v1.TopologySpreadConstraint) { c.WhenUnsatisfiable = v1.ScheduleAnyway },
		func(c *v1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"rev"} },
		func(c *v1.TopologySpreadConstraint) { c.LabelSelector = nil },
		func(c *v1.TopologySpreadConstraint) { c.LabelSelector = &metav1.LabelSelector{} },
		func(c *v1.TopologySpreadConstraint) { c.LabelSelector.MatchLabels = map[string]string{"app": "db"} },
		func(c *v1.TopologySpreadConstraint) {
			c.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "In", Values: []string{"1", "2"}}}
		},
	}
	seen := map[string]int{}
	for i, change := range changes {
		for range 2 { // equal constraints have equal keys
			key := NewSpread([]v1.TopologySpreadConstraint{constraint(change)}, pod).Key
			if first, ok := seen[key]; ok && first != i {
				t.Errorf("constraints %d and %d have one key", first, i)
			}
			seen[key] = i
		}
	}
	if len(seen) != len(changes) {
		t.Errorf("%d keys for %d constraints", len(seen), len(changes))
	}
	list := []v1.TopologySpreadConstraint{constraint(same)}
	if NewSpread(list, pod).Key == NewSpread(list, map[string]string{"app": "db"}).Key {
		t.Error("a pod that matches its own selector and one that does not have one key")
	}
}

// Without matchLabelKeys there is no second reading.
func TestKeyless(t *testing.T) {
	pod := map[string]string{"app": "web", "rev": "2"}
	plain := NewSpread([]v1.TopologySpreadConstraint{constraint(same)}, pod)
	keyed := NewSpread([]v1.TopologySpreadConstraint{constraint(func(c *v1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"rev"} })}, pod)
	if plain.Keyless != nil || keyed.Keyless == nil || keyed.Keyless.Key != plain.Key || keyed.Key == plain.Key {
		t.Errorf("%+v, %+v", plain, keyed)
	}
}
