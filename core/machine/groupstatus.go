package machine

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/group"
	"github.com/berth-scheduler/berth/core/object"
)

// groupStatuses writes the status of the PodGroups of scheduler-plugins. The watch leaves out
// pods that have ended, so each pod of such a group that leaves it is read once, to count it
// as succeeded or failed. The status that a process finds when it begins to lead holds what was
// counted before.
type groupStatuses struct {
	*step
	pods   *pods
	writes bool                                 // lead was called, and no profile has LeaveStatus
	ended  map[types.UID]EndedPods              // by UID of the PodGroup
	asked  asked[types.UID, object.GroupStatus] // by UID of the PodGroup
	// occupied is OccupiedBy as the status had it first while this process wrote, by UID of the
	// PodGroup. What others write later does not count.
	occupied map[types.UID]string
	reads    map[types.UID]*endedRead      // by UID of the pod
	recent   map[types.NamespacedName]bool // groups of which something changed in the step
}

// EndedPods are the numbers of a group's pods that have ended so far.
type EndedPods struct{ Succeeded, Failed int }

// endedRead is the read of a pod that has left the watch and may have ended.
type endedRead struct {
	pod  *object.Pod
	lost LostReply // counts the reads that failed
}

// lead begins to write, at the first ScheduleOne: until then another process may be the leader. If
// a profile leaves the status to others, it does nothing. Later calls do nothing.
func (w *groupStatuses) lead(profiles profiles) {
	if w.writes || w.table.Groups() == nil {
		return
	}
	for _, p := range profiles { // any order: one is enough
		if p.Groups != nil && p.Groups.LeaveStatus {
			return
		}
	}
	w.writes = true
	for _, o := range w.table.Objects().List(object.CoschedulingGroups) {
		w.markChanged(o.(*object.PodGroup).GroupKey())
	}
}

// markChanged records that something changed of the group that may change its status. It does
// nothing before lead, or if the group is none of scheduler-plugins.
func (w *groupStatuses) markChanged(name types.NamespacedName) {
	if !w.writes {
		return
	}
	if source, _ := object.GroupSource(name.Name); source == object.SchedulerPlugins {
		w.recent[name] = true
	}
}

// settle emits patches for the groups that changed in the step and are to have another status than
// the API shows, unless the API was asked for that status already.
func (w *groupStatuses) settle() {
	if len(w.recent) == 0 {
		return
	}
	names := slices.SortedFunc(maps.Keys(w.recent), func(a, b types.NamespacedName) int { // any order: sorted
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	clear(w.recent)
	for _, name := range names {
		_, short := object.GroupSource(name.Name)
		g, _ := w.table.Objects().Shown(object.CoschedulingGroups, name.Namespace, short).(*object.PodGroup)
		if g == nil {
			continue
		}
		if status := w.statusOf(g); w.asked.due(g.UID, g.Status, status) {
			w.emit(PatchGroupPhase{Group: g, Status: status})
		}
	}
}

// statusOf returns the status that the PodGroup is to have now, which follows from its pods and
// from the status that was last asked to be written. It records OccupiedBy, which others cannot
// change from then on.
func (w *groupStatuses) statusOf(g *object.PodGroup) object.GroupStatus {
	was := w.asked.latest(g.UID, g.Status)
	was.OccupiedBy = cmp.Or(w.occupied[g.UID], was.OccupiedBy)
	status := group.Status(g, was, w.census(g, was.OccupiedBy))
	if status.OccupiedBy != "" {
		w.occupied[g.UID] = status.OccupiedBy
	}
	return status
}

// census counts the group's present, running, succeeded and failed pods. If occupiedBy is "",
// it also sets Owners, to the owners of the group's first pod.
func (w *groupStatuses) census(g *object.PodGroup, occupiedBy string) group.Census {
	members := w.table.Groups().Named(g.GroupKey())
	ended := w.endedOf(g)
	c := group.Census{Present: members.Len(), Running: members.Running(), Succeeded: ended.Succeeded, Failed: ended.Failed}
	if occupiedBy == "" {
		for uid := range members.All() {
			c.Owners = w.pods.byUID[uid].pod.Owners()
			break
		}
	}
	return c
}

// endedOf returns the numbers of the group's pods that have ended. At the first call it takes and
// records those in the status that the API shows.
func (w *groupStatuses) endedOf(g *object.PodGroup) EndedPods {
	n, counted := w.ended[g.UID]
	if !counted {
		n = EndedPods{g.Status.Succeeded, g.Status.Failed}
		w.ended[g.UID] = n
	}
	return n
}

// shown handles a PodGroup that changed from before to now in the API, nil if it does not
// exist. Nothing is kept of one that is gone.
func (w *groupStatuses) shown(before, now object.Object) {
	g, _ := now.(*object.PodGroup)
	old, _ := before.(*object.PodGroup)
	if old != nil && (g == nil || g.UID != old.UID) {
		delete(w.ended, old.UID)
		delete(w.occupied, old.UID)
		delete(w.asked.by, old.UID)
		old = nil
	}
	if g == nil {
		return
	}
	w.markChanged(g.GroupKey())
	if old != nil {
		w.asked.shows(g.UID, &old.Status, g.Status)
	} else {
		w.asked.shows(g.UID, nil, g.Status)
	}
}

// left handles a pod that the watch does not show any more; placed says that it had a node. If it
// had one and was not being deleted, it has probably ended: a read decides. Only pods of groups of
// scheduler-plugins are read.
func (w *groupStatuses) left(p *object.Pod, placed bool) {
	source, name := object.GroupSource(p.PodGroup())
	if !w.writes || !placed || p.Terminating || source != object.SchedulerPlugins ||
		w.table.Objects().Shown(object.CoschedulingGroups, p.Namespace, name) == nil || w.reads[p.UID] != nil {
		return
	}
	w.reads[p.UID] = &endedRead{pod: p}
	w.emit(ReadPod{Pod: p, Ended: true})
}

// replied handles the reply to a read that left has sent; it returns false for any other. It counts
// the pod if that has ended, and not if it is gone altogether. A read that failed is sent again.
func (w *groupStatuses) replied(e ReadReply) bool {
	read := w.reads[e.UID]
	if read == nil {
		return false
	}
	if e.Err != nil {
		read.lost.ReadFailed()
		w.emit(ReadPod{Pod: read.pod, Delay: read.lost.Delay(), Ended: true})
		return true
	}
	delete(w.reads, e.UID)
	if e.Pod == nil || e.Pod.UID != e.UID || !e.Pod.Terminal {
		return true
	}
	_, name := object.GroupSource(read.pod.PodGroup())
	g, _ := w.table.Objects().Shown(object.CoschedulingGroups, read.pod.Namespace, name).(*object.PodGroup)
	if g == nil {
		return true
	}
	n := w.endedOf(g)
	if e.Pod.Failed {
		n.Failed++
	} else {
		n.Succeeded++
	}
	w.ended[g.UID] = n
	w.markChanged(g.GroupKey())
	return true
}

// rewound handles a restore of etcd to an older state: it forgets what was asked for and counted.
// The statuses that the API shows from now on hold what was counted before.
func (w *groupStatuses) rewound() {
	clear(w.asked.by)
	clear(w.ended)
	clear(w.occupied)
}

// saved returns what a snapshot of the machine holds of the statuses; nil before lead.
func (w *groupStatuses) saved() *SavedStatuses {
	if !w.writes {
		return nil
	}
	return &SavedStatuses{Asked: maps.Clone(w.asked.by), Ended: maps.Clone(w.ended), Occupied: maps.Clone(w.occupied)}
}

// restore adds what a snapshot holds, a result of saved. The machine writes statuses from then
// on, as after lead. nil means that it did not write them yet; restore then does nothing.
func (w *groupStatuses) restore(s *SavedStatuses) {
	if s == nil {
		return
	}
	w.writes = true
	maps.Copy(w.asked.by, s.Asked)
	maps.Copy(w.ended, s.Ended)
	maps.Copy(w.occupied, s.Occupied)
}
