package oracle

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// bindTimeout is how long the pods of a group may take from their choice to the end of
// their bindings, which nobody carries out.
const bindTimeout = time.Minute

// DecideGroup takes the pods of a group that is known, and of which none waited before,
// through one cycle of kube-scheduler. It returns how many have a node and stay there, and
// how long the cycle took. Their bindings are answered after it. The group is not tried again.
func (r *DefaultScheduler) DecideGroup(pods []*v1.Pod) (placed int, took time.Duration, err error) {
	s := r.s
	ends := make(chan bool, len(pods)) // whether the pod is bound
	schedulePod, failureHandler, profiles := s.SchedulePod, s.FailureHandler, s.Profiles
	defer func() { s.SchedulePod, s.FailureHandler, s.Profiles = schedulePod, failureHandler, profiles }()
	s.FailureHandler = func(_ context.Context, _ framework.Framework, info *framework.QueuedPodInfo, _ *fwk.Status, _ *fwk.NominatingInfo, _ time.Time) {
		s.SchedulingQueue.Done(info.Pod.UID)
		ends <- false
	}
	s.Profiles = profile.Map{}
	for name, f := range profiles { // any order: a map
		s.Profiles[name] = binder{f, ends}
	}
	for _, p := range pods { // all, as a pod of a group that lacks some is gated
		s.JoinGroup(p)
	}
	for _, p := range pods {
		if err := s.listed.Add(p); err != nil {
			return 0, 0, err
		}
		s.SchedulingQueue.Add(s.ctx, p)
	}
	s.client.ClearActions()
	start := time.Now()
	s.Scheduler.ScheduleOne(s.ctx)
	took = time.Since(start)
	for range pods {
		select {
		case bound := <-ends:
			if bound {
				placed++
			}
		case <-time.After(bindTimeout):
			return placed, took, errors.New("a pod of the group came to no end")
		}
	}
	for _, p := range pods {
		s.SchedulingQueue.Delete(s.logger, p)
	}
	return placed, took, nil
}

// binder is a profile whose pods are bound at once, by nobody.
type binder struct {
	framework.Framework
	ends chan<- bool
}

// AddWaitingPod does nothing: WaitOnPermit does not wait.
func (b binder) AddWaitingPod(*v1.Pod, map[string]time.Duration) {}

// WaitOnPermit lets the pod go: its cycle has ended with all of its group.
func (b binder) WaitOnPermit(context.Context, *v1.Pod) *fwk.Status { return nil }

// RunBindPlugins binds the pod to nobody's knowledge.
func (b binder) RunBindPlugins(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	return nil
}

// RunPostBindPlugins tells of the end.
func (b binder) RunPostBindPlugins(context.Context, fwk.CycleState, *v1.Pod, string) { b.ends <- true }
