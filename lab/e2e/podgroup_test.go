package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// groupField is a field whose API server serves pod groups.
type groupField struct {
	*field
	groups cache.SharedIndexInformer
}

// The pods of a group are placed together. Those of a group that does not fit as a whole
// take no room: another pod gets it. When a node comes the group is placed, too. The
// PodGroup's condition says both.
func TestPodGroups(t *testing.T) {
	const gates = "--feature-gates=GenericWorkload=true,GangScheduling=true"
	f := newGroupField(t, start(t, cluster.Options{APIServerFlags: []string{gates, "--runtime-config=scheduling.k8s.io/v1alpha2=true"}}, 0))
	f.sameNodes(2, "4", 110)
	berth := f.berth(cluster.SchedulerOptions{Flags: []string{gates}})

	f.gang("fits", 4)
	fits := f.members("fits", 4, "1")
	f.create(fits[:3]...)
	f.await("three pods to be kept out of the queue", func() string {
		return missing(f.metric(berth, "scheduler_pending_pods", `queue="gated"`), 3)
	})
	if n := bound(f.seen("")); n > 0 {
		t.Errorf("%d of three pods are placed, and the group needs four", n)
	}
	f.create(fits[3])
	f.awaitCondition("fits", metav1.ConditionTrue, "Scheduled")
	f.awaitBound(4)

	f.gang("large", 3)
	f.create(f.members("large", 3, "2")...) // two of them would fit
	f.awaitCondition("large", metav1.ConditionFalse, schedulingv1alpha2.PodGroupReasonUnschedulable)
	f.await("the pods of the large group to be rejected", func() string { return missing(rejected(f.seen("group=large")), 3) })
	f.create(f.podsOf("other", 2, "2")...)
	f.awaitBound(6)
	if n := bound(f.seen("group=large")); n > 0 {
		t.Errorf("%d pods of a group that does not fit are placed", n)
	}

	f.addNodes(f.node(2, "6", 110))
	f.awaitCondition("large", metav1.ConditionTrue, "Scheduled")
	f.awaitBound(9)
	f.awaitScheduledOnce()
	f.checkRoom()
}

func newGroupField(t *testing.T, c *cluster.Cluster) *groupField {
	t.Helper()
	f := &groupField{field: newFieldOn(t, c, "groups")}
	factory := informers.NewSharedInformerFactoryWithOptions(f.client, 0, informers.WithNamespace(f.name))
	f.groups = factory.Scheduling().V1alpha2().PodGroups().Informer()
	if _, err := f.groups.AddEventHandler(f.observer()); err != nil {
		t.Fatal(err)
	}
	watching, stop := context.WithCancel(context.Background())
	t.Cleanup(func() { stop(); factory.Shutdown() })
	factory.StartWithContext(watching)
	return f
}

// gang creates a group that is placed only with so many pods.
func (f *groupField) gang(name string, least int32) {
	f.Helper()
	group := &schedulingv1alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: schedulingv1alpha2.PodGroupSpec{
		SchedulingPolicy: schedulingv1alpha2.PodGroupSchedulingPolicy{Gang: &schedulingv1alpha2.GangSchedulingPolicy{MinCount: least}}}}
	if _, err := f.client.SchedulingV1alpha2().PodGroups(f.name).Create(f.Context(), group, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}

// members makes n pods of a group.
func (f *groupField) members(group string, n int, cpu string) []*corev1.Pod {
	pods := f.podsOf(group, n, cpu)
	for _, p := range pods {
		p.Labels["group"] = group
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	}
	return pods
}

// awaitCondition waits until the group's condition says that.
func (f *groupField) awaitCondition(group string, status metav1.ConditionStatus, reason string) {
	f.Helper()
	f.await("the condition of pod group "+group, func() string {
		obj, ok, err := f.groups.GetStore().GetByKey(f.name + "/" + group)
		if err != nil || !ok {
			return "is not shown"
		}
		c := meta.FindStatusCondition(obj.(*schedulingv1alpha2.PodGroup).Status.Conditions, schedulingv1alpha2.PodGroupScheduled)
		if c == nil || c.Status != status || c.Reason != reason || c.LastTransitionTime.IsZero() {
			return fmt.Sprintf("it is %+v", c)
		}
		return ""
	})
}
