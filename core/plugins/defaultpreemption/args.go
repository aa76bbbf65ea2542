package defaultpreemption

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/preempt"
)

// WithDefaults returns a copy of the arguments with kube-scheduler's defaults for what they
// leave out: candidates on a tenth of the nodes, but on at least a hundred, are
// enough. Nil arguments leave out all.
func WithDefaults(args *configv1.DefaultPreemptionArgs) *configv1.DefaultPreemptionArgs {
	args = cmp.Or(args.DeepCopy(), &configv1.DefaultPreemptionArgs{})
	args.MinCandidateNodesPercentage = cmp.Or(args.MinCandidateNodesPercentage, new(int32(10)))
	args.MinCandidateNodesAbsolute = cmp.Or(args.MinCandidateNodesAbsolute, new(int32(100)))
	return args
}

// limitsOf returns how many candidate nodes the arguments, with defaults, ask for.
func limitsOf(args *configv1.DefaultPreemptionArgs) preempt.Limits {
	args = WithDefaults(args)
	return preempt.Limits{Percentage: int(*args.MinCandidateNodesPercentage), Absolute: int(*args.MinCandidateNodesAbsolute)}
}

// ValidateArgs returns the errors in the arguments, once defaults are set, with fields named
// relative to path.
func ValidateArgs(path *field.Path, args *configv1.DefaultPreemptionArgs) field.ErrorList {
	limits := limitsOf(args)
	percentage, absolute := path.Child("minCandidateNodesPercentage"), path.Child("minCandidateNodesAbsolute")
	var errs field.ErrorList
	if limits.Percentage < 0 || limits.Percentage > 100 {
		errs = append(errs, field.Invalid(percentage, limits.Percentage, "not in valid range [0, 100]"))
	}
	if limits.Absolute < 0 {
		errs = append(errs, field.Invalid(absolute, limits.Absolute, "not in valid range [0, inf)"))
	}
	if limits.Percentage == 0 && limits.Absolute == 0 {
		errs = append(errs,
			field.Invalid(percentage, 0, "cannot be zero at the same time as minCandidateNodesAbsolute"),
			field.Invalid(absolute, 0, "cannot be zero at the same time as minCandidateNodesPercentage"))
	}
	return errs
}
