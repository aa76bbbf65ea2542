package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
)

// podGroup creates a PodGroup: a gang with min=N, else one with the basic policy. With
// within=KEY its pods share one value of that node label. With "scheduled" its condition says that
// it was placed.
func (p *play) podGroup(words []string) error {
	if len(words) == 0 {
		return errors.New("want a name")
	}
	g := &schedulingv1beta1.PodGroup{}
	g.Namespace, g.Name, _ = strings.Cut(key(words[0]), "/")
	g.UID = types.UID(fmt.Sprintf("%s-group-%d", g.Name, p.made))
	g.Spec.SchedulingPolicy.Basic = &schedulingv1beta1.BasicSchedulingPolicy{}
	for _, w := range words[1:] {
		a := parseAttribute(w)
		n, err := strconv.ParseInt(a.value, 10, 32)
		switch {
		case a.key == "within":
			g.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: a.value}}}
		case w == "scheduled":
			g.Status.Conditions = []metav1.Condition{{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue, Reason: "Scheduled"}}
		case w == "disruption=single":
			g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{Single: &schedulingv1beta1.SingleDisruptionMode{}}
		case w == "disruption=all":
			g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
		case a.key == "min" && err == nil:
			g.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(n)}}
		case a.key == "priority" && err == nil:
			g.Spec.Priority = new(int32(n))
		default:
			return fmt.Errorf("%q: want min=NUMBER, priority=NUMBER, disruption=single or all, within=KEY, or scheduled", w)
		}
	}
	p.tellObject(object.PodGroups, g)
	return nil
}

// expectPodGroup: the reason of its condition PodGroupInitiallyScheduled, or none; and the message.
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

// expectGroupStatus: the status of a PodGroup of scheduler-plugins: its phase, the numbers of
// its pods, and whose it is.
func (p *play) expectGroupStatus(words []string, text string) error {
	if len(words) != 1 {
		return errors.New("want a PodGroup of " + object.SchedulerPlugins)
	}
	namespace, name, _ := strings.Cut(key(words[0]), "/")
	g, _ := p.world.Cluster.Object(object.CoschedulingGroups, namespace, name).(*object.PodGroup)
	if g == nil {
		return errors.New("it does not exist")
	}
	s := g.Status
	got := fmt.Sprintf("%s, %d running, %d succeeded, %d failed", s.Phase, s.Running, s.Succeeded, s.Failed)
	if s.OccupiedBy != "" {
		got += ", of " + s.OccupiedBy
	}
	if got != text {
		return fmt.Errorf("its status says %q", got)
	}
	return nil
}
