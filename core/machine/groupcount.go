package machine

import (
	"bytes"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/framework"
)

// How many equal pods fit beside each other follows from what the filters say of the first,
// where they answer by the node alone: each node takes so many. So a group of equal pods that
// does not fit is counted and not tried. One that fits is tried all the same: a try finds the
// nodes, and nothing of it stays if it fails on its way.

// groupCount is how many pods of a group that does not fit were counted to fit.
type groupCount struct {
	left int             // how many of the pods that fit were not taken so far
	full *engine.Outcome // the record of each pod that does not fit
}

// take records in mb, the next pod of the group, what was counted. The first pods fit, on nodes
// that are not known, until left is 0; take counts it down. The pods after them are rejected, with
// the outcome full.
func (n *groupCount) take(mb *groupMember, l *attempts) {
	mb.tried, mb.local = true, true
	if mb.fits = n.left > 0; mb.fits {
		mb.row = -1 // which of the nodes, only a try says
		n.left--
		return
	}
	l.recordRejection(mb.attempt, n.full)
}

// counting finds out whether the pods of a group need a try.
type counting struct {
	groups *podGroups
	cycle  *groupCycle
}

// count returns how many pods of the group fit, from the outcome o for first, the first of them. It
// returns nil if the group may fit, or if only a try can tell. o is changed if it returns a count.
func (n *counting) count(first *groupMember, o *engine.Outcome) *groupCount {
	members := n.cycle.members
	if first != members[0] || n.cycle.profile.Host != nil || n.mustListNodes() {
		return nil
	}
	fit, known := o.Capacity(len(members))
	if !known || fit == len(members) || n.enough(fit) || !n.oneDecidesAll() || !o.Fill(len(members)) {
		return nil
	}
	return &groupCount{fit, o}
}

// mustListNodes reports whether Options.Explain selects a pod of the group and this try writes its
// record. The record lists the verdict of every node beside the pods before it, which a count
// does not know.
func (n *counting) mustListNodes() bool {
	explain, c := n.groups.options.Explain, n.cycle
	return explain != nil && !c.trial && c.placements <= 1 &&
		slices.ContainsFunc(c.members, func(mb *groupMember) bool { return explain(mb.pod) })
}

// enough reports whether the group may be placed if fit of its waiting pods fit. It is true if a
// plugin fails: the try then says so.
func (n *counting) enough(fit int) bool {
	l, c := n.groups, n.cycle
	s := l.placementFeasible(c, framework.PlacementProgress{Tried: len(c.members), Scheduled: l.table.Groups().Named(c.name).Scheduled() + fit})
	return s == nil || s.Code == decision.Error
}

// oneDecidesAll reports whether the outcome for the first pod is valid for every pod of the group.
// That requires that the filters cannot tell the pods apart, that each pod can be decided on, and
// that no pod uses an extender or has claims that a plugin may deallocate.
func (n *counting) oneDecidesAll() bool {
	l := n.groups
	return equalPods(n.cycle.members) && !slices.ContainsFunc(n.cycle.members, func(mb *groupMember) bool {
		return l.scheduling.cannotTry(mb.attempt) != nil || l.extenders.of(mb.pod) != nil || n.mayDeallocate(mb)
	})
}

// mayDeallocate reports whether a plugin may deallocate claims for the pod (askDeallocate).
func (n *counting) mayDeallocate(mb *groupMember) bool {
	return len(mb.pod.Claims) > 0 || mb.pod.Demand.Requests.Scalars != nil &&
		slices.ContainsFunc(n.cycle.profile.PodGroupPostFilter, func(pl *framework.Plugin) bool {
			return pl.PodGroup.Deallocate != nil && pl.Remedy(n.groups.table, mb.pod) != framework.NoRemedy
		})
}

// equalPods reports whether the filters cannot tell the pods apart.
func equalPods(members []*groupMember) bool {
	first := members[0].pod.AppendTemplate(nil)
	var scratch []byte
	return !slices.ContainsFunc(members[1:], func(mb *groupMember) bool {
		scratch = mb.pod.AppendTemplate(scratch[:0])
		return !bytes.Equal(scratch, first)
	})
}
