package generate

import (
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// A seed makes the same world each time, and another seed makes another world.
func TestSameSeedSameWorld(t *testing.T) {
	for _, mix := range Mixes() {
		a, _ := Cluster(mix, 7)
		b, _ := Cluster(mix, 7)
		c, _ := Cluster(mix, 8)
		if text(t, a) != text(t, b) {
			t.Errorf("%s: two worlds of one seed differ", mix)
		}
		if text(t, a) == text(t, c) {
			t.Errorf("%s: two seeds make one world", mix)
		}
	}
}

// Every world is one that an API server could hold.
func TestWorldsAreWellFormed(t *testing.T) {
	for _, mix := range Mixes() {
		for seed := range uint64(50) {
			w, err := Cluster(mix, seed)
			if err != nil {
				t.Fatal(err)
			}
			check(t, w)
		}
	}
}

func check(t *testing.T, w World) {
	t.Helper()
	nodes, pods := map[string]bool{}, map[string]bool{}
	for _, n := range w.Nodes {
		if nodes[n.Name] {
			t.Errorf("%s/%d: node %s twice", w.Mix, w.Seed, n.Name)
		}
		nodes[n.Name] = true
	}
	for _, p := range append(append([]*v1.Pod{}, w.Bound...), w.Pending...) {
		if pods[string(p.UID)] || p.UID == "" {
			t.Errorf("%s/%d: pod %s has a uid that is empty or taken", w.Mix, w.Seed, p.Name)
		}
		pods[string(p.UID)] = true
		if p.Spec.NodeName != "" && !nodes[p.Spec.NodeName] {
			t.Errorf("%s/%d: pod %s is bound to %q, which is not there", w.Mix, w.Seed, p.Name, p.Spec.NodeName)
		}
	}
	for i, c := range w.Changes {
		if i > 0 && w.Changes[i-1].After > c.After {
			t.Errorf("%s/%d: change %d (%s) out of order", w.Mix, w.Seed, i, c)
		}
	}
}

// Only the mixes of preemption have pods that outrank others.
func TestNothingToPreemptUnlessAsked(t *testing.T) {
	outranks := func(w World) bool {
		for _, p := range w.Pending {
			for _, other := range append(append([]*v1.Pod{}, w.Bound...), w.Pending...) {
				if *p.Spec.Priority > *other.Spec.Priority {
					return true
				}
			}
		}
		return false
	}
	for _, mix := range Mixes() {
		found := false
		for seed := range uint64(30) {
			w, _ := Cluster(mix, seed)
			found = found || outranks(w)
		}
		if found != mixes[mix].preemptible {
			t.Errorf("%s: a pod outranks another: %v", mix, found)
		}
	}
}

// A mix that does not exist is an error.
func TestUnknownMix(t *testing.T) {
	if _, err := Cluster("nonsense", 1); err == nil {
		t.Error("no error for a mix that does not exist")
	}
}

func text(t *testing.T, w World) string {
	t.Helper()
	out, err := yaml.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// A hard world has as many nodes and pods as it is told to, and hardly two of its
// pods request as much; the same seed makes the same world.
func TestHard(t *testing.T) {
	for _, mix := range HardMixes() {
		size := Size{Nodes: 40, Running: 80, Pending: 90}
		w, err := Hard(mix, 3, size)
		again, _ := Hard(mix, 3, size)
		if err != nil || !reflect.DeepEqual(w, again) {
			t.Fatalf("%s: %v, or another world for the same seed", mix, err)
		}
		if len(w.Nodes) != size.Nodes || len(w.Pending) != size.Pending || len(w.Bound) < size.Running/2 || len(w.Changes) > 0 {
			t.Errorf("%s: %d nodes, %d pods, %d running, %d changes", mix, len(w.Nodes), len(w.Pending), len(w.Bound), len(w.Changes))
		}
		nodes, seen := map[string]bool{}, map[int64]bool{}
		for _, n := range w.Nodes {
			nodes[n.Name] = true
		}
		for _, p := range w.Bound {
			if !nodes[p.Spec.NodeName] {
				t.Errorf("%s: pod %s is on node %q", mix, p.Name, p.Spec.NodeName)
			}
		}
		for _, p := range w.Pending {
			if seen[p.Spec.Containers[0].Resources.Requests.Memory().Value()] = true; p.Spec.NodeName != "" || len(p.Spec.SchedulingGates) > 0 {
				t.Errorf("%s: pod %s is bound or gated", mix, p.Name)
			}
		}
		if len(seen) < size.Pending*9/10 {
			t.Errorf("%s: %d pods of %d request memory that no other does", mix, len(seen), size.Pending)
		}
	}
	if _, err := Hard("taints", 1, Size{1, 1, 1}); err == nil {
		t.Error("a mix that there is not makes a world")
	}
}
