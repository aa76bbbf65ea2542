package machine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// groupCycle is one scheduling cycle of a pod group. First each pod is decided on and
// assumed beside those before it; then all of that is undone. If the group may be
// placed, each pod is then assumed for good on the node that was found. A cycle begins
// and ends in one step.
type groupCycle struct {
	name    types.NamespacedName
	profile *profile.Profile
	// placements is the number of placements being tried. While there are several,
	// PostFilter plugins do not act; postFilter is the first placement in which one would.
	placements int
	postFilter *framework.Placement
	// trial is set while the plugin that searches victims for the group tries it without
	// them. PostFilter plugins are not called.
	trial bool
	// victims are the pods preempted for the group as a whole.
	victims []*object.Pod
	// decided is set once no pod of the group is tried any more.
	decided bool
	groupTry
}

// podGroups runs the scheduling cycles of pod groups and writes their conditions.
type podGroups struct {
	*step
	options     *Options
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

	underway *groupCycle // the cycle in this step; nil: none
	// asked holds, by the group's UID, the condition in a patch that the API does not show
	// yet.
	asked map[types.UID]object.GroupCondition
}

// groupTry is one try to place the pods of a group in one placement, with its results.
type groupTry struct {
	placement *framework.Placement // nil: all nodes
	members   []*groupMember       // in the order in which they are tried
	// status is why the group does not fit; nil if it fits.
	status *decision.Status
	// preempts is set if the group fits once victims are gone.
	preempts bool
	// answers holds what Permit plugins decided about other pods, in order. It takes
	// effect when the group is decided.
	answers []permitAnswer
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

// permitAnswer is a Permit plugin's result that allows or rejects pods that it held before.
type permitAnswer struct {
	plugin string
	answer framework.PermitResult
}

// groupMember is a pod of a group that is being scheduled, with the result of the last try
// to place the group.
type groupMember struct {
	*attempt
	// row is the node that was found for the pod; it is valid if fits or preempts is set.
	row table.Row
	// fits is set if the pod fits on the row now; preempts if the victims of plan must
	// leave first. If neither is set, failed or the record holds the reason.
	fits, preempts bool
	plan           *preemptionPlan
	failed         *decision.Status
	// permit is the status of the last Permit plugin that holds the pod; nil: none does.
	permit *decision.Status
	// nomination is how the pod's nomination changes if it does not fit.
	nomination nominating
	// waits is set if the attempt waits for a PostFilter plugin.
	waits bool

	cycle  *groupCycle
	placed bool   // the pod is assumed for the try
	kept   string // the pod's nomination before the cycle; "" for none
}

// preemptionPlan is the result of a PostFilter plugin that nominates a node and names
// victims.
type preemptionPlan struct {
	plugin string
	result framework.PostFilterResult
}

var (
	errExtendersForGroup   = errors.New("an extender has a say about the pod, and none is called for pods of a group")
	errGroupUnschedulable  = errors.New("pod group is unschedulable")
	waitsForPreemption     = "pod group is waiting for preemption to complete"
	permitPluginsHoldIt    = "one or more plugins asked to wait and no plugin rejected pod"
	groupIsUnschedulable   = decision.Status{Code: decision.Unschedulable, Err: errGroupUnschedulable}
	groupWaitsOnPreemption = decision.Status{Code: decision.Unschedulable, Err: errGroupUnschedulable, Reasons: []string{waitsForPreemption}}
)

// triesPlacements reports whether several placements of the group are being tried. c may be
// nil, which means no group.
func (c *groupCycle) triesPlacements() bool { return c != nil && c.placements > 1 }

// named returns the PodGroup of this name; nil if there is none.
func (l *podGroups) named(name types.NamespacedName) *object.PodGroup {
	return table.Lookup[*object.PodGroup](l.table, object.PodGroups, name.Namespace, name.Name)
}

// scheduleGroup runs the scheduling cycle of the pod group of first, which was popped
// from the queue, for all its pending pods.
func (l *podGroups) scheduleGroup(first *podState) {
	c := l.gatherGroup(first)
	if err := c.oneProfile(); err != nil {
		for _, mb := range c.members {
			l.bindings.fail(mb.attempt, &decision.Status{Code: decision.Error, Err: err})
		}
		return
	}
	c.members = slices.DeleteFunc(c.members, func(mb *groupMember) bool {
		if mb.pod.Terminating {
			l.attempts.skip(mb.state)
		}
		return mb.pod.Terminating
	})
	if len(c.members) == 0 {
		return
	}
	l.overcommits.counting = true
	l.underway = c
	l.decideGroup(c)
	l.preemptForGroup(c) // grouppreemption.go
	l.underway, c.decided = nil, true
	for _, s := range c.answers {
		l.bindings.permitOthers(s.plugin, s.answer)
	}
	l.submitGroup(c)
}

// decideGroup finds nodes for the pods of the group. The results are left in c; nothing
// stays assumed.
func (l *podGroups) decideGroup(c *groupCycle) {
	if l.options.GroupPlacements {
		l.tryPlacements(c) // placement.go
		return
	}
	l.tryGroup(c)
	l.undoGroup(c)
}

// gatherGroup pops the group's other pods from the queue, except for gated ones, and
// returns the cycle. Its pods are sorted by priority, then by when they first became
// active.
func (l *podGroups) gatherGroup(first *podState) *groupCycle {
	c := &groupCycle{name: first.entry.Pod.GroupKey(), profile: first.request.Profile}
	states := []*podState{first}
	for uid := range l.table.Groups().Named(c.name).Unscheduled() {
		if ps := l.pods.byUID[uid]; ps != first && ps.entry != nil && l.queue.PopThat(l.now, ps.entry) {
			states = append(states, ps)
		}
	}
	slices.SortStableFunc(states, func(a, b *podState) int {
		return cmp.Or(cmp.Compare(b.entry.Pod.Priority, a.entry.Pod.Priority), a.entry.FirstActive.Compare(b.entry.FirstActive),
			cmp.Compare(a.entry.Sequence, b.entry.Sequence))
	})
	for _, ps := range states {
		c.members = append(c.members, l.newMember(c, ps, l.table.Live()))
	}
	return c
}

// newMember starts an attempt for a pod of a group; nodes is the number of nodes in its
// record.
func (l *podGroups) newMember(c *groupCycle, ps *podState, nodes int) *groupMember {
	mb := &groupMember{attempt: l.attempts.start(ps), cycle: c, kept: ps.entry.NominatedNode()}
	mb.group = mb
	mb.record.NodesTotal = nodes
	return mb
}

// oneProfile returns an error if pods of the group name different schedulers.
func (c *groupCycle) oneProfile() error {
	want := c.members[0].pod.SchedulerName
	for _, mb := range c.members {
		if got := mb.pod.SchedulerName; got != want {
			return fmt.Errorf("all pods in a single pod group should have the same .spec.schedulerName set, got: %q and %q", want, got)
		}
	}
	return nil
}

// tryGroup decides on the pods one after the other and assumes each before the next.
// c.status is nil afterwards if the group fits: at least one pod fits and is not held
// by Permit. An error of one pod ends the try.
//
// A nomination of a pod of the group counts for that pod alone. It is where the pod was
// assumed in an earlier cycle, one pod after the other; so these nodes are tried again.
func (l *podGroups) tryGroup(c *groupCycle) {
	c.status = &groupIsUnschedulable
	l.nominateMembers(c, func(*groupMember) string { return "" })
	preempts := false
	for _, mb := range c.members {
		l.nominateMember(mb, mb.kept)
		if err := l.guard.run("scheduling cycle", "", func() { l.tryMember(c, mb) }); err != nil {
			mb.fits, mb.preempts, mb.failed = false, false, &decision.Status{Code: decision.Error, Err: err}
		}
		l.nominateMember(mb, "")
		if mb.failed != nil && !mb.failed.Code.Rejects() {
			c.status = decision.Failed("failed to schedule other pod from a pod group: %w", mb.failed.Err)
			c.preempts = false
			return
		}
		if !mb.fits && !mb.preempts {
			continue
		}
		preempts = preempts || mb.preempts
		switch {
		case mb.permit != nil:
		case preempts:
			c.status, c.preempts = &groupWaitsOnPreemption, true
		default:
			c.status = nil
		}
	}
}

// tryMember decides on the pod, and assumes it if it fits or a preemption would make it
// fit.
func (l *podGroups) tryMember(c *groupCycle, mb *groupMember) {
	a := mb.attempt
	if mb.failed = l.scheduling.cannotTry(a); mb.failed != nil {
		return
	}
	if l.extenders.of(a.pod) != nil {
		mb.failed = &decision.Status{Code: decision.Error, Err: errExtendersForGroup}
		return
	}
	o := l.engine.DecideWithin(c.rows(), a.request, l.nominations)
	l.attempts.stepDone(c, "Computing predicates and prioritizing done")
	if o.Row < 0 && (o.Rejected == nil || o.Rejected.Code.Rejects()) {
		l.attempts.recordRejection(a, o)
		if c.trial {
			return
		}
		mb.nomination, mb.waits = l.scheduling.runPostFilter(a, o, 0, nominating{keep: true}, nil)
		l.attempts.stepDone(c, "Running PostFilter plugins done")
		if mb.plan == nil {
			return
		}
		mb.row, mb.preempts = l.table.Find(mb.plan.result.NominatedNodeName)
	} else {
		l.attempts.recordNodes(a, o)
		if mb.failed = o.Rejected; mb.failed != nil {
			return
		}
		a.record.Score, a.record.Ties = o.Score, o.Ties
		mb.row, mb.fits = o.Row, true
		l.engine.Reuse(o)
	}
	if mb.fits || mb.preempts {
		l.tryAssume(c, mb)
	}
	l.attempts.stepDone(c, "Reserving and permitting done")
}

// tryAssume assumes the pod until undoGroup and runs Reserve and Permit plugins. If one
// rejects the pod, that is undone at once.
func (l *podGroups) tryAssume(c *groupCycle, mb *groupMember) {
	b := mb.binding
	b.attempt, b.row, b.node = mb.attempt, mb.row, l.table.Name(mb.row)
	mb.placed = true // first: after a panic in between it is removed
	l.table.Place(mb.pod, mb.row)
	l.showTry(mb)
	s := l.bindings.reserve(b.profile, b.pod, b.node)
	if s == nil {
		s = l.bindings.askPermit(b, func(plugin string, out framework.PermitResult) {
			if len(out.Allow)+len(out.Reject) > 0 {
				c.answers = append(c.answers, permitAnswer{plugin, out})
			}
			if out.Status != nil && out.Status.Code == decision.Wait {
				mb.permit = out.Status
			}
		})
	}
	switch {
	case s != nil:
		mb.fits, mb.preempts, mb.failed, mb.permit = false, false, s, nil
		l.undoMember(mb)
	case mb.permit != nil:
		held := *mb.permit
		held.Reasons = append(slices.Clip(held.Reasons), permitPluginsHoldIt)
		mb.permit = &held
	}
}

// undoGroup undoes the try of the group, the last pod first, and restores the nominations.
func (l *podGroups) undoGroup(c *groupCycle) {
	for _, mb := range slices.Backward(c.members) {
		l.undoMember(mb)
	}
	l.nominateMembers(c, func(mb *groupMember) string { return mb.kept })
}

// nominateMembers sets each pod's nomination in the queue to the node that node returns.
func (l *podGroups) nominateMembers(c *groupCycle, node func(*groupMember) string) {
	for _, mb := range c.members {
		l.nominateMember(mb, node(mb))
	}
}

// nominateMember sets the pod's nomination in the queue; "" ends it. It sends no event.
func (l *podGroups) nominateMember(mb *groupMember, node string) {
	if e := mb.state.entry; e != nil && e.NominatedNode() != node {
		l.queue.Nominate(e, node)
	}
}

// undoMember undoes tryAssume, if that was not done yet: it runs Unreserve and removes
// the pod from its node.
func (l *podGroups) undoMember(mb *groupMember) {
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
	if !l.options.PodGroups {
		return
	}
	l.table.CountGroups()
	for _, ps := range l.pods.sorted() {
		if l.pods.byName[ps.pod.NamespacedName()] == ps && ps.goneByRead == nil {
			l.table.Groups().Join(ps.pod)
		}
	}
}

// verify returns an error if a known pod is not listed in its group, or a cycle has not
// ended.
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
