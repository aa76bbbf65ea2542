package balancedallocation

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/resource"
)

// WithDefaults returns a copy of the arguments with kube-scheduler's defaults for what they
// leave out. Nil arguments leave out all.
func WithDefaults(args *configv1.NodeResourcesBalancedAllocationArgs) *configv1.NodeResourcesBalancedAllocationArgs {
	args = cmp.Or(args.DeepCopy(), &configv1.NodeResourcesBalancedAllocationArgs{})
	args.Resources = resource.SpecsOrDefault(args.Resources)
	return args
}

// ValidateArgs returns the errors in the arguments, with fields named relative to path.
func ValidateArgs(path *field.Path, args *configv1.NodeResourcesBalancedAllocationArgs) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, r := range WithDefaults(args).Resources {
		at := path.Child("resources").Index(i)
		if seen[r.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), r.Name))
		}
		seen[r.Name] = true
		if r.Weight != 1 {
			errs = append(errs, field.Invalid(at.Child("weight"), r.Weight, "must be 1"))
		}
	}
	return errs
}
