package whatif_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/generate"
	"github.com/berth-scheduler/berth/sim/whatif"
)

// generated is a world of the mix as a set and an input.
func generated(t *testing.T, mix string, seed uint64) (*manifest.Set, sim.Input) {
	t.Helper()
	w, err := generate.Cluster(mix, seed)
	if err != nil {
		t.Fatal(err)
	}
	set := manifest.NewSet()
	add := func(o metav1.Object) {
		for i := range decode.Kinds {
			if k := &decode.Kinds[i]; reflect.TypeOf(k.New()) == reflect.TypeOf(o) {
				if err := set.Add(o, k.Key(), "world"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, n := range w.Nodes {
		add(n)
	}
	for _, p := range slices.Concat(w.Bound, w.Pending) {
		add(p)
	}
	for _, b := range w.Budgets {
		add(b)
	}
	for _, n := range w.Namespaces {
		add(n)
	}
	for _, o := range slices.Concat(w.SelectorOwners, w.Objects) {
		add(o)
	}
	if err := set.Resolve(); err != nil {
		t.Fatal(err)
	}
	in := input(t, set)
	if w.Config != "" {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(w.Config), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if in.Machine, err = sim.Options(c); err != nil {
			t.Fatal(err)
		}
		in.Machine.Check = true
	}
	return set, in
}

// each plays the property on some worlds of every mix.
func each(t *testing.T, property func(t *testing.T, mix string, seed uint64)) {
	worlds := uint64(3)
	if testing.Short() {
		worlds = 1
	}
	for _, mix := range generate.Mixes() {
		t.Run(mix, func(t *testing.T) {
			for seed := range worlds {
				property(t, mix, 100+seed)
			}
		})
	}
}

// Without a change nothing moves except for what preemption evicts, and the pods
// that were pending go where a simulation has them go.
func TestNoChange(t *testing.T) {
	each(t, func(t *testing.T, mix string, seed uint64) {
		_, in := generated(t, mix, seed)
		plain, err := sim.Run(in)
		if err != nil {
			t.Fatal(err)
		}
		set, in := generated(t, mix, seed)
		r, err := whatif.Run(set, in, nil, whatif.Options{})
		if err != nil {
			t.Fatal(err)
		}
		evicted := map[string]bool{}
		for _, e := range r.Evicted {
			evicted[e.Pod] = true
		}
		for _, m := range r.Moved {
			if !evicted[m.Pod] {
				t.Errorf("seed %d: %+v", seed, m)
			}
		}
		if len(r.Gone)+len(r.Kept) > 0 {
			t.Errorf("seed %d: gone %v, kept %v", seed, r.Gone, r.Kept)
		}
		if len(r.Evicted) == 0 && !(maps.Equal(r.Placed, plain.Placed) && maps.Equal(r.Unplaced, plain.Unplaced)) {
			t.Errorf("seed %d: placed %v, unplaced %v; a simulation placed %v, unplaced %v", seed, r.Placed, r.Unplaced, plain.Placed, plain.Unplaced)
		}
	})
}

// After nodes were drained, none but the pods that belong there or were not let
// go is on them. Every pod that ran is accounted for once, and no budget of the
// eviction API is broken but by preemption.
func TestDrainedNodes(t *testing.T) {
	each(t, func(t *testing.T, mix string, seed uint64) {
		set, in := generated(t, mix, seed)
		random := rand.New(rand.NewPCG(seed, 1))
		var names []string
		for _, i := range random.Perm(len(in.Nodes))[:len(in.Nodes)/2] {
			names = append(names, in.Nodes[i].Name)
		}
		if len(names) == 0 {
			return
		}
		daemons := map[string]bool{}
		for _, p := range set.Pods {
			if owner := metav1.GetControllerOfNoCopy(p); owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node") || p.DeletionTimestamp != nil || p.Annotations[v1.MirrorPodAnnotationKey] != "" {
				daemons[p.Namespace+"/"+p.Name] = true
			}
		}
		r, err := whatif.Run(set, in, []whatif.Change{{Verb: "drain", Operands: names}}, whatif.Options{})
		if err != nil {
			t.Fatal(err)
		}
		kept, accounted := map[string]bool{}, map[string]int{}
		for _, k := range r.Kept {
			kept[k.Pod] = true
		}
		for _, p := range r.Cluster.Pods() {
			tolerates := r.Placed[p.Key()] != "" // a pod may tolerate that a node is cordoned
			if slices.Contains(names, p.NodeName) && !kept[p.Key()] && !daemons[p.Key()] && !tolerates {
				t.Errorf("seed %d: %s is on %s", seed, p.Key(), p.NodeName)
			}
			accounted[p.Key()]++
		}
		for _, g := range r.Gone {
			accounted[g.Pod]++
		}
		for _, p := range in.Pods {
			if p.NodeName != "" && !p.Terminal && accounted[p.Key()] != 1 {
				t.Errorf("seed %d: %s is accounted for %d times", seed, p.Key(), accounted[p.Key()])
			}
		}
		for _, b := range r.Budgets {
			if b.Broken() && len(r.Evicted) == 0 {
				t.Errorf("seed %d: %+v", seed, b)
			}
		}
	})
}

// The same changes give the same result.
func TestRepeatable(t *testing.T) {
	each(t, func(t *testing.T, mix string, seed uint64) {
		var first *whatif.Result
		for range 2 {
			set, in := generated(t, mix, seed)
			if len(in.Nodes) == 0 {
				return
			}
			r, err := whatif.Run(set, in, []whatif.Change{{Verb: "remove", Operands: []string{in.Nodes[0].Name}}, {Verb: "add-nodes", Operands: []string{"2", in.Nodes[len(in.Nodes)-1].Name}}}, whatif.Options{})
			if err != nil {
				if len(in.Nodes) == 1 {
					return // it is the one that was removed
				}
				t.Fatal(err)
			}
			if first == nil {
				first = r
			}
			if !slices.Equal(first.Moved, r.Moved) || !slices.Equal(first.Gone, r.Gone) || !maps.Equal(first.Placed, r.Placed) || !maps.Equal(first.Unplaced, r.Unplaced) {
				t.Errorf("seed %d: two runs differ", seed)
			}
		}
	})
}
