package noderesources

import (
	"reflect"
	"testing"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

// A scoring strategy that is wrong is refused with the field and the reason, and the
// arguments stay as they were.
func TestBadScoringStrategiesAreRefused(t *testing.T) {
	ratio := func(points ...configv1.UtilizationShapePoint) *configv1.ScoringStrategy {
		return &configv1.ScoringStrategy{Type: configv1.RequestedToCapacityRatio, RequestedToCapacityRatio: &configv1.RequestedToCapacityRatioParam{Shape: points}}
	}
	for _, c := range []struct {
		name string
		s    *configv1.ScoringStrategy
		want string
	}{
		{"none", nil, ""},
		{"empty type", &configv1.ScoringStrategy{}, `scoringStrategy.type: Unsupported value: "": supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"`},
		{"weight", &configv1.ScoringStrategy{Type: configv1.MostAllocated, Resources: []configv1.ResourceSpec{{Name: "cpu"}, {Name: "memory", Weight: 101}}},
			"scoringStrategy.resources[1].weight: Invalid value: 101: resource weight of memory not in valid range (0, 100]"},
		{"negative weight", &configv1.ScoringStrategy{Type: configv1.MostAllocated, Resources: []configv1.ResourceSpec{{Name: "cpu", Weight: -1}}},
			"scoringStrategy.resources[0].weight: Invalid value: -1: resource weight of cpu not in valid range (0, 100]"},
		{"no shape", ratio(), "scoringStrategy.requestedToCapacityRatio.shape: Required value: at least one point must be specified"},
		{"no ratio", &configv1.ScoringStrategy{Type: configv1.RequestedToCapacityRatio},
			"scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is RequestedToCapacityRatio"},
		{"ratio of another type", &configv1.ScoringStrategy{Type: configv1.LeastAllocated, RequestedToCapacityRatio: &configv1.RequestedToCapacityRatioParam{}},
			"scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio"},
		{"order", ratio(configv1.UtilizationShapePoint{Utilization: 5}, configv1.UtilizationShapePoint{Utilization: 5}),
			"scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 5: values must be sorted in increasing order"},
		{"ranges", ratio(configv1.UtilizationShapePoint{Utilization: -1, Score: 11}),
			"[scoringStrategy.requestedToCapacityRatio.shape[0].utilization: Invalid value: -1: not in valid range [0, 100], scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 11: not in valid range [0, 10]]"},
		{"level shape", ratio(configv1.UtilizationShapePoint{Utilization: 100, Score: 10}), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := &configv1.NodeResourcesFitArgs{ScoringStrategy: c.s}
			before := args.DeepCopy()
			got := ""
			if _, err := New(args, nil); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if !reflect.DeepEqual(args, before) {
				t.Error("the arguments were changed")
			}
		})
	}
}
