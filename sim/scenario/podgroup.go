package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
)

// podGroup creates a PodGroup: a gang with min=N, else one with the basic policy. With
// within=KEY its pods share one value of that node label.
func (p *play) podGroup(words []string) error {
	if len(words) == 0 {
		return errors.New("want a name")
	}
	g := &schedulingv1alpha2.PodGroup{}
	g.Namespace, g.Name, _ = strings.Cut(key(words[0]), "/")
	g.UID = types.UID(fmt.Sprintf("%s-group-%d", g.Name, p.made))
	g.Spec.SchedulingPolicy.Basic = &schedulingv1alpha2.BasicSchedulingPolicy{}
	for _, w := range words[1:] {
		a := parseAttribute(w)
		n, err := strconv.ParseInt(a.value, 10, 32)
		switch {
		case a.key == "within":
			g.Spec.SchedulingConstraints = &schedulingv1alpha2.PodGroupSchedulingConstraints{Topology: []schedulingv1alpha2.TopologyConstraint{{Key: a.value}}}
		case a.key == "disruption":
			g.Spec.DisruptionMode = new(schedulingv1alpha2.DisruptionMode(a.value))
		case a.key == "min" && err == nil:
			g.Spec.SchedulingPolicy = schedulingv1alpha2.PodGroupSchedulingPolicy{Gang: &schedulingv1alpha2.GangSchedulingPolicy{MinCount: int32(n)}}
		case a.key == "priority" && err == nil:
			g.Spec.Priority = new(int32(n))
		default:
			return fmt.Errorf("%q: want min=NUMBER, priority=NUMBER, disruption=Pod or PodGroup, or within=KEY", w)
		}
	}
	p.tellObject(object.PodGroups, g)
	return nil
}

// expectPodGroup: the reason of its condition PodGroupScheduled, or none; and the message.
func (p *play) expectPodGroup(words []string, text string) error {
	if len(words) != 2 {
		return errors.New("want a pod group, and Scheduled, Unschedulable, SchedulerError or none")
	}
	namespace, name, _ := strings.Cut(key(words[0]), "/")
	g, _ := p.world.Cluster.Object(object.PodGroups, namespace, name).(*object.PodGroup)
	if g == nil {
		return errors.New("it does not exist")
	}
	got := g.Scheduled
	want := got.Reason
	if want == "" {
		want = "none"
	}
	if want != words[1] || (got.Reason == "Scheduled") != (got.Status == v1.ConditionTrue) {
		return fmt.Errorf("its condition is %s for the reason %q: %s", got.Status, got.Reason, got.Message)
	}
	if text != "" && got.Message != text {
		return fmt.Errorf("its condition says %q", got.Message)
	}
	return nil
}
