package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/shape"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// validateArgs checks the arguments of an in-tree plugin; it has no opinion on others (nil).
func (r Reader) validateArgs(path *field.Path, args runtime.Object) field.ErrorList {
	switch a := args.(type) {
	case *configv1.DefaultPreemptionArgs:
		return validateDefaultPreemption(path, a)
	case *configv1.InterPodAffinityArgs:
		return validateRange(path.Child("hardPodAffinityWeight"), *a.HardPodAffinityWeight, 0, 100)
	case *configv1.NodeAffinityArgs:
		return validateAddedAffinity(path.Child("addedAffinity"), a.AddedAffinity)
	case *configv1.NodeResourcesFitArgs:
		return validateFit(path, a)
	case *configv1.NodeResourcesBalancedAllocationArgs:
		return validateBalancedAllocation(path.Child("resources"), a.Resources)
	case *configv1.PodTopologySpreadArgs:
		return validatePodTopologySpread(path, a)
	case *configv1.VolumeBindingArgs:
		return r.validateVolumeBinding(path, a)
	case *configv1.DynamicResourcesArgs:
		return r.validateDynamicResources(path, a)
	}
	return nil
}

func validateRange(path *field.Path, value, min, max int32) field.ErrorList {
	if value < min || value > max {
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("not in valid range [%d, %d]", min, max))}
	}
	return nil
}

func validateDefaultPreemption(path *field.Path, a *configv1.DefaultPreemptionArgs) field.ErrorList {
	percentage, absolute := *a.MinCandidateNodesPercentage, *a.MinCandidateNodesAbsolute
	percentagePath, absolutePath := path.Child("minCandidateNodesPercentage"), path.Child("minCandidateNodesAbsolute")
	errs := validateRange(percentagePath, percentage, 0, 100)
	if absolute < 0 {
		errs = append(errs, field.Invalid(absolutePath, absolute, "not in valid range [0, inf)"))
	}
	if percentage == 0 && absolute == 0 {
		errs = append(errs,
			field.Invalid(percentagePath, percentage, "cannot be zero at the same time as minCandidateNodesAbsolute"),
			field.Invalid(absolutePath, absolute, "cannot be zero at the same time as minCandidateNodesPercentage"))
	}
	return errs
}

func validateAddedAffinity(path *field.Path, affinity *v1.NodeAffinity) field.ErrorList {
	if affinity == nil {
		return nil
	}
	var errs field.ErrorList
	if selector := affinity.RequiredDuringSchedulingIgnoredDuringExecution; selector != nil {
		at := path.Child("requiredDuringSchedulingIgnoredDuringExecution")
		_, err := nodeaffinity.NewNodeSelector(selector, field.WithPath(at))
		errs = append(errs, asFieldErrors(at, err)...)
	}
	if terms := affinity.PreferredDuringSchedulingIgnoredDuringExecution; len(terms) > 0 {
		at := path.Child("preferredDuringSchedulingIgnoredDuringExecution")
		_, err := nodeaffinity.NewPreferredSchedulingTerms(terms, field.WithPath(at))
		errs = append(errs, asFieldErrors(at, err)...)
	}
	return errs
}

// validateFit is applied wherever the arguments stand; v1.36 applies it when it builds the plugin.
func validateFit(path *field.Path, a *configv1.NodeResourcesFitArgs) field.ErrorList {
	var errs field.ErrorList
	for i, name := range a.IgnoredResources {
		errs = append(errs, metav1validation.ValidateLabelName(name, path.Child("ignoredResources").Index(i))...)
	}
	for i, group := range a.IgnoredResourceGroups {
		at := path.Child("ignoredResourceGroups").Index(i)
		if strings.Contains(group, "/") {
			errs = append(errs, field.Invalid(at, group, "resource group name can't contain '/'"))
		}
		errs = append(errs, metav1validation.ValidateLabelName(group, at)...)
	}
	return append(errs, validateStrategy(path.Child("scoringStrategy"), a.ScoringStrategy)...)
}

func validateStrategy(path *field.Path, s *configv1.ScoringStrategy) field.ErrorList {
	var errs field.ErrorList
	types := []configv1.ScoringStrategyType{configv1.LeastAllocated, configv1.MostAllocated, configv1.RequestedToCapacityRatio}
	if !slices.Contains(types, s.Type) {
		errs = append(errs, field.NotSupported(path.Child("type"), s.Type, types))
	}
	for i, r := range s.Resources {
		if r.Weight <= 0 || r.Weight > 100 {
			reason := fmt.Sprintf("resource weight of %s not in valid range (0, 100]", r.Name)
			errs = append(errs, field.Invalid(path.Child("resources").Index(i).Child("weight"), r.Weight, reason))
		}
	}
	ratio := path.Child("requestedToCapacityRatio")
	switch wanted, param := s.Type == configv1.RequestedToCapacityRatio, s.RequestedToCapacityRatio; {
	case wanted && param == nil:
		errs = append(errs, field.Required(ratio, "must be specified when type is RequestedToCapacityRatio"))
	case wanted:
		errs = append(errs, shape.Validate(ratio.Child("shape"), param.Shape)...)
	case param != nil:
		errs = append(errs, field.Forbidden(ratio, "must be nil when type is not RequestedToCapacityRatio"))
	}
	return errs
}

func validateBalancedAllocation(path *field.Path, resources []configv1.ResourceSpec) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, r := range resources {
		if seen[r.Name] {
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), r.Name))
		}
		seen[r.Name] = true
		if r.Weight != 1 {
			errs = append(errs, field.Invalid(path.Index(i).Child("weight"), r.Weight, "must be 1"))
		}
	}
	return errs
}

func validatePodTopologySpread(path *field.Path, a *configv1.PodTopologySpreadArgs) field.ErrorList {
	var errs field.ErrorList
	defaulting := path.Child("defaultingType")
	switch types := []configv1.PodTopologySpreadConstraintsDefaulting{configv1.SystemDefaulting, configv1.ListDefaulting}; {
	case !slices.Contains(types, a.DefaultingType):
		errs = append(errs, field.NotSupported(defaulting, a.DefaultingType, types))
	case a.DefaultingType == configv1.SystemDefaulting && len(a.DefaultConstraints) > 0:
		errs = append(errs, field.Invalid(defaulting, a.DefaultingType, "when .defaultConstraints are not empty"))
	}
	list := path.Child("defaultConstraints")
	seen := map[string]bool{}
	for i, c := range a.DefaultConstraints {
		errs = append(errs, validateConstraint(list.Index(i), c)...)
		key := fmt.Sprintf("{%s, %s}", c.TopologyKey, c.WhenUnsatisfiable)
		if seen[key] {
			errs = append(errs, field.Duplicate(list.Index(i), key))
		}
		seen[key] = true
	}
	return errs
}

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

func (r Reader) validateVolumeBinding(path *field.Path, a *configv1.VolumeBindingArgs) field.ErrorList {
	errs := validateSeconds(path.Child("bindTimeoutSeconds"), *a.BindTimeoutSeconds)
	if *a.BindTimeoutSeconds < 0 {
		errs = append(errs, field.Invalid(path.Child("bindTimeoutSeconds"), *a.BindTimeoutSeconds, "invalid BindTimeoutSeconds, should not be a negative value"))
	}
	if r.gates.Enabled(features.StorageCapacityScoring) {
		return append(errs, shape.Validate(path.Child("shape"), a.Shape)...)
	}
	if a.Shape != nil {
		errs = append(errs, field.Invalid(path.Child("shape"), field.OmitValueType{}, "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"))
	}
	return errs
}

// validateDynamicResources: a field without effect, because its gate is off, is an error.
func (r Reader) validateDynamicResources(path *field.Path, a *configv1.DynamicResourcesArgs) field.ErrorList {
	var errs field.ErrorList
	if a.FilterTimeout != nil {
		at := path.Child("filterTimeout")
		switch {
		case !r.gates.Enabled(features.DRASchedulerFilterTimeout):
			errs = append(errs, field.Forbidden(at, "DRASchedulingFilterTimeout feature gate is disabled"))
		case a.FilterTimeout.Duration < 0:
			errs = append(errs, field.Invalid(at, a.FilterTimeout.Duration.String(), "must be zero or positive"))
		}
	}
	if a.BindingTimeout != nil {
		at := path.Child("bindingTimeout")
		switch {
		case !r.bindingConditions():
			errs = append(errs, field.Forbidden(at, "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"))
		case a.BindingTimeout.Duration < time.Second:
			errs = append(errs, field.Invalid(at, a.BindingTimeout.Duration.String(), "must be at least 1 second"))
		}
	}
	return errs
}
