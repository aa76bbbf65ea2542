package generate

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// labels puts nodes into zones and kinds; selectors of affinity look there.
var labels = feature{node: labelNode, renode: func(b *builder, n *v1.Node) {
	host := n.Labels[v1.LabelHostname]
	n.Labels = map[string]string{v1.LabelHostname: host}
	labelNode(b, n)
}}

func labelNode(b *builder, n *v1.Node) {
	put := func(percent int, key string, values ...string) {
		if b.chance(percent) {
			n.Labels[key] = b.word(values...)
		}
	}
	put(85, v1.LabelTopologyZone, "a", "b", "c")
	put(70, "disk", "ssd", "hdd", "")
	put(60, "gen", "1", "2", "3", "10", "0", "007", "new")
	put(30, "example.com/pool", "x", "y")
}

// affinity is nodeSelector and nodeAffinity on pods and addedAffinity in the
// configuration.
var affinity = feature{pod: affinePod, config: addedAffinity, repod: nil}

func affinePod(b *builder, p *v1.Pod) {
	if b.chance(20) {
		p.Spec.NodeSelector = map[string]string{"disk": b.word("ssd", "hdd", "")}
		if b.chance(30) {
			p.Spec.NodeSelector[v1.LabelTopologyZone] = b.word("a", "b", "z")
		}
	}
	na := &v1.NodeAffinity{}
	if b.chance(35) {
		na.RequiredDuringSchedulingIgnoredDuringExecution = requiredTerms(b)
	}
	if b.chance(60) {
		na.PreferredDuringSchedulingIgnoredDuringExecution = preferredTerms(b)
	}
	if na.RequiredDuringSchedulingIgnoredDuringExecution != nil || na.PreferredDuringSchedulingIgnoredDuringExecution != nil {
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: na}
	}
}

func requiredTerms(b *builder) *v1.NodeSelector {
	s := &v1.NodeSelector{}
	for range b.pick(1, 1, 2, 3) {
		s.NodeSelectorTerms = append(s.NodeSelectorTerms, term(b))
	}
	return s
}

func preferredTerms(b *builder) []v1.PreferredSchedulingTerm {
	var terms []v1.PreferredSchedulingTerm
	for range 1 + b.IntN(4) {
		terms = append(terms, v1.PreferredSchedulingTerm{Weight: int32(b.pick(1, 2, 5, 33, 50, 99, 100)), Preference: term(b)})
	}
	return terms
}

// term is a node selector term; now and then an empty one, which matches
// nothing.
func term(b *builder) v1.NodeSelectorTerm {
	var t v1.NodeSelectorTerm
	if b.chance(4) {
		return t
	}
	if b.chance(15) {
		for range b.pick(1, 1, 2) {
			op := v1.NodeSelectorOpIn
			if b.chance(30) {
				op = v1.NodeSelectorOpNotIn
			}
			t.MatchFields = append(t.MatchFields, v1.NodeSelectorRequirement{Key: "metadata.name", Operator: op,
				Values: []string{fmt.Sprintf("node-%02d", b.IntN(6))}})
		}
	}
	if len(t.MatchFields) == 0 || b.chance(40) {
		for range b.pick(1, 1, 2, 3) {
			t.MatchExpressions = append(t.MatchExpressions, requirement(b))
		}
	}
	return t
}

func requirement(b *builder) v1.NodeSelectorRequirement {
	keys := map[string][]string{
		v1.LabelTopologyZone: {"a", "b", "c", "z"},
		"disk":               {"ssd", "hdd", ""},
		"gen":                {"1", "2", "10", "new"},
		"example.com/pool":   {"x", "y"},
	}
	key := b.word(v1.LabelTopologyZone, "disk", "gen", "example.com/pool")
	r := v1.NodeSelectorRequirement{Key: key}
	switch b.IntN(6) {
	case 0, 1:
		r.Operator = v1.NodeSelectorOpIn
	case 2:
		r.Operator = v1.NodeSelectorOpNotIn
	case 3:
		r.Operator = v1.NodeSelectorOpExists
		return r
	case 4:
		r.Operator = v1.NodeSelectorOpDoesNotExist
		return r
	case 5:
		r.Key, r.Operator = "gen", v1.NodeSelectorOpGt
		if b.chance(50) {
			r.Operator = v1.NodeSelectorOpLt
		}
		r.Values = []string{b.word("0", "2", "5", "08")}
		return r
	}
	for range b.pick(1, 1, 2) {
		r.Values = append(r.Values, b.word(keys[key]...))
	}
	return r
}

func addedAffinity(b *builder, p *profile) {
	if !b.chance(15) {
		return
	}
	added := map[string]any{}
	if b.chance(50) {
		added["requiredDuringSchedulingIgnoredDuringExecution"] = requiredTerms(b)
	}
	if len(added) == 0 || b.chance(50) {
		added["preferredDuringSchedulingIgnoredDuringExecution"] = preferredTerms(b)
	}
	p.args("NodeAffinity", map[string]any{"addedAffinity": added})
}

// taints covers every effect and operator, and nodes that are cordoned.
var taints = feature{node: taintNode, pod: toleratingPod, renode: func(b *builder, n *v1.Node) {
	n.Spec.Taints, n.Spec.Unschedulable = nil, false
	taintNode(b, n)
}, repod: func(b *builder, p *v1.Pod) {
	p.Spec.Tolerations = append(p.Spec.Tolerations, toleration(b))
}}

func taintNode(b *builder, n *v1.Node) {
	seen := map[string]bool{}
	for range b.pick(0, 0, 0, 1, 1, 2, 3) {
		t := v1.Taint{Key: b.word("team", "spot", "example.com/gpu"), Value: b.word("", "a", "b"),
			Effect: v1.TaintEffect(b.word("NoSchedule", "NoExecute", "PreferNoSchedule", "PreferNoSchedule"))}
		if id := t.Key + string(t.Effect); !seen[id] {
			seen[id] = true
			n.Spec.Taints = append(n.Spec.Taints, t)
		}
	}
	barred := slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Effect != v1.TaintEffectPreferNoSchedule })
	if b.closed && !barred || b.chance(10) {
		n.Spec.Unschedulable = true
		if b.chance(60) {
			n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule})
		}
	}
}

func toleratingPod(b *builder, p *v1.Pod) {
	for range b.pick(0, 0, 1, 2, 3, 4) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, toleration(b))
	}
}

func toleration(b *builder) v1.Toleration {
	t := v1.Toleration{Key: b.word("team", "spot", "example.com/gpu", v1.TaintNodeUnschedulable, ""),
		Effect: v1.TaintEffect(b.word("", "NoSchedule", "NoExecute", "PreferNoSchedule"))}
	switch {
	case t.Key == "" || b.chance(30):
		t.Operator = v1.TolerationOpExists
	case b.chance(50):
		t.Operator, t.Value = v1.TolerationOpEqual, b.word("", "a", "b")
	default:
		t.Value = b.word("", "a", "b") // no operator means Equal
	}
	if t.Effect == v1.TaintEffectNoExecute && b.chance(50) {
		seconds := int64(300)
		t.TolerationSeconds = &seconds
	}
	return t
}

// comparisons has taints with numbers, and tolerations that compare with them.
var comparisons = feature{node: func(b *builder, n *v1.Node) {
	if b.chance(70) {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: "level", Value: b.word("-1", "3", "5", "7", "", "x", "05"),
			Effect: v1.TaintEffect(b.word("NoSchedule", "NoExecute", "PreferNoSchedule"))})
	}
}, pod: comparingPod, repod: comparingPod}

func comparingPod(b *builder, p *v1.Pod) {
	for range b.pick(0, 1, 1, 2) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: "level", Operator: v1.TolerationOperator(b.word("Lt", "Gt", "Gt")),
			Value: b.word("-2", "2", "4", "6", "6", "x"), Effect: v1.TaintEffect(b.word("", "", "NoSchedule", "PreferNoSchedule"))})
	}
}
