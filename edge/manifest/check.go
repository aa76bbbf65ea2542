package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	helper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/berth-scheduler/berth/edge/decode"
)

// admit gives the object the API server's defaults and says what of it the
// API server would not take, as far as it matters to scheduling: all of it, on
// one line.
func admit(o metav1.Object, kind string) error {
	problems := checkNames(o)
	switch o := o.(type) {
	case *v1.Pod:
		if o.Spec.NodeName != "" && o.Status.Phase == "" {
			o.Status.Phase = v1.PodRunning // somebody wrote it: a kubelet would have said more
		}
		decode.DefaultPod(o)
		problems = slices.Concat(problems, decode.CheckPod(o), checkPod(o))
	case *v1.Node:
		decode.DefaultNode(o)
		problems = slices.Concat(problems, decode.CheckNode(o), checkNode(o))
	case *storagev1.StorageClass:
		decode.DefaultStorageClass(o)
	case *resourcev1.ResourceClaim:
		decode.DefaultResourceClaim(&o.Spec)
	case *resourcev1.ResourceClaimTemplate:
		decode.DefaultResourceClaim(&o.Spec.Spec)
	case *policyv1.PodDisruptionBudget:
		problems = append(problems, checkSelector(o.Spec.Selector, field.NewPath("spec", "selector")))
	case *schedulingv1beta1.PodGroup:
		if gang := o.Spec.SchedulingPolicy.Gang; gang != nil && gang.MinCount < 1 {
			problems = append(problems, fmt.Errorf("spec.schedulingPolicy.gang.minCount: %d is not positive", gang.MinCount))
		}
	case *appsv1.ReplicaSet:
		problems = append(problems, checkSelector(o.Spec.Selector, field.NewPath("spec", "selector")))
	case *appsv1.StatefulSet:
		problems = append(problems, checkSelector(o.Spec.Selector, field.NewPath("spec", "selector")))
	}
	if err := join(problems); err != nil {
		return fmt.Errorf("%s: %w", title(kind, o.GetNamespace(), o.GetName()), err)
	}
	return nil
}

// join makes one error of several, nil where there is none.
func join(problems []error) error {
	problems = slices.DeleteFunc(problems, func(err error) bool { return err == nil })
	if len(problems) < 2 {
		return errors.Join(problems...)
	}
	text := problems[0].Error()
	for _, err := range problems[1:] {
		text += "; " + err.Error()
	}
	return errors.New(text)
}

// checkNames looks at what the object is called by.
func checkNames(o metav1.Object) (problems []error) {
	switch n := len(o.GetName()); {
	case n == 0:
		problems = append(problems, errors.New("metadata.name: is empty"))
	case n > longestName:
		problems = append(problems, fmt.Errorf("metadata.name: has %d bytes; it may have %d", n, longestName))
	}
	if ns := o.GetNamespace(); ns != "" {
		for _, why := range validation.IsDNS1123Label(ns) {
			problems = append(problems, fmt.Errorf("metadata.namespace: %q: %s", shown(ns), why))
		}
	}
	return problems
}

func checkNode(n *v1.Node) (problems []error) {
	for i, t := range n.Spec.Taints {
		path := field.NewPath("spec", "taints").Index(i)
		if t.Key == "" {
			problems = append(problems, fmt.Errorf("%s: is empty", path.Child("key")))
		}
		problems = append(problems, oneOf(t.Effect, path.Child("effect"), effects...))
	}
	return append(problems, checkSize(n.Status.Allocatable, field.NewPath("status", "allocatable")))
}

func checkPod(p *v1.Pod) (problems []error) {
	spec := field.NewPath("spec")
	if len(p.Spec.Containers) == 0 {
		problems = append(problems, fmt.Errorf("%s: is empty", spec.Child("containers")))
	}
	for _, l := range []struct {
		name string
		list []v1.Container
	}{{"initContainers", p.Spec.InitContainers}, {"containers", p.Spec.Containers}} {
		for i := range l.list {
			problems = append(problems, checkResources(&l.list[i].Resources, spec.Child(l.name).Index(i).Child("resources")))
		}
	}
	problems = append(problems, checkSize(p.Spec.Overhead, spec.Child("overhead")))
	if r := p.Spec.Resources; r != nil {
		problems = append(problems, checkResources(r, spec.Child("resources")))
		if errors.Join(problems...) == nil { // amounts that are too large are not added up
			problems = append(problems, checkOwn(p, spec.Child("resources", "requests")))
		}
	}
	if _, err := labels.ValidatedSelectorFromSet(p.Spec.NodeSelector); err != nil {
		problems = append(problems, fmt.Errorf("spec.nodeSelector: %s", oneLine(err)))
	}
	return append(problems,
		checkTolerations(p.Spec.Tolerations, spec.Child("tolerations")),
		checkAffinity(p.Spec.Affinity, spec.Child("affinity")),
		checkSpread(p.Spec.TopologySpreadConstraints, spec.Child("topologySpreadConstraints")),
	)
}

// checkResources reports an amount that is too large: for a scheduler, or for
// the limit beside it.
func checkResources(r *v1.ResourceRequirements, path *field.Path) error {
	if err := cmp.Or(checkSize(r.Requests, path.Child("requests")), checkSize(r.Limits, path.Child("limits"))); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request := r.Requests[name]
		if limit, ok := r.Limits[name]; ok && request.Cmp(limit) > 0 {
			return fmt.Errorf("%s: %s is more than the limit of %s", path.Child("requests").Key(string(name)), request.String(), limit.String())
		}
	}
	return nil
}

// checkOwn reports a request of the pod itself that is less than its containers request
// together.
func checkOwn(p *v1.Pod, path *field.Path) error {
	sum := helper.AggregateContainerRequests(p, helper.PodResourcesOptions{})
	for _, name := range slices.Sorted(maps.Keys(p.Spec.Resources.Requests)) {
		own := p.Spec.Resources.Requests[name]
		if q, has := sum[name]; has && q.Cmp(own) > 0 {
			return fmt.Errorf("%s: %s is less than what the containers request together, %s", path.Key(string(name)), own.String(), q.String())
		}
	}
	return nil
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
			return fmt.Errorf("%s: is only valid with DoNotSchedule", at.Child("minDomains"))
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
		return fmt.Errorf("%s: is only valid with a labelSelector", at.Child("matchLabelKeys"))
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
