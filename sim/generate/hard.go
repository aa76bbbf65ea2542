package generate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Size is how large a hard world is.
type Size struct{ Nodes, Running, Pending int }

// HardMixes are the mixes of hard worlds.
func HardMixes() []string {
	return []string{"interpod", "spread", "volumes", "devices", "preemption", "all"}
}

// Hard makes a large world of a mix, for measurements: hardly two of its pods are
// alike, and many do not fit. Nothing changes meanwhile, no pod is gated, and
// no pool of devices is broken. In the mix "all" pods have different priorities.
func Hard(name string, seed uint64, size Size) (World, error) {
	if !slices.Contains(HardMixes(), name) {
		return World{}, fmt.Errorf("mix %q: no such mix (there are %s)", name, strings.Join(HardMixes(), ", "))
	}
	b := &builder{Rand: rand.New(rand.NewPCG(seed, hash("hard "+name))), mix: mixes[name]} // #nosec G404 -- a seed is to give the same world
	b.sound = true
	b.mix.preemptible = b.mix.preemptible || name == "all"
	b.shapes = b.somePodShapes()
	w := World{Mix: name, Seed: seed}
	for range size.Nodes {
		b.nodes = append(b.nodes, b.node())
	}
	w.Nodes = b.nodes
	taken := map[string]map[int32]bool{}
	for i := range size.Running {
		n, p := b.nodes[i%size.Nodes], b.single(i)
		if taken[n.Name] == nil {
			taken[n.Name] = map[int32]bool{}
		}
		if takePorts(p, taken[n.Name]) {
			b.stamp(p, fmt.Sprintf("b-%05d", i))
			b.runOn(n, p)
			w.Bound = append(w.Bound, p)
		}
	}
	for i := range size.Pending {
		p := b.stamp(b.single(size.Running+i), fmt.Sprintf("p-%05d", i))
		w.Pending = append(w.Pending, b.ranked(p))
	}
	if name == "volumes" {
		for i := range size.Nodes {
			w.Objects = append(w.Objects, freeVolume(b, &w, fmt.Sprintf("free-%05d", i), int64(i)))
		}
	}
	for _, f := range b.mix.features {
		if f.world != nil {
			f.world(b, &w)
		}
	}
	return w, nil
}

// single makes a pod that is a class of its own: no other requests as much memory.
func (b *builder) single(i int) *v1.Pod {
	p := b.template()
	p.Spec.SchedulingGates = nil
	r := &p.Spec.Containers[0].Resources
	if r.Requests == nil {
		r.Requests = v1.ResourceList{}
	}
	memory := r.Requests[v1.ResourceMemory]
	more := *resource.NewQuantity(memory.Value()+int64(i), resource.BinarySI)
	r.Requests[v1.ResourceMemory] = more
	if limit, ok := r.Limits[v1.ResourceMemory]; ok && limit.Cmp(more) < 0 {
		r.Limits[v1.ResourceMemory] = more
	}
	return p
}
