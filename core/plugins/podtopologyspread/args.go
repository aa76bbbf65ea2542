package podtopologyspread

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// WithDefaults returns a copy of the arguments with kube-scheduler's defaults for what they
// leave out. Nil arguments leave out all.
func WithDefaults(args *configv1.PodTopologySpreadArgs) *configv1.PodTopologySpreadArgs {
	args = cmp.Or(args.DeepCopy(), &configv1.PodTopologySpreadArgs{})
	args.DefaultingType = cmp.Or(args.DefaultingType, configv1.SystemDefaulting)
	return args
}

// ValidateArgs returns the errors in the arguments, with fields named relative to path.
func ValidateArgs(path *field.Path, args *configv1.PodTopologySpreadArgs) field.ErrorList {
	args = WithDefaults(args)
	var errs field.ErrorList
	defaulting := path.Child("defaultingType")
	switch types := []configv1.PodTopologySpreadConstraintsDefaulting{configv1.SystemDefaulting, configv1.ListDefaulting}; {
	case !slices.Contains(types, args.DefaultingType):
		errs = append(errs, field.NotSupported(defaulting, args.DefaultingType, types))
	case args.DefaultingType != configv1.ListDefaulting && len(args.DefaultConstraints) > 0:
		errs = append(errs, field.Invalid(defaulting, args.DefaultingType, "when .defaultConstraints are not empty"))
	}
	list := path.Child("defaultConstraints")
	seen := map[string]bool{}
	for i, c := range args.DefaultConstraints {
		errs = append(errs, validateConstraint(list.Index(i), c)...)
		key := fmt.Sprintf("{%s, %s}", c.TopologyKey, c.WhenUnsatisfiable)
		if seen[key] {
			errs = append(errs, field.Duplicate(list.Index(i), key))
		}
		seen[key] = true
	}
	return errs
}

// validateConstraint returns the errors in a default constraint, with fields named
// relative to path.
func validateConstraint(path *field.Path, c v1.TopologySpreadConstraint) field.ErrorList {
	var errs field.ErrorList
	if c.MaxSkew <= 0 {
		errs = append(errs, field.Invalid(path.Child("maxSkew"), c.MaxSkew, "not in valid range (0, inf)"))
	}
	if c.TopologyKey == "" {
		errs = append(errs, field.Required(path.Child("topologyKey"), "can not be empty"))
	} else {
		errs = append(errs, metav1validation.ValidateLabelName(c.TopologyKey, path.Child("topologyKey"))...)
	}
	when := path.Child("whenUnsatisfiable")
	switch actions := []v1.UnsatisfiableConstraintAction{v1.DoNotSchedule, v1.ScheduleAnyway}; {
	case c.WhenUnsatisfiable == "":
		errs = append(errs, field.Required(when, "can not be empty"))
	case !slices.Contains(actions, c.WhenUnsatisfiable):
		errs = append(errs, field.NotSupported(when, c.WhenUnsatisfiable, actions))
	}
	if c.LabelSelector != nil {
		errs = append(errs, field.Forbidden(path.Child("labelSelector"), "constraint must not define a selector, as they deduced for each pod"))
	}
	return errs
}
