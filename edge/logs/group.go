package logs

import (
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
)

// groupDone logs the end of a pod group's cycle.
func (l *Logger) groupDone(d machine.PodGroupDone) {
	group := klog.KRef(d.Group.Namespace, d.Group.Name)
	if d.Result == decision.ResultError {
		l.logger.Error(d.Err, "Error scheduling pod group", "podGroup", group, "errorPods", d.Pods)
		return
	}
	if l.level < 2 {
		return
	}
	log, left := l.logger.V(2), d.Pods-d.Scheduled
	switch d.Result {
	case decision.ResultScheduled:
		log.Info("Successfully scheduled a pod group", "podGroup", group, "scheduledPods", d.Scheduled, "unschedulablePods", left)
	case decision.ResultPreempting:
		log.Info("Pod group is waiting for preemption", "podGroup", group, "unschedulablePods", left)
	default:
		log.Info("Unable to schedule a pod group", "podGroup", group, "unschedulablePods", left)
	}
}
