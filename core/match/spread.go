package match

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Selector is a selector of pods by labels, with a Key.
type Selector struct {
	// Key identifies the requirements: selectors with equal keys match the same pods.
	Key string
	labels.Selector
}

// NewSelector returns the selector with its Key.
func NewSelector(s labels.Selector) Selector {
	return Selector{Key: string(appendSelector(nil, s)), Selector: s}
}

// appendSelector appends the Key of the selector.
func appendSelector(b []byte, s labels.Selector) []byte {
	requirements, ok := s.Requirements()
	if !ok {
		return append(b, '!') // nothing matches
	}
	for i := range requirements {
		r := &requirements[i]
		b = AppendField(b, r.Key())
		b = AppendField(b, string(r.Operator()))
		values := r.ValuesUnsorted() // a copy
		slices.Sort(values)
		for _, v := range values {
			b = AppendField(b, v)
		}
		b = append(b, ';')
	}
	return b
}

// SpreadConstraint is an entry of spec.topologySpreadConstraints: pods that the selector
// matches are to be spread evenly over the values that nodes have for the topology key.
type SpreadConstraint struct {
	TopologyKey string
	MaxSkew     int32
	// MinDomains is 1 if the pod states none.
	MinDomains int32
	// HonorAffinity leaves out nodes that do not match the pod's node selector and required
	// node affinity (nodeAffinityPolicy), HonorTaints nodes with taints that the pod does not
	// tolerate (nodeTaintsPolicy).
	HonorAffinity, HonorTaints bool
	Selector                   Selector
	// Self is set if the selector matches the pod that has the constraint.
	Self bool
}

// Spread is the topology spread constraints of a pod. A nil *Spread is a pod
// that has none.
type Spread struct {
	// Key identifies the constraints.
	Key string
	// Hard are the constraints with DoNotSchedule, Soft those with
	// ScheduleAnyway, in the pod's order.
	Hard, Soft []SpreadConstraint
	// HardInvalid and SoftInvalid are the errors of selectors that do not parse, nil for
	// none; kube-scheduler fails the attempt of a pod with such constraints.
	HardInvalid, SoftInvalid error
	// Keyless is the same list without matchLabelKeys, nil if no constraint has any.
	Keyless *Spread
}

// NewSpread compiles the topology spread constraints of a pod, whose labels matchLabelKeys
// and Self depend on. It returns nil if there are none.
func NewSpread(list []v1.TopologySpreadConstraint, podLabels map[string]string) *Spread {
	if len(list) == 0 {
		return nil
	}
	s := newSpread(list, podLabels)
	if slices.ContainsFunc(list, func(c v1.TopologySpreadConstraint) bool { return len(c.MatchLabelKeys) > 0 }) {
		keyless := slices.Clone(list)
		for i := range keyless {
			keyless[i].MatchLabelKeys = nil
		}
		s.Keyless = newSpread(keyless, podLabels)
	}
	return s
}

// newSpread compiles the constraints without setting Keyless.
func newSpread(list []v1.TopologySpreadConstraint, podLabels map[string]string) *Spread {
	s := &Spread{}
	s.Hard, s.HardInvalid = compileSpread(list, podLabels, v1.DoNotSchedule)
	s.Soft, s.SoftInvalid = compileSpread(list, podLabels, v1.ScheduleAnyway)
	var key []byte
	for i := range s.Hard {
		key = s.Hard[i].appendKey(append(key, 'h'))
	}
	for i := range s.Soft {
		key = s.Soft[i].appendKey(append(key, 's'))
	}
	for _, invalid := range []error{s.HardInvalid, s.SoftInvalid} {
		if invalid != nil {
			key = AppendField(append(key, '!'), invalid.Error())
		}
	}
	s.Key = string(key)
	return s
}

// compileSpread compiles the constraints whose whenUnsatisfiable is action. If a selector does
// not parse, it returns the error and no constraints.
func compileSpread(list []v1.TopologySpreadConstraint, podLabels map[string]string, action v1.UnsatisfiableConstraintAction) ([]SpreadConstraint, error) {
	var compiled []SpreadConstraint
	for i := range list {
		in := &list[i]
		if in.WhenUnsatisfiable != action {
			continue
		}
		s, err := metav1.LabelSelectorAsSelector(in.LabelSelector)
		if err != nil {
			return nil, err
		}
		c := SpreadConstraint{
			TopologyKey: in.TopologyKey, MaxSkew: in.MaxSkew, MinDomains: 1,
			HonorAffinity: in.NodeAffinityPolicy == nil || *in.NodeAffinityPolicy == v1.NodeInclusionPolicyHonor,
			HonorTaints:   in.NodeTaintsPolicy != nil && *in.NodeTaintsPolicy == v1.NodeInclusionPolicyHonor,
		}
		if in.MinDomains != nil {
			c.MinDomains = *in.MinDomains
		}
		c.Select(NewSelector(withLabels(s, in.MatchLabelKeys, podLabels)), podLabels)
		compiled = append(compiled, c)
	}
	return compiled, nil
}

// withLabels returns the selector with a further requirement for each of keys that podLabels
// has: pods must have the same value. A selector that matches nothing is returned as it is.
func withLabels(s labels.Selector, keys []string, podLabels map[string]string) labels.Selector {
	same := labels.Set{}
	for _, k := range keys {
		if v, ok := podLabels[k]; ok {
			same[k] = v
		}
	}
	requirements, ok := s.Requirements()
	if len(same) == 0 || !ok {
		return s
	}
	return labels.SelectorFromSet(same).Add(requirements...)
}

// Select sets the constraint's selector, and Self for a pod with these labels.
func (c *SpreadConstraint) Select(s Selector, podLabels map[string]string) {
	c.Selector, c.Self = s, s.Matches(labels.Set(podLabels))
}

// appendKey appends to b the constraint's part of Spread.Key: all that the constraint says, and
// Self.
func (c *SpreadConstraint) appendKey(b []byte) []byte {
	b = AppendField(b, c.TopologyKey)
	b = appendNumber(b, int64(c.MaxSkew))
	b = appendNumber(b, int64(c.MinDomains))
	for _, flag := range []bool{c.HonorAffinity, c.HonorTaints, c.Self} {
		if flag {
			b = append(b, '+')
		} else {
			b = append(b, '-')
		}
	}
	return AppendField(b, c.Selector.Key)
}
