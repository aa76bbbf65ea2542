package generate

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// World is one generated case: a cluster, the pods to be decided in the order
// given, and what changes meanwhile.
type World struct {
	Mix  string
	Seed uint64
	// Config is a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1)
	// as YAML; empty means the defaults.
	Config string
	// Gates are the feature gates that are not at their defaults.
	Gates   map[string]bool
	Nodes   []*v1.Node
	Bound   []*v1.Pod // spec.nodeName set
	Budgets []*policyv1.PodDisruptionBudget
	// SelectorOwners are Services, ReplicationControllers, ReplicaSets and
	// StatefulSets.
	SelectorOwners []metav1.Object
	Namespaces     []*v1.Namespace
	// Objects are claims, volumes and what else plugins read (decode.Object).
	Objects []metav1.Object
	Pending []*v1.Pod
	Changes []Change // ascending by After
}

// Verb says what happens to the object of a Change.
type Verb string

// The verbs of a Change.
const (
	Add    Verb = "Add"
	Update Verb = "Update"
	Delete Verb = "Delete"
)

// Change is one event of the cluster. Exactly one of Node, Namespace, Pod and
// Other is set.
type Change struct {
	// After is how many pods of World.Pending are decided before it happens.
	After int
	Verb  Verb
	Node  *v1.Node
	// Namespace is only ever updated: it gets other labels.
	Namespace *v1.Namespace
	// Pod is known by its name: spec.nodeName is not set for a pod out of
	// World.Pending, wherever it was placed by then. One that is added is bound.
	Pod *v1.Pod
	// Other is one of World.Objects, or to become one.
	Other metav1.Object
}

// String names the change in a few words.
func (c Change) String() string {
	if c.Node != nil {
		return fmt.Sprintf("%s node %s", c.Verb, c.Node.Name)
	}
	if c.Namespace != nil {
		return fmt.Sprintf("%s namespace %s", c.Verb, c.Namespace.Name)
	}
	if c.Other != nil {
		return fmt.Sprintf("%s %T %s/%s", c.Verb, c.Other, c.Other.GetNamespace(), c.Other.GetName())
	}
	return fmt.Sprintf("%s pod %s/%s", c.Verb, c.Pod.Namespace, c.Pod.Name)
}

// Object is what changes.
func (c Change) Object() any {
	if c.Node != nil {
		return c.Node
	}
	if c.Namespace != nil {
		return c.Namespace
	}
	if c.Other != nil {
		return c.Other
	}
	return c.Pod
}

// Mixes returns the names of the mixes under kube-scheduler's default gates, sorted.
func Mixes() []string { return named(false) }

// GateMixes returns the names of those under other feature gates, sorted.
func GateMixes() []string { return named(true) }

func named(gates bool) []string {
	var names []string
	for name, m := range mixes {
		if len(m.gates) > 0 == gates {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Cluster makes the world of a mix and a seed. An unknown mix is an error that
// names those there are.
func Cluster(name string, seed uint64) (World, error) {
	m, ok := mixes[name]
	if !ok {
		return World{}, fmt.Errorf("mix %q: no such mix (there are %s)", name, strings.Join(slices.Concat(Mixes(), GateMixes()), ", "))
	}
	b := &builder{Rand: rand.New(rand.NewPCG(seed, hash(name))), mix: m} // #nosec G404 -- a world is to be the same for a seed
	return b.world(name, seed), nil
}

// hash keeps the streams of two mixes with the same seed apart.
func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, s) // never fails
	return h.Sum64()
}
