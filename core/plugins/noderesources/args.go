package noderesources

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/shape"
)

// WithDefaults returns a copy of the arguments with kube-scheduler's defaults for what they
// leave out. Nil arguments leave out all.
func WithDefaults(args *configv1.NodeResourcesFitArgs) *configv1.NodeResourcesFitArgs {
	args = cmp.Or(args.DeepCopy(), &configv1.NodeResourcesFitArgs{})
	args.ScoringStrategy = cmp.Or(args.ScoringStrategy, &configv1.ScoringStrategy{Type: configv1.LeastAllocated})
	args.ScoringStrategy.Resources = resource.SpecsOrDefault(args.ScoringStrategy.Resources)
	return args
}

// ValidateArgs returns the errors in the arguments, with fields named relative to path.
func ValidateArgs(path *field.Path, args *configv1.NodeResourcesFitArgs) field.ErrorList {
	args = WithDefaults(args)
	var errs field.ErrorList
	for i, name := range args.IgnoredResources {
		errs = append(errs, metav1validation.ValidateLabelName(name, path.Child("ignoredResources").Index(i))...)
	}
	for i, group := range args.IgnoredResourceGroups {
		at := path.Child("ignoredResourceGroups").Index(i)
		if strings.Contains(group, "/") {
			errs = append(errs, field.Invalid(at, group, "resource group name can't contain '/'"))
		}
		errs = append(errs, metav1validation.ValidateLabelName(group, at)...)
	}
	return append(errs, validateStrategy(path.Child("scoringStrategy"), args.ScoringStrategy)...)
}

// validateStrategy returns the errors in a scoring strategy, with fields named relative
// to path.
func validateStrategy(path *field.Path, s *configv1.ScoringStrategy) field.ErrorList {
	var errs field.ErrorList
	types := []configv1.ScoringStrategyType{configv1.LeastAllocated, configv1.MostAllocated, configv1.RequestedToCapacityRatio}
	if !slices.Contains(types, s.Type) {
		errs = append(errs, field.NotSupported(path.Child("type"), s.Type, types))
	}
	for i, r := range s.Resources {
		if r.Weight < 1 || r.Weight > 100 {
			reason := fmt.Sprintf("resource weight of %s not in valid range (0, 100]", r.Name)
			errs = append(errs, field.Invalid(path.Child("resources").Index(i).Child("weight"), r.Weight, reason))
		}
	}
	ratio, param := path.Child("requestedToCapacityRatio"), s.RequestedToCapacityRatio
	switch wanted := s.Type == configv1.RequestedToCapacityRatio; {
	case wanted && param == nil:
		errs = append(errs, field.Required(ratio, "must be specified when type is RequestedToCapacityRatio"))
	case wanted:
		errs = append(errs, shape.Validate(ratio.Child("shape"), param.Shape)...)
	case param != nil:
		errs = append(errs, field.Forbidden(ratio, "must be nil when type is not RequestedToCapacityRatio"))
	}
	return errs
}
