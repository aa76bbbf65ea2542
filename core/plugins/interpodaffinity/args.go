package interpodaffinity

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// WithDefaults returns a copy of the arguments with kube-scheduler's defaults for what they
// leave out. Nil arguments leave out all.
func WithDefaults(args *configv1.InterPodAffinityArgs) *configv1.InterPodAffinityArgs {
	args = cmp.Or(args.DeepCopy(), &configv1.InterPodAffinityArgs{})
	args.HardPodAffinityWeight = cmp.Or(args.HardPodAffinityWeight, new(int32(1)))
	return args
}

// ValidateArgs returns the errors in the arguments, with fields named relative to path.
func ValidateArgs(path *field.Path, args *configv1.InterPodAffinityArgs) field.ErrorList {
	if w := *WithDefaults(args).HardPodAffinityWeight; w < 0 || w > 100 {
		return field.ErrorList{field.Invalid(path.Child("hardPodAffinityWeight"), w, "not in valid range [0, 100]")}
	}
	return nil
}
