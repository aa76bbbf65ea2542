package noderesources

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// withDefaults completes the arguments as v1.36 does, on a copy.
func withDefaults(args *configv1.NodeResourcesFitArgs) *configv1.NodeResourcesFitArgs {
	if args == nil {
		args = &configv1.NodeResourcesFitArgs{}
	}
	args = args.DeepCopy()
	if args.ScoringStrategy == nil {
		args.ScoringStrategy = &configv1.ScoringStrategy{Type: configv1.LeastAllocated}
	}
	s := args.ScoringStrategy
	if len(s.Resources) == 0 {
		s.Resources = []configv1.ResourceSpec{{Name: string(v1.ResourceCPU)}, {Name: string(v1.ResourceMemory)}}
	}
	for i := range s.Resources {
		if s.Resources[i].Weight == 0 {
			s.Resources[i].Weight = 1
		}
	}
	return args
}

// maxPoint is the best score that a point of a shape may have.
const maxPoint = 10

// validate checks what the scorer is built from.
func validate(s *configv1.ScoringStrategy) error {
	path := field.NewPath("scoringStrategy")
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
		errs = append(errs, validateShape(ratio.Child("shape"), param.Shape)...)
	case param != nil:
		errs = append(errs, field.Forbidden(ratio, "must be nil when type is not RequestedToCapacityRatio"))
	}
	return errs.ToAggregate()
}

func validateShape(path *field.Path, shape []configv1.UtilizationShapePoint) field.ErrorList {
	if len(shape) == 0 {
		return field.ErrorList{field.Required(path, "at least one point must be specified")}
	}
	var errs field.ErrorList
	for i := 1; i < len(shape); i++ {
		if shape[i-1].Utilization >= shape[i].Utilization {
			errs = append(errs, field.Invalid(path.Index(i).Child("utilization"), shape[i].Utilization, "values must be sorted in increasing order"))
			break
		}
	}
	inRange := func(path *field.Path, n, most int32) {
		if n < 0 || n > most {
			errs = append(errs, field.Invalid(path, n, fmt.Sprintf("not in valid range [0, %d]", most)))
		}
	}
	for i, p := range shape {
		inRange(path.Index(i).Child("utilization"), p.Utilization, 100)
		inRange(path.Index(i).Child("score"), p.Score, maxPoint)
	}
	return errs
}
