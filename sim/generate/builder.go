package generate

import (
	"fmt"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// builder holds what the features share while one world is made.
type builder struct {
	*rand.Rand
	mix       mix
	uniform   bool              // all nodes alike, so that ties abound
	closed    bool              // no node is open to all: pods wait for that and nothing else
	managed   bool              // an extender manages managedResource
	sound     bool              // no pool of devices is broken
	taking    map[string]taking // what devices take of their node's resources, by pool and name
	shapes    []shape
	templates []*v1.Pod
	nodes     []*v1.Node // as they stand, changes included
	made      int        // nodes made so far, those gone included
	clock     int        // seconds since the epoch of the world
}

// epoch is when a world begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (b *builder) world(name string, seed uint64) World {
	w := World{Mix: name, Seed: seed, Gates: b.mix.gates}
	b.uniform, b.closed = b.chance(30), b.chance(12)
	b.shapes = b.somePodShapes()
	w.Config = b.profile().yaml()
	size := 3 + b.IntN(b.pick(4, 12, 12, 28))
	if b.chance(2) {
		size = 0 // the nodes are yet to come
	}
	for range size {
		b.nodes = append(b.nodes, b.node())
	}
	w.Nodes = append(w.Nodes, b.nodes...)
	for range 2 + b.IntN(7) {
		b.templates = append(b.templates, b.template())
	}
	for _, n := range w.Nodes {
		w.Bound = append(w.Bound, b.boundTo(n, len(w.Bound))...)
	}
	for i := range 15 + b.IntN(40) {
		p := b.stamp(b.oneOf(b.templates).DeepCopy(), fmt.Sprintf("p-%03d", i))
		w.Pending = append(w.Pending, b.ranked(p))
	}
	for _, f := range b.mix.features {
		if f.world != nil {
			f.world(b, &w)
		}
	}
	b.closed = false
	w.Changes = b.changes(w)
	return w
}

// ranked gives some pods a priority above most of those that run, where pods may be
// preempted.
func (b *builder) ranked(p *v1.Pod) *v1.Pod {
	if b.mix.preemptible && b.chance(30) {
		rank := int32(b.pick(50, 500, 5000))
		p.Spec.Priority = &rank
	}
	return p
}

// chance is true in percent of the calls.
func (b *builder) chance(percent int) bool { return b.IntN(100) < percent }

// pick returns one of the numbers.
func (b *builder) pick(from ...int) int { return from[b.IntN(len(from))] }

// word returns one of the words.
func (b *builder) word(from ...string) string { return from[b.IntN(len(from))] }

// oneOf returns one of the pods.
func (b *builder) oneOf(from []*v1.Pod) *v1.Pod { return from[b.IntN(len(from))] }

// node makes the next node with all features of the mix.
func (b *builder) node() *v1.Node {
	name := fmt.Sprintf("node-%02d", b.made)
	b.made++
	b.clock++
	n := &v1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
			CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(b.clock) * time.Second)),
			Labels:            map[string]string{v1.LabelHostname: name}},
	}
	for _, f := range b.mix.features {
		if f.node != nil {
			f.node(b, n)
		}
	}
	return n
}

// template makes a pod that several pods of the world are copies of: pods that
// no plugin can tell apart are what a scheduler caches by.
func (b *builder) template() *v1.Pod {
	p := &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: b.word("default", "default", "team-a")},
	}
	for range b.pick(1, 1, 1, 2, 3) {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{
			Name: fmt.Sprintf("c%d", len(p.Spec.Containers)), Image: "registry.k8s.io/pause:3.10"})
	}
	for i, f := range b.mix.features {
		// Where many features meet, a pod shows some: with all of them it would
		// hardly ever fit anywhere.
		if f.pod != nil && (i == 0 || len(b.mix.features) <= 5 || b.chance(45)) {
			f.pod(b, p)
		}
	}
	applyDefaults(p)
	return p
}

// stamp gives a copy of a template its identity.
func (b *builder) stamp(p *v1.Pod, name string) *v1.Pod {
	b.clock++
	p.Name, p.UID = name, types.UID(name)
	p.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(b.clock) * time.Second))
	return p
}
