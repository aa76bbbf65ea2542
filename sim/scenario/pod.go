package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

func newPod(key string) *v1.Pod {
	namespace, name, ok := strings.Cut(key, "/")
	if !ok {
		namespace, name = v1.NamespaceDefault, key
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main"}}},
	}
}

// setPod changes the pod by one attribute.
func setPod(p *v1.Pod, a attribute) error {
	if kind, name, ok := strings.Cut(a.key, ":"); ok {
		switch kind {
		case "label":
			setEntry(&p.Labels, name, a)
			return nil
		case "selector":
			setEntry(&p.Spec.NodeSelector, name, a)
			return nil
		}
	}
	main := &p.Spec.Containers[0]
	switch a.key {
	case "bound":
		p.Spec.NodeName = a.value
	case "nominated":
		p.Status.NominatedNodeName = a.value
	case "scheduler":
		p.Spec.SchedulerName = a.value
	case "never-preempts":
		policy := v1.PreemptNever
		p.Spec.PreemptionPolicy = &policy
	case "priority":
		return setPriority(p, a)
	case "gate":
		setGate(p, a)
	case "toleration":
		return setToleration(p, a)
	case "port":
		return setPort(main, a)
	case "claim":
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "v-" + a.value, VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: a.value}}})
	case "device":
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, v1.PodResourceClaim{Name: "d-" + a.value, ResourceClaimName: &a.value})
	case "group":
		p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &a.value}
	case "image":
		main.Image = a.value
	case "require":
		return setRequired(p, a)
	case "prefer":
		return setPreferred(p, a)
	case "near", "away":
		return setPodAffinity(p, a)
	case "spread":
		return setSpread(p, a)
	case "started":
		at, err := time.Parse(time.RFC3339, a.value)
		if err != nil {
			return fmt.Errorf("started=%s: want a time such as 2030-01-31T12:00:00Z", a.value)
		}
		p.Status.StartTime = &metav1.Time{Time: at}
	case "phase":
		p.Status.Phase = v1.PodPhase(a.value)
	case "terminating":
		now := metav1.Now()
		p.DeletionTimestamp = &now
	default:
		return setAmount(&main.Resources.Requests, a)
	}
	return nil
}

func setPriority(p *v1.Pod, a attribute) error {
	n, err := strconv.ParseInt(a.value, 10, 32)
	if err != nil {
		return fmt.Errorf("priority=%s: want a number", a.value)
	}
	priority := int32(n)
	p.Spec.Priority = &priority
	return nil
}

// setGate adds a scheduling gate; -gate=name takes it away, -gate all.
func setGate(p *v1.Pod, a attribute) {
	if !a.remove {
		p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, v1.PodSchedulingGate{Name: a.value})
		return
	}
	var left []v1.PodSchedulingGate
	for _, g := range p.Spec.SchedulingGates {
		if a.value != "" && g.Name != a.value {
			left = append(left, g)
		}
	}
	p.Spec.SchedulingGates = left
}

// setToleration takes key[=value][:Effect]; without a value any is tolerated.
func setToleration(p *v1.Pod, a attribute) error {
	if a.remove {
		p.Spec.Tolerations = nil
		return nil
	}
	key, effect, _ := strings.Cut(a.value, ":")
	key, value, equal := strings.Cut(key, "=")
	t := v1.Toleration{Key: key, Operator: v1.TolerationOpExists, Effect: v1.TaintEffect(effect)}
	if equal {
		t.Operator, t.Value = v1.TolerationOpEqual, value
	}
	p.Spec.Tolerations = append(p.Spec.Tolerations, t)
	return nil
}

// setPort takes [ip:]port[/protocol], a port of the node.
func setPort(c *v1.Container, a attribute) error {
	where, protocol, _ := strings.Cut(a.value, "/")
	ip, port := "", where
	if i := strings.LastIndex(where, ":"); i >= 0 {
		ip, port = where[:i], where[i+1:]
	}
	n, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return fmt.Errorf("port=%s: want [ip:]port[/protocol]", a.value)
	}
	c.Ports = append(c.Ports, v1.ContainerPort{HostIP: ip, HostPort: int32(n), ContainerPort: int32(n), Protocol: v1.Protocol(protocol)})
	return nil
}

// setRequired adds one term of required node affinity, written as a label
// selector; of several terms one must hold.
func setRequired(p *v1.Pod, a attribute) error {
	term, err := selectorTerm(a.value)
	if err != nil {
		return fmt.Errorf("require=%s: %w", a.value, err)
	}
	n := nodeAffinity(p)
	if n.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		n.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{}
	}
	r := n.RequiredDuringSchedulingIgnoredDuringExecution
	r.NodeSelectorTerms = append(r.NodeSelectorTerms, term)
	return nil
}

// setPreferred adds one preferred term: its weight, a space, a label selector.
func setPreferred(p *v1.Pod, a attribute) error {
	weight, selector, _ := strings.Cut(a.value, " ")
	w, err := strconv.ParseInt(weight, 10, 32)
	if err != nil {
		return fmt.Errorf("prefer=%s: want a weight and a selector", a.value)
	}
	term, err := selectorTerm(selector)
	if err != nil {
		return fmt.Errorf("prefer=%s: %w", a.value, err)
	}
	n := nodeAffinity(p)
	n.PreferredDuringSchedulingIgnoredDuringExecution = append(n.PreferredDuringSchedulingIgnoredDuringExecution,
		v1.PreferredSchedulingTerm{Weight: int32(w), Preference: term})
	return nil
}

func nodeAffinity(p *v1.Pod) *v1.NodeAffinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{}
	}
	if p.Spec.Affinity.NodeAffinity == nil {
		p.Spec.Affinity.NodeAffinity = &v1.NodeAffinity{}
	}
	return p.Spec.Affinity.NodeAffinity
}

var operators = map[selection.Operator]v1.NodeSelectorOperator{
	selection.In: v1.NodeSelectorOpIn, selection.Equals: v1.NodeSelectorOpIn, selection.DoubleEquals: v1.NodeSelectorOpIn,
	selection.NotIn: v1.NodeSelectorOpNotIn, selection.NotEquals: v1.NodeSelectorOpNotIn,
	selection.Exists: v1.NodeSelectorOpExists, selection.DoesNotExist: v1.NodeSelectorOpDoesNotExist,
	selection.GreaterThan: v1.NodeSelectorOpGt, selection.LessThan: v1.NodeSelectorOpLt,
}

func selectorTerm(text string) (v1.NodeSelectorTerm, error) {
	var term v1.NodeSelectorTerm
	selector, err := labels.Parse(text)
	if err != nil {
		return term, err
	}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		m := v1.NodeSelectorRequirement{Key: r.Key(), Operator: operators[r.Operator()], Values: r.Values().List()}
		if r.Key() == "metadata.name" {
			term.MatchFields = append(term.MatchFields, m)
			continue
		}
		term.MatchExpressions = append(term.MatchExpressions, m)
	}
	return term, nil
}
