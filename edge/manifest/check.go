package manifest

import (
	"fmt"
	"maps"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/berth-scheduler/berth/edge/decode"
)

// admit gives the object the API server's defaults and says what of it the
// API server would not take, as far as it matters to scheduling.
func admit(o metav1.Object, kind string) error {
	var err error
	switch o := o.(type) {
	case *v1.Pod:
		decode.DefaultPod(o)
		if err := decode.CheckPod(o); err != nil {
			return err
		}
		err = checkPod(o)
	case *v1.Node:
		decode.DefaultNode(o)
		if err := decode.CheckNode(o); err != nil {
			return err
		}
		err = checkNode(o)
	case *policyv1.PodDisruptionBudget:
		err = checkSelector(o.Spec.Selector, field.NewPath("spec", "selector"))
	case *appsv1.ReplicaSet:
		err = checkSelector(o.Spec.Selector, field.NewPath("spec", "selector"))
	case *appsv1.StatefulSet:
		err = checkSelector(o.Spec.Selector, field.NewPath("spec", "selector"))
	}
	if err == nil && o.GetName() == "" {
		err = fmt.Errorf("metadata.name: is empty")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", title(kind, o.GetNamespace(), o.GetName()), err)
	}
	return nil
}

func checkNode(n *v1.Node) error {
	for i, t := range n.Spec.Taints {
		path := field.NewPath("spec", "taints").Index(i)
		if t.Key == "" {
			return fmt.Errorf("%s: is empty", path.Child("key"))
		}
		if err := oneOf(t.Effect, path.Child("effect"), effects...); err != nil {
			return err
		}
	}
	return checkSize(n.Status.Allocatable, field.NewPath("status", "allocatable"))
}

func checkPod(p *v1.Pod) error {
	spec := field.NewPath("spec")
	for _, l := range []struct {
		name string
		list []v1.Container
	}{{"initContainers", p.Spec.InitContainers}, {"containers", p.Spec.Containers}} {
		for i := range l.list {
			path := spec.Child(l.name).Index(i).Child("resources", "requests")
			if err := checkSize(l.list[i].Resources.Requests, path); err != nil {
				return err
			}
		}
	}
	if err := checkSize(p.Spec.Overhead, spec.Child("overhead")); err != nil {
		return err
	}
	if r := p.Spec.Resources; r != nil {
		if err := checkSize(r.Requests, spec.Child("resources", "requests")); err != nil {
			return err
		}
	}
	if err := checkTolerations(p.Spec.Tolerations, spec.Child("tolerations")); err != nil {
		return err
	}
	if _, err := labels.ValidatedSelectorFromSet(p.Spec.NodeSelector); err != nil {
		return fmt.Errorf("spec.nodeSelector: %s", oneLine(err))
	}
	if err := checkAffinity(p.Spec.Affinity, spec.Child("affinity")); err != nil {
		return err
	}
	return checkSpread(p.Spec.TopologySpreadConstraints, spec.Child("topologySpreadConstraints"))
}

// checkSize reports an amount beyond what a scheduler can count, of several
// the first by name. Quantities hold any number; counts are 64 bits, and CPU
// is counted in thousandths.
func checkSize(list v1.ResourceList, path *field.Path) error {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		limit := int64(math.MaxInt64)
		if name == v1.ResourceCPU {
			limit /= 1000
		}
		// The approximate size first: exact arithmetic on "1e99999999" takes
		// for ever.
		if q := list[name]; q.AsApproximateFloat64() > 2*float64(limit) || q.CmpInt64(limit) > 0 {
			return fmt.Errorf("%s: %s is more than can be counted", path.Key(string(name)), q.String())
		}
	}
	return nil
}

var effects = []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute}

func checkTolerations(list []v1.Toleration, path *field.Path) error {
	for i, t := range list {
		at := path.Index(i)
		if err := oneOf(t.Operator, at.Child("operator"), "", v1.TolerationOpEqual, v1.TolerationOpExists, v1.TolerationOpLt, v1.TolerationOpGt); err != nil {
			return err
		}
		if err := oneOf(t.Effect, at.Child("effect"), append(slices.Clone(effects), "")...); err != nil {
			return err
		}
		if t.Key == "" && t.Operator != v1.TolerationOpExists {
			return fmt.Errorf("%s: must be Exists where there is no key", at.Child("operator"))
		}
	}
	return nil
}

func checkAffinity(a *v1.Affinity, path *field.Path) error {
	if a == nil {
		return nil
	}
	if n := a.NodeAffinity; n != nil {
		at := path.Child("nodeAffinity")
		if required := n.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			if _, err := nodeaffinity.NewNodeSelector(required, field.WithPath(at.Child("requiredDuringSchedulingIgnoredDuringExecution"))); err != nil {
				return err
			}
		}
		if _, err := nodeaffinity.NewPreferredSchedulingTerms(n.PreferredDuringSchedulingIgnoredDuringExecution,
			field.WithPath(at.Child("preferredDuringSchedulingIgnoredDuringExecution"))); err != nil {
			return err
		}
	}
	if p := a.PodAffinity; p != nil {
		err := checkPodTerms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAffinity"))
		if err != nil {
			return err
		}
	}
	if p := a.PodAntiAffinity; p != nil {
		return checkPodTerms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAntiAffinity"))
	}
	return nil
}

func checkPodTerms(required []v1.PodAffinityTerm, preferred []v1.WeightedPodAffinityTerm, path *field.Path) error {
	for i := range required {
		if err := checkPodTerm(&required[i], path.Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i)); err != nil {
			return err
		}
	}
	for i := range preferred {
		at := path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("podAffinityTerm")
		if err := checkPodTerm(&preferred[i].PodAffinityTerm, at); err != nil {
			return err
		}
	}
	return nil
}

func checkPodTerm(t *v1.PodAffinityTerm, path *field.Path) error {
	if t.TopologyKey == "" {
		return fmt.Errorf("%s: is empty", path.Child("topologyKey"))
	}
	if err := checkSelector(t.LabelSelector, path.Child("labelSelector")); err != nil {
		return err
	}
	return checkSelector(t.NamespaceSelector, path.Child("namespaceSelector"))
}

func checkSpread(list []v1.TopologySpreadConstraint, path *field.Path) error {
	for i := range list {
		c, at := &list[i], path.Index(i)
		if c.MaxSkew < 1 {
			return fmt.Errorf("%s: %d is not positive", at.Child("maxSkew"), c.MaxSkew)
		}
		if c.TopologyKey == "" {
			return fmt.Errorf("%s: is empty", at.Child("topologyKey"))
		}
		if err := oneOf(c.WhenUnsatisfiable, at.Child("whenUnsatisfiable"), v1.DoNotSchedule, v1.ScheduleAnyway); err != nil {
			return err
		}
		if slices.ContainsFunc(list[:i], func(o v1.TopologySpreadConstraint) bool {
			return o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable
		}) {
			return fmt.Errorf("%s: a second constraint by %s with %s", at, c.TopologyKey, c.WhenUnsatisfiable)
		}
		if err := checkCounting(c, at); err != nil {
			return err
		}
	}
	return nil
}

// checkCounting looks at what says which pods, nodes and domains count.
func checkCounting(c *v1.TopologySpreadConstraint, at *field.Path) error {
	if n := c.MinDomains; n != nil {
		if *n < 1 {
			return fmt.Errorf("%s: %d is not positive", at.Child("minDomains"), *n)
		}
		if c.WhenUnsatisfiable != v1.DoNotSchedule {
			return fmt.Errorf("%s: only goes with DoNotSchedule", at.Child("minDomains"))
		}
	}
	policies := map[string]*v1.NodeInclusionPolicy{"nodeAffinityPolicy": c.NodeAffinityPolicy, "nodeTaintsPolicy": c.NodeTaintsPolicy}
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		if policy := policies[name]; policy != nil {
			if err := oneOf(*policy, at.Child(name), v1.NodeInclusionPolicyHonor, v1.NodeInclusionPolicyIgnore); err != nil {
				return err
			}
		}
	}
	if len(c.MatchLabelKeys) > 0 && c.LabelSelector == nil {
		return fmt.Errorf("%s: only goes with a labelSelector", at.Child("matchLabelKeys"))
	}
	return checkSelector(c.LabelSelector, at.Child("labelSelector"))
}

func checkSelector(s *metav1.LabelSelector, path *field.Path) error {
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		return fmt.Errorf("%s: %s", path, oneLine(err))
	}
	return nil
}

func oneOf[T ~string](got T, path *field.Path, allowed ...T) error {
	if slices.Contains(allowed, got) {
		return nil
	}
	named := slices.DeleteFunc(slices.Clone(allowed), func(a T) bool { return a == "" })
	return fmt.Errorf("%s: %q is none of %v", path, got, named)
}
