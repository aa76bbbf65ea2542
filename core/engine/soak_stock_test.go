package engine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/generate"
)

// stock is what the events of a soak are drawn from: objects of a few
// generated worlds of one mix, under the configuration of the first.
type stock struct {
	*rand.Rand
	profiles   []*profile.Profile
	names      []string // of nodes
	nodes      []*v1.Node
	pods       []*v1.Pod
	owners     []*object.SelectorOwner
	namespaces []*object.Namespace
	objects    []object.Object
	serial     int
}

func newStock(t *testing.T, r *rand.Rand, mix string) *stock {
	t.Helper()
	s := &stock{Rand: r}
	for i := range 3 {
		w, err := generate.Cluster(mix, r.Uint64())
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			s.profiles = profiles(t, w.Config)
		}
		s.add(w)
	}
	for i := range pickOne(r, 2, 12, 40, 100) {
		s.names = append(s.names, fmt.Sprintf("node-%02d", i))
	}
	return s
}

// profiles are that of the configuration and, to share the views' room, one
// with the default plugins in the opposite order.
func profiles(t *testing.T, text string) []*profile.Profile {
	t.Helper()
	own, other := config.Default(), config.Default()
	if text != "" {
		var err error
		if own, err = config.Decode([]byte(text), "world"); err != nil {
			t.Fatal(err)
		}
	}
	*other.Profiles[0].SchedulerName = "turned round"
	slices.Reverse(other.Profiles[0].Plugins.MultiPoint.Enabled)
	var all []*profile.Profile
	for _, c := range []*config.Config{own, other} {
		o, err := sim.Options(c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o.Profiles...)
	}
	return all
}

func (s *stock) add(w generate.World) {
	s.nodes = append(s.nodes, w.Nodes...)
	s.pods = append(append(s.pods, w.Bound...), w.Pending...)
	for _, c := range w.Changes {
		switch {
		case c.Node != nil:
			s.nodes = append(s.nodes, c.Node)
		case c.Namespace != nil:
			s.namespaces = append(s.namespaces, decode.Namespace(c.Namespace))
		case c.Pod != nil:
			s.pods = append(s.pods, c.Pod)
		default:
			s.addObject(c.Other)
		}
	}
	for _, f := range w.SelectorOwners {
		s.owners = append(s.owners, decode.SelectorOwner(f))
	}
	for _, o := range w.Objects {
		s.objects = append(s.objects, decode.Object(o))
	}
	for _, n := range w.Namespaces {
		s.namespaces = append(s.namespaces, decode.Namespace(n))
	}
	for _, o := range w.Objects {
		s.addObject(o)
	}
}

func (s *stock) addObject(o metav1.Object) {
	if decoded := decode.Object(o); decoded != nil {
		s.objects = append(s.objects, decoded)
	}
}

func pickOne[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func (s *stock) name() string { return pickOne(s.Rand, s.names...) }

// node is one of the nodes under one of the names. What names the node in its
// labels names it by the other name.
func (s *stock) node(name string) *object.Node {
	if len(s.nodes) == 0 {
		return &object.Node{Name: name, AllowedPods: 3}
	}
	n := pickOne(s.Rand, s.nodes...).DeepCopy()
	for key, value := range n.Labels {
		if value == n.Name {
			n.Labels[key] = name
		}
	}
	n.Name, n.UID = name, types.UID(name)
	switch s.IntN(30) {
	case 0: // every node a domain
		n.Labels[v1.LabelTopologyZone] = name
	case 1: // a domain of long ago, or one that was never there
		n.Labels[v1.LabelTopologyZone] = fmt.Sprint("zone-", s.IntN(1000))
	case 2:
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: "soak", Effect: pickOne(s.Rand, v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule)})
	case 3:
		setIn(&n.Status.Allocatable, v1.ResourceCPU, *resource.NewMilliQuantity(int64(s.IntN(8000)), resource.DecimalSI))
	case 4:
		setIn(&n.Status.Allocatable, s.rareResource(), resource.MustParse("4"))
	case 5, 6, 7: // another's
		n.Labels[v1.LabelHostname] = s.name()
	case 8, 9:
		n.Status.Images = nil
	case 10:
		n.Spec.Unschedulable = !n.Spec.Unschedulable
	}
	return decode.Node(n)
}

func (s *stock) rareResource() v1.ResourceName {
	return v1.ResourceName(fmt.Sprint("example.com/soak-", s.IntN(8)))
}

func setIn(list *v1.ResourceList, name v1.ResourceName, q resource.Quantity) {
	if *list == nil {
		*list = v1.ResourceList{}
	}
	(*list)[name] = q
}

// pod is one of the pods with a name of its own, pending, or bound to the
// node.
func (s *stock) pod(node string) *object.Pod { return decode.Pod(s.draw(node)) }

// draw is pod before it is decoded.
func (s *stock) draw(node string) *v1.Pod {
	p := s.named(pickOne(s.Rand, s.pods...))
	p.Spec.NodeName, p.Status.NominatedNodeName = node, ""
	if s.IntN(12) == 0 {
		s.makeStrange(p)
	}
	if s.IntN(20) == 0 {
		p.Status.NominatedNodeName = s.name()
	}
	if node != "" && s.IntN(12) == 0 {
		p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	return p
}

// named returns a copy with a name of its own.
func (s *stock) named(p *v1.Pod) *v1.Pod {
	p = p.DeepCopy()
	s.serial++
	p.Name = fmt.Sprint("s-", s.serial)
	p.UID = types.UID(p.Name)
	return p
}

// twin is a copy that differs in one thing, so that it is another class if a
// plugin reads that.
func (s *stock) twin(p *v1.Pod) *v1.Pod {
	p, other := s.named(p), pickOne(s.Rand, s.pods...).DeepCopy()
	switch spec := &p.Spec; s.IntN(11) {
	case 0:
		p.Namespace = pickOne(s.Rand, "default", "team-a", "team-b")
	case 1:
		p.Labels = other.Labels
	case 2:
		spec.Tolerations = other.Spec.Tolerations
	case 3:
		spec.NodeSelector = other.Spec.NodeSelector
	case 4:
		spec.Affinity = other.Spec.Affinity
	case 5:
		spec.TopologySpreadConstraints = other.Spec.TopologySpreadConstraints
	case 6:
		p.OwnerReferences = other.OwnerReferences
	case 7:
		spec.Priority = other.Spec.Priority
	case 8:
		spec.Containers[0].Image = other.Spec.Containers[0].Image
	case 9:
		spec.Containers[0].Ports = other.Spec.Containers[0].Ports
	case 10:
		spec.Containers[0].Resources = other.Spec.Containers[0].Resources
	}
	return p
}

// odd is a pod with a term and a resource that no other has.
func (s *stock) odd() *object.Pod {
	p := s.draw("")
	s.giveTerm(p)
	setIn(&p.Spec.Containers[0].Resources.Requests, v1.ResourceName(fmt.Sprint("example.com/odd-", s.serial)), resource.MustParse("1"))
	return decode.Pod(p)
}

// makeStrange gives the pod something that no other has, so that it is a class
// of its own.
func (s *stock) makeStrange(p *v1.Pod) {
	requests := &p.Spec.Containers[0].Resources.Requests
	switch s.IntN(4) {
	case 0:
		setIn(requests, v1.ResourceCPU, *resource.NewMilliQuantity(int64(1+s.IntN(1500)), resource.DecimalSI))
	case 1:
		setIn(requests, s.rareResource(), resource.MustParse("1"))
	case 2:
		p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: fmt.Sprint("soak-", s.serial), Operator: v1.TolerationOpExists})
	case 3:
		s.giveTerm(p)
	}
}

// giveTerm has the pod keep others away by a term that no other pod has.
func (s *stock) giveTerm(p *v1.Pod) {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{}
	}
	app := pickOne(s.Rand, "web", "db", "batch")
	p.Spec.Affinity.PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
		TopologyKey: pickOne(s.Rand, v1.LabelHostname, v1.LabelTopologyZone, "rack"),
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: strings.Repeat("x", 1+s.IntN(3)), Operator: metav1.LabelSelectorOpNotIn, Values: []string{fmt.Sprint(s.serial)}}}},
	}}}
}

// nominations lists pods by node, each pod once, and the nodes where that
// changed.
type nominations struct {
	byNode  map[string][]*object.Pod
	changed []string
}

func (n *nominations) NominatedTo(node string) []*object.Pod { return n.byNode[node] }

func (n *nominations) NominatedNodes() []string { return slices.Sorted(maps.Keys(n.byNode)) }

func (n *nominations) NominatedNode(uid types.UID) string {
	for node, pods := range n.byNode { // any order: a pod is nominated once
		if slices.ContainsFunc(pods, func(p *object.Pod) bool { return p.UID == uid }) {
			return node
		}
	}
	return ""
}

func (n *nominations) Renominated(since uint64) ([]string, uint64, bool) {
	return n.changed[since:], uint64(len(n.changed)), true
}

func (n *nominations) add(p *object.Pod, node string) {
	if was := n.NominatedNode(p.UID); was != "" {
		n.drop(was)
	}
	n.byNode[node], n.changed = append(slices.Clone(n.byNode[node]), p), append(n.changed, node)
}

func (n *nominations) drop(node string) {
	n.changed = append(n.changed, node)
	delete(n.byNode, node)
}
