package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/table"
)

// groupCycle is one scheduling cycle of a pod group. First each pod is decided on and
// assumed beside those before it; then all of that is undone. If the group may be
// placed, each pod is then assumed for good on the node that was found. A cycle begins
// and ends in one step.
type groupCycle struct {
	name    types.NamespacedName
	group   *object.PodGroup
	profile *profile.Profile
	// placements is the number of placements being tried.
	placements int
	// trial is set while what is tried is not carried out: a plugin searches victims, or the
	// group is assessed.
	trial bool
	// partial is set if some placements, or orders in them, were left for the next attempts.
	partial bool
	// again identifies the present try for a plugin that searches victims; nil: there is none.
	again any
	// untried is the status for pods that were not tried: c.status before PodGroupPostFilter
	// plugins ran.
	untried *decision.Status
	// victims are the pods preempted for the group as a whole, by evictedBy.
	victims   []*object.Pod
	evictedBy string
	// nominated holds, after a preemption, the node for each pod that it makes fit; "" ends a
	// pod's nomination.
	nominated map[types.UID]string
	scheduled int // number of pods that go on to their binding
	// firstActive is when the first of the pods could first be tried.
	firstActive time.Time
	groupTry
}

// podGroups runs the scheduling cycles of pod groups and writes their conditions.
type podGroups struct {
	*step
	options     *Options
	profiles    profiles
	budgets     *budgets
	engine      *engine.Engine
	guard       *guard
	pods        *pods
	nominations *nominations
	preemptors  *preemptors
	overcommits *overcommits
	attempts    *attempts
	bindings    *bindingCycles
	evictions   *evictions
	extenders   *extenderCycles
	scheduling  *schedulingCycles
	statuses    *groupStatuses

	underway *groupCycle // the cycle in which pods are being tried; nil: none
	// asked holds, by the group's UID, the condition in a patch that the API does not show
	// yet.
	asked map[types.UID]object.GroupCondition
	kept  map[types.UID]string // during Restore: what SavedPod.Group has, by the pod's UID
}

// groupTry is one try to place the pods of a group in one placement, with its results.
type groupTry struct {
	placement *framework.Placement // nil: all nodes
	members   []*groupMember       // in the order in which they are tried
	order     string               // name of that order; "" for the queue's
	// status is why the group does not fit; nil if it fits.
	status *decision.Status
	// preempts is set if the group fits once victims are gone.
	preempts bool
	counted  *groupCount // set once the pods that fit are counted instead of tried one by one
}

// rows returns the rows of the placement; nil for all nodes.
func (t *groupTry) rows() []table.Row {
	switch {
	case t.placement == nil:
		return nil
	case t.placement.Rows == nil:
		return []table.Row{}
	}
	return t.placement.Rows
}

// groupMember is a pod of a group that is being scheduled, with the result of the last try
// to place the group.
type groupMember struct {
	*attempt
	// row is the node that was found for the pod, if fits is set; -1 if it was counted to fit
	// on one of them.
	row  table.Row
	fits bool
	// tried is set if the pod was decided on. If it does not fit then, failed or the
	// record holds the reason.
	tried  bool
	failed *decision.Status
	// local is set if the filters' answers for a node depend on that node alone.
	local bool
	// writes may help the pod if the group is not placed; writer is their plugin.
	writes []framework.Write
	writer string

	placed bool   // the pod is assumed for the try
	kept   string // the pod's nomination before the cycle; "" for none
}

var (
	errExtendersForGroup  = errors.New("an extender has a say about the pod, and none is called for pods of a group")
	errGroupUnschedulable = errors.New("pod group is unschedulable")
)

// scheduleGroup runs the scheduling cycle of a pod group, whose waiting pods were popped
// from the queue. entries are these, in the order in which they are tried.
func (l *podGroups) scheduleGroup(entries []*queue.Entry) {
	c := &groupCycle{name: entries[0].Pod.GroupKey(), profile: entries[0].Owner.(*podState).request.Profile}
	for _, e := range entries {
		c.members = append(c.members, l.newMember(e.Owner.(*podState), l.table.Live()))
		if c.firstActive.IsZero() || e.FirstActive.Before(c.firstActive) {
			c.firstActive = e.FirstActive
		}
		l.reportOtherGroup(e)
	}
	c.group = l.groupOf(c)
	if err := l.validate(c); err != nil {
		l.failGroup(c, err)
		return
	}
	c.members = slices.DeleteFunc(c.members, func(mb *groupMember) bool {
		if mb.pod.Terminating {
			l.attempts.skip(mb.state)
		}
		return mb.pod.Terminating
	})
	if len(c.members) > 0 {
		l.overcommits.counting = true
		l.underway = c
		l.decideGroup(c)
		c.untried = c.status
		l.preemptForGroup(c) // grouppreemption.go
		l.underway = nil
		l.submitGroup(c)
	}
	l.queue.EndGroup(l.now, c.name, c.result())
	l.endNominations(c)
}

// result returns how the cycle ended, for the queue. A group that fits has failed if Reserve or
// Permit plugins then rejected each of its pods: as placed, it would be tried again at once,
// without end.
func (c *groupCycle) result() queue.GroupResult {
	switch {
	case c.status == nil && c.scheduled > 0:
		return queue.GroupPlaced
	case c.status == nil || c.status.Code == decision.Error:
		return queue.GroupFailed
	}
	return queue.GroupRejected
}

// decideGroup finds nodes for the pods of the group. A group of which enough pods are placed
// already still fits only if another pod of it does. The results are left in c; nothing stays
// assumed.
func (l *podGroups) decideGroup(c *groupCycle) {
	placements := []*framework.Placement{nil}
	of, _ := levelsOf(l.options, c.profile, c.group)
	switch {
	case of.levels != nil && c.group.Fault == "":
		newDomainSearch(l, c, of).run() // grouptopology.go
	case of.levels == nil && l.options.GroupPlacements:
		placements = l.tryPlacements(c) // placement.go
	default:
		l.tryGroup(c)
		l.undoGroup(c)
	}
	if of.levels == nil && c.status != nil && c.status.Code == decision.Unschedulable {
		l.tryOtherOrders(c, placements) // grouporder.go
	}
	if c.status == nil && !slices.ContainsFunc(c.members, func(mb *groupMember) bool { return mb.fits }) {
		c.status = unschedulableGroup()
	}
}

// newMember starts an attempt for a pod of a group; nodes is the number of nodes in its
// record.
func (l *podGroups) newMember(ps *podState, nodes int) *groupMember {
	mb := &groupMember{attempt: l.attempts.start(ps), kept: ps.entry.NominatedNode()}
	mb.grouped = true
	mb.record.NodesTotal = nodes
	return mb
}

// validate returns an error if the group cannot be scheduled at all: it is not known, or its pods,
// placed ones included, differ in the scheduler or the preemption policy, or a pod of Kubernetes'
// own group has another priority than the group (kube-scheduler's validatePodGroup).
func (l *podGroups) validate(c *groupCycle) error {
	if c.group == nil {
		if s := l.scheduling.cannotTry(c.members[0].attempt); s != nil && s.Code == decision.Error {
			return s.Err
		}
		return fmt.Errorf("podgroup.%s %q not found", apiGroup(c.name.Name), c.name.Name)
	}
	first := c.members[0].pod
	for _, mb := range c.members {
		if err := c.matches(first, mb.pod); err != nil {
			return err
		}
	}
	for uid := range l.table.Groups().Named(c.name).Placed() {
		if err := c.matches(first, l.table.Pod(uid).Pod); err != nil {
			return err
		}
	}
	return nil
}

// matches returns an error if p may not be in one group with the pod first: the scheduler or the
// preemption policy is another, or, in a group of Kubernetes' own, p's priority is not the group's.
func (c *groupCycle) matches(first, p *object.Pod) error {
	policy := func(p *object.Pod) v1.PreemptionPolicy {
		if p.NeverPreempts {
			return v1.PreemptNever
		}
		return v1.PreemptLowerPriority
	}
	switch {
	case p.SchedulerName != first.SchedulerName:
		return fmt.Errorf("all pods in a single pod group should have the same .spec.schedulerName set, got: %q and %q", p.SchedulerName, first.SchedulerName)
	case c.group.Source == "" && p.Priority != c.group.Priority:
		return fmt.Errorf("all pods in a single pod group should have the same priority as the pod group's priority, got %d and %d", p.Priority, c.group.Priority)
	case p.NeverPreempts != first.NeverPreempts:
		return fmt.Errorf("all pods in a single pod group should have the same preemption policy, got %v and %v", policy(p), policy(first))
	}
	return nil
}

// tryGroup decides on the pods one after the other and assumes each before the next, until
// PlacementFeasible plugins say that the group cannot fit any more. c.status is nil afterwards if
// the group fits. An error of one pod ends the try.
//
// Of the nominations of the group's pods, only that of the pod being decided on counts. It names
// the node on which an earlier cycle assumed the pod, after the pods before it; so that node is
// tried again.
func (l *podGroups) tryGroup(c *groupCycle) {
	progress := framework.PlacementProgress{Remaining: len(c.members), Scheduled: l.table.Groups().Named(c.name).Scheduled()}
	if c.status = l.placementFeasible(c, progress); c.status != nil && c.status.Code != decision.Wait {
		if c.status.Code.Rejects() {
			c.status = unschedulableGroup(c.status.Reasons...)
		}
		return
	}
	for _, mb := range c.members {
		l.nominateMember(mb, "")
	}
	for _, mb := range c.members {
		l.nominateMember(mb, mb.kept)
		if err := l.guard.run("scheduling cycle", "", func() { l.tryMember(c, mb) }); err != nil {
			mb.fits, mb.failed = false, &decision.Status{Code: decision.Error, Err: err}
		}
		l.nominateMember(mb, "")
		if mb.failed != nil && !mb.failed.Code.Rejects() {
			c.status = decision.Failed("failed to schedule other pod from a pod group: %w", mb.failed.Err)
			return
		}
		progress.Remaining, progress.Tried = progress.Remaining-1, progress.Tried+1
		if mb.fits {
			progress.Scheduled++
		}
		if mb.fits && c.counted != nil {
			continue // it is known that the group does not fit, but not yet after which pod
		}
		if c.status = l.placementFeasible(c, progress); c.status != nil && c.status.Code != decision.Wait {
			return
		}
	}
	if c.status != nil {
		c.status = unschedulableGroup(c.status.Reasons...)
	}
}

// unschedulableGroup returns the status of a group that does not fit.
func unschedulableGroup(reasons ...string) *decision.Status {
	return &decision.Status{Code: decision.Unschedulable, Err: errGroupUnschedulable, Reasons: reasons}
}

// placementFeasible asks the PlacementFeasible plugins whether the group meets its constraints
// after so much of a try. It returns nil if it does, Wait if it may with the pods that remain, and
// the status of the first plugin that rejects it or fails otherwise.
func (l *podGroups) placementFeasible(c *groupCycle, p framework.PlacementProgress) (status *decision.Status) {
	for _, pl := range c.profile.PlacementFeasible {
		var s *decision.Status
		if err := l.guard.run("PlacementFeasible", pl.Name, func() { s = pl.PodGroup.PlacementFeasible(l.table, c.group, p) }); err != nil {
			return decision.Failed("failed to evaluate placement feasibility: %w", err)
		}
		if s != nil && s.Code != decision.Wait {
			return s
		}
		if s != nil {
			status = s
		}
	}
	return status
}

// tryMember decides on the pod, and assumes it if it fits. The result is left in mb. It may set
// c.counted, once the pods that fit are counted: then neither this pod nor later ones are assumed.
func (l *podGroups) tryMember(c *groupCycle, mb *groupMember) {
	a := mb.attempt
	if c.counted != nil {
		c.counted.take(mb, l.attempts)
		return
	}
	mb.tried = true
	if mb.failed = l.scheduling.cannotTry(a); mb.failed != nil {
		return
	}
	if l.extenders.of(a.pod) != nil {
		mb.failed = &decision.Status{Code: decision.Error, Err: errExtendersForGroup}
		return
	}
	o := l.engine.DecideWithin(c.rows(), a.request, l.nominations)
	l.stepDone(c, "Computing predicates and prioritizing done")
	if c.counted = (&counting{l, c}).count(mb, o); c.counted != nil { // groupcount.go
		c.counted.take(mb, l.attempts)
		return
	}
	mb.local = o.LocalFilters()
	l.askDeallocate(c, mb, o)
	if o.Row < 0 && (o.Rejected == nil || o.Rejected.Code.Rejects()) {
		l.attempts.recordRejection(a, o)
		return
	}
	l.attempts.recordNodes(a, o)
	if mb.failed = o.Rejected; mb.failed != nil {
		return
	}
	a.record.Score, a.record.Ties = o.Score, o.Ties
	mb.row, mb.fits = o.Row, true
	l.engine.Reuse(o)
	l.tryAssume(mb)
	l.stepDone(c, "Reserving done")
}

// stepDone calls Options.StepDone with the step that was just done, except while several placements
// or victims are tried: such tries may be a hundred thousand.
func (l *podGroups) stepDone(c *groupCycle, step string) {
	if c.placements <= 1 && !c.trial {
		l.attempts.stepDone(step)
	}
}

// tryAssume assumes the pod on the node mb.row until undoGroup, and runs Reserve plugins. If one
// rejects the pod, the pod is removed at once, and mb.failed is the reason.
func (l *podGroups) tryAssume(mb *groupMember) {
	b := mb.binding
	b.attempt, b.row, b.node = mb.attempt, mb.row, l.table.Name(mb.row)
	mb.placed = true // first: after a panic in between it is removed
	l.nominateMember(mb, "")
	l.table.Place(mb.pod, mb.row)
	l.showTry(mb)
	if s := l.bindings.reserve(b.profile, b.pod, b.node); s != nil {
		mb.fits, mb.failed = false, s
		l.undoAssume(mb)
	}
}

// undoGroup undoes the try of the group, the last pod first, and restores the nominations.
func (l *podGroups) undoGroup(c *groupCycle) {
	for _, mb := range slices.Backward(c.members) {
		l.undoAssume(mb)
		l.nominateMember(mb, mb.kept)
	}
}

// nominateMember sets the pod's nomination in the queue; "" ends it. It sends no event.
func (l *podGroups) nominateMember(mb *groupMember, node string) {
	if e := mb.state.entry; e != nil && e.NominatedNode() != node {
		l.queue.Nominate(e, node)
	}
}

// undoAssume undoes tryAssume, if that was not done yet: it runs Unreserve and removes the
// pod from its node.
func (l *podGroups) undoAssume(mb *groupMember) {
	if !mb.placed {
		return
	}
	mb.placed = false
	l.bindings.unreserve(mb.binding.profile, mb.pod, mb.binding.node)
	l.table.RemovePod(mb.pod.UID)
	l.showTry(mb)
}

// showTry updates the node snapshot that hosted plugins read, after the pod was assumed on
// a node or removed from it to try whether its group fits.
func (l *podGroups) showTry(mb *groupMember) {
	if h := mb.profile.Host; h != nil {
		h.Show(l.table)
	}
}

// rejoin, after a panic, rebuilds the table's list of pod groups and their pods.
// Table.Rebuild then adds which pods are placed.
func (l *podGroups) rejoin() {
	if l.table.Groups() == nil {
		return
	}
	l.table.CountGroups()
	for _, ps := range l.pods.sorted() {
		if l.pods.byName[ps.pod.NamespacedName()] == ps && ps.goneByRead == nil {
			l.table.Groups().Join(ps.pod)
		}
	}
}

// verify returns an error if a known pod is not listed in its group, or if a cycle of a group has
// not ended.
func (l *podGroups) verify() error {
	if l.underway != nil {
		return fmt.Errorf("the cycle of pod group %s has not ended", l.underway.name)
	}
	placed := func(uid types.UID) *object.Pod {
		if pl := l.table.Pod(uid); pl != nil {
			return pl.Pod
		}
		return nil
	}
	return l.table.Groups().Check(placed, func(yield func(*object.Pod) bool) {
		for _, ps := range l.pods.byName { // any order: an error is an error
			if ps.goneByRead == nil && !yield(ps.pod) {
				return
			}
		}
	})
}
