package generate

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// spread gives pods topology spread constraints of every kind, or none and a
// Service or controller, by which the configured defaults spread them. Nodes
// get racks, and some of them host names that others have too, or none.
var spread = feature{
	node: rackNode, pod: spreadPod, config: spreadDefaults, world: selectorOwners,
	run: func(b *builder, p *v1.Pod) {
		if b.chance(10) {
			p.DeletionTimestamp = &p.CreationTimestamp
			p.Finalizers = []string{"example.com/slow"}
		}
	},
	renode: func(b *builder, n *v1.Node) {
		n.Labels[v1.LabelHostname] = n.Name
		rackNode(b, n)
		if b.chance(50) {
			n.Labels[v1.LabelTopologyZone] = b.word("a", "b", "c", "d")
		}
	},
	repod: func(b *builder, p *v1.Pod) { labelPod(b, p) },
}

func rackNode(b *builder, n *v1.Node) {
	delete(n.Labels, "rack")
	if b.chance(90) {
		n.Labels["rack"] = b.word("r1", "r2", "r3", "r4", n.Name)
	}
	switch b.IntN(20) {
	case 0:
		delete(n.Labels, v1.LabelHostname)
	case 1:
		n.Labels[v1.LabelHostname] = "shared"
	}
}

func labelPod(b *builder, p *v1.Pod) {
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	p.Labels["app"] = b.word("web", "web", "db", "batch")
	if delete(p.Labels, "rev"); b.chance(50) {
		p.Labels["rev"] = b.word("1", "2")
	}
}

func spreadPod(b *builder, p *v1.Pod) {
	if b.chance(90) {
		labelPod(b, p)
	}
	if b.chance(20) {
		p.Spec.NodeSelector = map[string]string{"disk": b.word("ssd", "hdd")}
	}
	if b.chance(60) {
		yes := true
		owner := []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet"}, {APIVersion: "apps/v1", Kind: "StatefulSet"},
			{APIVersion: "v1", Kind: "ReplicationController"}, {APIVersion: "batch/v1", Kind: "Job"},
		}[b.IntN(4)]
		owner.Name, owner.UID, owner.Controller = b.word("one", "two"), "owner", &yes
		p.OwnerReferences = []metav1.OwnerReference{owner}
	}
	if b.chance(35) {
		return
	}
	taken := map[string]bool{}
	for range b.pick(1, 1, 2, 2, 3) {
		c := constraint(b)
		if id := c.TopologyKey + string(c.WhenUnsatisfiable); !taken[id] {
			taken[id] = true
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, withSelector(b, c))
		}
	}
}

// constraint is one without a selector.
func constraint(b *builder) v1.TopologySpreadConstraint {
	c := v1.TopologySpreadConstraint{
		TopologyKey:       b.word(v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyZone, "rack"),
		MaxSkew:           int32(b.pick(1, 1, 1, 2, 3, 5)),
		WhenUnsatisfiable: v1.UnsatisfiableConstraintAction(b.word("DoNotSchedule", "ScheduleAnyway")),
	}
	if b.chance(2) {
		c.TopologyKey = "example.com/nowhere"
	}
	if c.WhenUnsatisfiable == v1.DoNotSchedule && b.chance(30) {
		n := int32(b.pick(1, 2, 3, 4, 10))
		c.MinDomains = &n
	}
	policy := func(into **v1.NodeInclusionPolicy) {
		if b.chance(40) {
			p := v1.NodeInclusionPolicy(b.word("Honor", "Ignore"))
			*into = &p
		}
	}
	policy(&c.NodeAffinityPolicy)
	policy(&c.NodeTaintsPolicy)
	return c
}

func withSelector(b *builder, c v1.TopologySpreadConstraint) v1.TopologySpreadConstraint {
	switch b.IntN(12) {
	case 0:
		return c // matches nothing
	case 1:
		c.LabelSelector = &metav1.LabelSelector{}
	case 2, 3:
		c.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{podRequirement(b)}}
	default:
		c.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": b.word("web", "web", "db", "batch")}}
	}
	if b.chance(30) {
		c.MatchLabelKeys = []string{b.word("rev", "rev", "none")}
	}
	return c
}

func podRequirement(b *builder) metav1.LabelSelectorRequirement {
	r := metav1.LabelSelectorRequirement{Key: b.word("app", "rev"),
		Operator: metav1.LabelSelectorOperator(b.word("In", "NotIn", "Exists", "DoesNotExist"))}
	if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
		r.Values = []string{b.word("web", "db", "1", "2")}
	}
	return r
}

// spreadDefaults leaves the system's defaults, or lists others.
func spreadDefaults(b *builder, p *profile) {
	if b.chance(55) {
		return
	}
	list := []v1.TopologySpreadConstraint{}
	for range b.pick(0, 1, 2, 3) {
		c := constraint(b)
		if !slices.ContainsFunc(list, func(o v1.TopologySpreadConstraint) bool {
			return o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable
		}) {
			list = append(list, c)
		}
	}
	p.args("PodTopologySpread", map[string]any{"defaultingType": "List", "defaultConstraints": list})
}

// selectorOwners makes Services and controllers, which select pods by what labelPod
// says, and do not always select those that they own.
func selectorOwners(b *builder, w *World) {
	for _, namespace := range []string{"default", "team-a"} {
		for i := range b.pick(0, 1, 1, 2, 3) {
			w.SelectorOwners = append(w.SelectorOwners, service(b, namespace, fmt.Sprintf("svc-%d", i)))
		}
		for _, name := range []string{"one", "two"} {
			meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
			if b.chance(60) {
				w.SelectorOwners = append(w.SelectorOwners, &v1.ReplicationController{
					TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ReplicationController"},
					ObjectMeta: meta, Spec: v1.ReplicationControllerSpec{Selector: podLabels(b)}})
			}
			if b.chance(60) {
				w.SelectorOwners = append(w.SelectorOwners, &appsv1.ReplicaSet{
					TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
					ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: ownerSelector(b)}})
			}
			if b.chance(60) {
				w.SelectorOwners = append(w.SelectorOwners, &appsv1.StatefulSet{
					TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
					ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: ownerSelector(b)}})
			}
		}
	}
}

func service(b *builder, namespace, name string) *v1.Service {
	s := &v1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}
	if b.chance(90) {
		s.Spec.Selector = podLabels(b)
	}
	return s
}

func podLabels(b *builder) map[string]string {
	set := map[string]string{"app": b.word("web", "web", "db")}
	if b.chance(25) {
		set["rev"] = b.word("1", "2")
	}
	return set
}

func ownerSelector(b *builder) *metav1.LabelSelector {
	switch b.IntN(8) {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{podRequirement(b)}}
	}
	return &metav1.LabelSelector{MatchLabels: podLabels(b)}
}
