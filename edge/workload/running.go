package workload

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/edge/decode"
)

// Active returns the pods that the workload's controller counts as its own: those that have
// not ended and, where their numbers do not matter, are not being deleted.
func (w *Workload) Active(pods []*v1.Pod) []*v1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *v1.Pod) bool {
		return decode.Ended(p) || p.DeletionTimestamp != nil && !w.ordinals && w.Kind != "DaemonSet"
	})
}

// Ready reports whether the pod is ready. One that runs and has no condition at all counts
// as ready: its kubelet would have set some, so somebody wrote it.
func Ready(p *v1.Pod) bool {
	c := readyCondition(p)
	if c == nil {
		return len(p.Status.Conditions) == 0 && p.Status.Phase == v1.PodRunning
	}
	return c.Status == v1.ConditionTrue
}

// Termination returns when the deletion of the pod was asked for and when its grace period ends,
// which is its deletionTimestamp; false for a pod that is not being deleted.
func Termination(p *v1.Pod) (since, due time.Time, terminating bool) {
	if p.DeletionTimestamp == nil {
		return since, due, false
	}
	due = p.DeletionTimestamp.Time
	if grace := p.DeletionGracePeriodSeconds; grace != nil && *grace > 0 && *grace <= math.MaxInt32 { // else somebody wrote it
		return due.Add(-time.Duration(*grace) * time.Second), due, true
	}
	return due, due, true
}

func readyCondition(p *v1.Pod) *v1.PodCondition {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == v1.PodReady {
			return c
		}
	}
	return nil
}

// SortForDeletion puts first what the workload's controller, at the time now, deletes first:
// of a StatefulSet the highest number, of others what Kubernetes' controllers prefer. Jobs
// go by no costs and no neighbours, and by exact ages.
func (w *Workload) SortForDeletion(pods []*v1.Pod, now time.Time) {
	if w.ordinals {
		slices.SortFunc(pods, func(a, b *v1.Pod) int {
			return cmp.Or(cmp.Compare(len(b.Name), len(a.Name)), cmp.Compare(b.Name, a.Name))
		})
		return
	}
	beside, cost := map[string]int{}, map[*v1.Pod]int64{} // pods of the workload by node; costs that are not 0
	if w.Kind == "Job" || w.Kind == "CronJob" {
		now = time.Time{}
	} else {
		for _, p := range pods {
			beside[p.Spec.NodeName]++
			if n, err := strconv.ParseInt(p.Annotations[v1.PodDeletionCost], 10, 32); err == nil {
				cost[p] = n
			}
		}
	}
	slices.SortStableFunc(pods, func(a, b *v1.Pod) int {
		return cmp.Or(first(a.Spec.NodeName == "", b.Spec.NodeName == ""),
			cmp.Compare(phases[a.Status.Phase], phases[b.Status.Phase]),
			first(!Ready(a), !Ready(b)),
			cmp.Compare(cost[a], cost[b]),
			cmp.Compare(beside[b.Spec.NodeName], beside[a.Spec.NodeName]),
			younger(readySince(a), readySince(b), a, b, now),
			cmp.Compare(restarts(b), restarts(a)),
			cmp.Compare(sidecarRestarts(b), sidecarRestarts(a)),
			younger(a.CreationTimestamp.Time, b.CreationTimestamp.Time, a, b, now))
	})
}

// phases in the order of deletion.
var phases = map[v1.PodPhase]int{v1.PodPending: 0, v1.PodUnknown: 1, v1.PodRunning: 2}

// first puts what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// younger puts the later time first, and a time that is not known before all. Where now is
// known, times count as one whose ages are between the same powers of two: the UID decides
// then, which is as good as a draw.
func younger(x, y time.Time, a, b *v1.Pod, now time.Time) int {
	switch {
	case x.Equal(y):
		return 0
	case x.IsZero() || y.IsZero():
		return first(x.IsZero(), y.IsZero())
	case now.IsZero():
		return y.Compare(x)
	}
	return cmp.Or(cmp.Compare(magnitude(now.Sub(x)), magnitude(now.Sub(y))), cmp.Compare(a.UID, b.UID))
}

func magnitude(age time.Duration) int {
	if age <= 0 {
		return -1
	}
	return int(math.Log2(float64(age)))
}

// readySince returns since when the pod is ready, zero if it is not or if that is not known.
func readySince(p *v1.Pod) time.Time {
	if c := readyCondition(p); c != nil && c.Status == v1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// restarts returns the most restarts of a container.
func restarts(p *v1.Pod) (most int32) {
	for i := range p.Status.ContainerStatuses {
		most = max(most, p.Status.ContainerStatuses[i].RestartCount)
	}
	return most
}

// sidecarRestarts returns the most restarts of a sidecar, which is an init container that
// is always restarted.
func sidecarRestarts(p *v1.Pod) (most int32) {
	for i := range p.Status.InitContainerStatuses {
		status := &p.Status.InitContainerStatuses[i]
		for j := range p.Spec.InitContainers {
			c := &p.Spec.InitContainers[j]
			if c.Name == status.Name && c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
				most = max(most, status.RestartCount)
			}
		}
	}
	return most
}
