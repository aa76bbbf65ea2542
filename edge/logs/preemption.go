package logs

import (
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// evicting notes an eviction, for the line about its reply.
func (l *Logger) evicting(e machine.Evict) {
	key := eviction{e.Victim.UID, e.Preemptor.UID}
	if _, again := l.evictions[key]; again {
		return
	}
	l.evictions[key] = e
	p := l.preemptors[e.Preemptor.UID]
	if p == nil {
		p = &preemptor{}
		l.preemptors[e.Preemptor.UID] = p
	}
	p.left++
}

// evicted logs what came of an eviction, and of a preemption with its last one.
func (l *Logger) evicted(e machine.EvictReply) {
	key := eviction{e.Victim, e.Preemptor}
	evicting, ok := l.evictions[key]
	if !ok {
		return
	}
	delete(l.evictions, key)
	by := l.preemptors[e.Preemptor]
	by.left--
	if e.Err != nil {
		by.failed = true
		l.logger.Error(e.Err, "Tried to preempted pod", "pod", ref(evicting.Victim), "preemptor", preemptorRef(evicting.Preemptor, evicting.Group))
	} else if l.level >= 2 {
		l.logger.V(2).Info("Preemptor Pod preempted victim Pod", "preemptor", preemptorRef(evicting.Preemptor, evicting.Group), "victim", ref(evicting.Victim), "node", evicting.Node)
	}
	if by.left > 0 {
		return
	}
	delete(l.preemptors, e.Preemptor)
	if l.level < 2 {
		return
	}
	result := "success"
	if by.failed {
		result = "error"
	}
	l.logger.V(2).Info("Async Preemption finished completely", "preemptor", preemptorRef(evicting.Preemptor, evicting.Group), "node", evicting.Node, "result", result)
}

// stopped logs that a victim was stopped before its binding was sent.
func (l *Logger) stopped(victim, preemptor *object.Pod, group *object.PodGroup) {
	kind, by := "pod", preemptorRef(preemptor, group)
	if group != nil {
		kind = "podgroup"
	}
	was, ok := l.placed[victim.UID]
	if !ok {
		return
	}
	if was.record.Result == decision.ResultWaiting {
		l.logger.V(2).Info("Preemptor preempted a waiting pod", "preemptorType", kind, "preemptor", by, "waitingPod", ref(victim), "node", was.record.Node)
		return
	}
	l.logger.V(2).Info("Preemptor rejected a pod in preBind", "preemptorType", kind, "preemptor", by, "podInPreBind", ref(victim), "node", was.record.Node)
}

// preemptorRef is who preempts: the group, or the pod.
func preemptorRef(p *object.Pod, group *object.PodGroup) klog.ObjectRef {
	if group != nil {
		return klog.KRef(group.Namespace, group.Name)
	}
	return ref(p)
}
