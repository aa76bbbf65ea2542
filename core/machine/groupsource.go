package machine

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/table"
)

// A pod is in a group by its spec, which names a PodGroup of Kubernetes' own, or by its
// labels. From here on it is a pod whose SchedulingGroup names the group.

// has reports whether the pod is in a group and groups are placed together.
func (l *podGroups) has(p *object.Pod) bool { return l.table.Groups() != nil && p.PodGroup() != "" }

// nameOf returns the GroupName of the group that a pod with these fields is in, "" for none.
// Kubernetes' own group comes before labels.
func (l *podGroups) nameOf(schedulerName, schedulingGroup string, labels map[string]string) string {
	if l.options.PodGroups && schedulingGroup != "" {
		return schedulingGroup
	}
	if of := l.profiles[schedulerName]; of != nil && of.Groups != nil {
		return of.Groups.Name(labels)
	}
	return ""
}

// member returns the pod with a SchedulingGroup that names the group that it is in: p itself, or a
// copy. A pod that is placed stays in the group with which it was placed, whatever becomes of its
// labels.
func (l *podGroups) member(p *object.Pod) *object.Pod {
	if l.table.Groups() == nil {
		return p
	}
	name := p.PodGroup()
	if source, _ := object.GroupSource(name); source != "" {
		return p // it is the machine's own
	}
	name = l.nameOf(p.SchedulerName, name, p.Labels)
	if kept, is := l.kept[p.UID]; is {
		name = kept
	} else if pl := l.table.Pod(p.UID); pl != nil {
		name = pl.Pod.PodGroup()
	}
	if name == p.PodGroup() {
		return p
	}
	member := *p
	member.SchedulingGroup = &object.SchedulingGroup{PodGroupName: name, Owners: p.Owners()}
	return &member
}

// keptGroup returns the name of the group that the pod is in ("" for none) if its spec and labels
// now name another one. It returns nil if they name it.
func (l *podGroups) keptGroup(p *object.Pod) *string {
	name := p.PodGroup()
	if l.table.Groups() == nil || name == l.nameOf(p.SchedulerName, p.KubernetesGroup(), p.Labels) {
		return nil
	}
	return &name
}

// groupOf returns the group of the cycle, nil if it does not exist. A group without a priority of
// its own gets the lowest of its pods, for the search for victims. A group that names a level that
// the tree of its profile lacks gets a Fault. Both are copies.
func (l *podGroups) groupOf(c *groupCycle) *object.PodGroup {
	g := table.PodGroup(l.table, c.name)
	if g == nil {
		return nil
	}
	_, fault := levelsOf(l.options, c.profile, g)
	if g.Source == "" && fault == "" {
		return g
	}
	own := *g
	if own.Fault = cmp.Or(g.Fault, fault); g.Source == "" {
		return &own
	}
	own.Priority = c.members[0].pod.Priority
	for _, mb := range c.members {
		own.Priority = min(own.Priority, mb.pod.Priority)
	}
	return &own
}

// apiGroup returns the API group of the PodGroup with this name.
func apiGroup(name string) string {
	if source, _ := object.GroupSource(name); source != "" {
		return source
	}
	return object.PodGroups.GroupVersion().Group
}

// rejoinAs handles a known pod that changed from old to now (nil: it is gone): it moves the pod to
// the group that now names. If that changes what the labels of pods say of a group (Labelled), the
// pods of that group pass PreEnqueue again.
func (l *podGroups) rejoinAs(old, now *object.Pod) {
	if !l.has(old) && (now == nil || !l.has(now)) {
		return
	}
	groups, names := l.table.Groups(), []types.NamespacedName{old.GroupKey()}
	if now != nil && now.GroupKey() != old.GroupKey() {
		names = append(names, now.GroupKey())
	}
	before := make([]*object.PodGroup, len(names))
	for i, name := range names {
		before[i] = groups.Named(name).Labelled()
	}
	if now == nil || len(names) > 1 {
		groups.Leave(old)
	}
	if now != nil {
		groups.Join(now)
	}
	for i, name := range names {
		l.statuses.markChanged(name)
		if after := groups.Named(name).Labelled(); after != before[i] && before[i] != nil && after != nil {
			l.queue.PodGroupChanged(l.now, name)
		}
	}
}

// reportOtherGroup emits an Event about a pod that is tried for the first time and whose
// labels name another group than the PodGroup that it is in.
func (l *podGroups) reportOtherGroup(e *queue.Entry) {
	of := l.profiles[e.Pod.SchedulerName].Groups
	if of == nil || e.Tries != 1 || e.Pod.KubernetesGroup() == "" {
		return
	}
	if other := of.Name(e.Pod.Labels); other != "" {
		l.emit(PublishEvent{Pod: e.Pod, Warning: true, Reason: ReasonOtherPodGroup, Action: "Scheduling",
			Note: fmt.Sprintf("The pod is in the pod group %s of its spec.schedulingGroup; that of its labels, %s, does not count", e.Pod.PodGroup(), other)})
	}
}
