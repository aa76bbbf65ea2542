package logs

import (
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// event logs what happened in the cluster, and what came of requests.
func (l *Logger) event(e machine.Event, c machine.Change) {
	switch e := e.(type) {
	case machine.BindReply:
		l.bindReplied(e)
		return
	case machine.EvictReply:
		l.evicted(e)
		return
	case machine.PodGone:
		l.forget(e.UID)
	}
	if l.level < 3 {
		return
	}
	switch e := e.(type) {
	case machine.NodeSet:
		l.nodeSet(e.Node.Name, c)
	case machine.NodeGone:
		l.logger.V(3).Info("Delete event for node", "node", klog.KRef("", e.Name))
	case machine.PodSet:
		l.podSet(e.Pod, c)
	case machine.PodGone:
		l.podGone(klog.KRef(e.Namespace, e.Name), c)
	}
}

func (l *Logger) nodeSet(name string, c machine.Change) {
	switch {
	case c.Resource == framework.Node && c.Action == framework.Add:
		l.logger.V(3).Info("Add event for node", "node", klog.KRef("", name))
	case l.level >= 4:
		l.logger.V(4).Info("Update event for node", "node", klog.KRef("", name))
	}
}

func (l *Logger) podSet(p *object.Pod, c machine.Change) {
	switch {
	case c.Action == framework.Delete && p.Terminal: // v1.37 does not see pods that have done their work
		l.forget(p.UID)
		l.podGone(ref(p), c)
	case c.Action == framework.Add && c.Resource == framework.UnscheduledPod:
		l.logger.V(3).Info("Add event for unscheduled pod", "pod", ref(p))
	case c.Action == framework.Add && c.Resource == framework.AssignedPod:
		l.logger.V(3).Info("Add event for scheduled pod", "pod", ref(p))
		if c.Bound { // v1.37 takes it out of its queue then, where it is not any more
			l.logger.V(3).Info("Delete event for unscheduled pod", "pod", ref(p))
		}
	case l.level < 4 || c.Action == 0:
	case p.NodeName == "":
		l.logger.V(4).Info("Update event for unscheduled pod", "pod", ref(p))
	default:
		l.logger.V(4).Info("Update event for scheduled pod", "pod", ref(p))
	}
}

func (l *Logger) podGone(pod klog.ObjectRef, c machine.Change) {
	switch {
	case c.Action != framework.Delete:
	case c.Resource == framework.UnscheduledPod:
		l.logger.V(3).Info("Delete event for unscheduled pod", "pod", pod)
	case c.Resource == framework.AssignedPod:
		l.logger.V(3).Info("Delete event for scheduled pod", "pod", pod)
	}
}

// failure is the event of a pod that comes back from an attempt.
const failure = "ScheduleAttemptFailure"

// entity is the type of what the queue holds: a pod group is none.
const entity = "pod"

// moved logs that a pod came to a place of the queue. The queue calls it.
func (l *Logger) moved(e *queue.Entry, from queue.Place, event string) {
	pod, to := ref(e.Pod), e.Place()
	switch {
	case to == queue.Nowhere, from == queue.ErrorBackoff && to == queue.Backoff: // not told by kube-scheduler
	case to == queue.InFlight:
		l.popped(e)
	case to == queue.Gated:
		if l.level >= 5 {
			l.logger.V(5).Info("Entity moved to an internal scheduling queue, because it is gated", "type", entity, "entity", pod, "event", event, "queue", "Unschedulable")
		}
	case event == failure:
		s := e.State()
		name, strategy := queueName(to)
		l.logger.V(3).Info("Pod moved to an internal scheduling queue", "pod", pod, "event", event, "queue", name, "schedulingCycle", l.cycles,
			"hint", strategy, "unschedulable plugins", s.RejectedBy)
	case l.level >= 5:
		name, _ := queueName(to)
		l.logger.V(5).Info("Entity moved to an internal scheduling queue", "type", entity, "entity", pod, "event", event, "queue", name)
	}
}

// queueName is v1.37's name for the place, and the number of the hints' result.
func queueName(p queue.Place) (name string, strategy int) {
	switch p {
	case queue.Active:
		return "Active", 2
	case queue.Backoff, queue.ErrorBackoff:
		return "Backoff", 1
	}
	return "Unschedulable", 0
}

// popped logs that an attempt begins.
func (l *Logger) popped(e *queue.Entry) {
	pod := ref(e.Pod)
	if l.level >= 4 {
		l.logger.V(4).Info("About to try and schedule pod", "pod", pod)
		if e.Flushed() {
			l.flushed[e.Pod.UID] = e.State()
		}
	}
	if e.Pod.Terminating {
		l.logger.V(3).Info("Skip schedule deleting pod", "pod", pod)
		return
	}
	l.logger.V(3).Info("Attempting to schedule pod", "pod", pod, "attempt", e.Attempts())
}

// skipped logs that an event does not help a pod. The queue calls it.
func (l *Logger) skipped(p *object.Pod, event string) {
	l.logger.V(5).Info("Event is not making entity schedulable", "type", entity, "entity", ref(p), "event", event)
}
