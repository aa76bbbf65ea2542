package machine

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// GroupFit is how many pods of a pod group have a node in one placement.
type GroupFit struct {
	Placement string // its name; "" for all nodes
	Nodes     int    // how many nodes it has
	// Scheduled is how many pods have a node: those that are placed, and those that fit here
	// beside each other.
	Scheduled int
	// Feasible is set if the group meets its constraints with these pods.
	Feasible bool
	// Message is why the first pod without a node has none, "" if each has one.
	Message string
}

// AssessGroup returns, for each placement of the pod group, how many of its pods fit there now,
// without placing them. It returns none if no pod waits. Of many placements it tries those that a
// first attempt would. It asks proceed before each pod, and leaves out a placement if that returns
// false. For a group that is placed by the tree of its profile (GroupTopology) it returns one
// domain: the one that a first attempt would choose, or report. The error is why the group cannot
// be tried at all, or a plugin's panic.
func (q *Assessor) AssessGroup(name types.NamespacedName, proceed func() bool) (fits []GroupFit, err error) {
	if panicked := q.guard.run("scheduling cycle", "", func() { fits, err = q.groups.assess(name, proceed) }); panicked != nil {
		return nil, panicked
	}
	return fits, err
}

// assess implements AssessGroup.
func (l *podGroups) assess(name types.NamespacedName, proceed func() bool) (fits []GroupFit, err error) {
	c := newAssessment(l, name)
	if len(c.members) == 0 {
		return nil, nil
	}
	if err := l.validate(c); err != nil {
		return nil, err
	}
	placements := []*framework.Placement{nil}
	switch of, _ := levelsOf(l.options, c.profile, c.group); {
	case c.group.Fault != "":
		return nil, errors.New(c.group.Fault)
	case of.levels != nil:
		newDomainSearch(l, c, of).run()
		placements = []*framework.Placement{c.placement}
	case l.options.GroupPlacements:
		generated, status := l.generatePlacements(c)
		if status != nil {
			return nil, errorOf(status)
		}
		placements = placements[:0]
		for _, p := range window(generated, len(c.members), 1) {
			placements = append(placements, &p)
		}
	}
	for _, p := range placements {
		if fit, whole := l.fitIn(c, p, proceed); whole {
			fits = append(fits, fit)
		}
	}
	return fits, nil
}

// GroupFault returns what is wrong with the pod group, so that no pod of it is placed; "" for
// nothing, and for a group that does not exist. If a plugin panics, it returns the panic's text.
func (q *Assessor) GroupFault(name types.NamespacedName) (fault string) {
	if q.groups.table.Groups() == nil {
		return ""
	}
	panicked := q.guard.run("scheduling cycle", "", func() {
		g := table.PodGroup(q.groups.table, name)
		if c := newAssessment(q.groups, name); c.group != nil {
			g = c.group // with what its profile lacks
		}
		if g != nil {
			fault = g.Fault
		}
	})
	if panicked != nil {
		return panicked.Error()
	}
	return fault
}

// newAssessment returns a cycle of the group's pods that wait, to be tried and not carried out. It
// has neither profile nor group if none waits, and no group if there is no such PodGroup.
func newAssessment(l *podGroups, name types.NamespacedName) *groupCycle {
	c := &groupCycle{name: name, trial: true}
	for uid := range l.table.Groups().Named(name).Unscheduled() {
		if ps := l.pods.byUID[uid]; ps != nil && ps.entry != nil && !ps.pod.Terminating {
			c.members = append(c.members, l.newMember(ps, l.table.Live()))
		}
	}
	if len(c.members) > 0 {
		c.profile = c.members[0].profile
		c.group = l.groupOf(c)
	}
	return c
}

// fitIn tries the group in a placement, nil for all nodes, and returns how many of its pods fit. It
// leaves nothing assumed. whole is false if proceed, asked before each pod, returned false.
func (l *podGroups) fitIn(c *groupCycle, p *framework.Placement, proceed func() bool) (fit GroupFit, whole bool) {
	c.groupTry = l.newTry(c, p)
	defer l.undoGroup(c)
	fit.Nodes = l.table.Live()
	if p != nil {
		fit.Placement, fit.Nodes = p.Name, len(p.Rows)
	}
	placed := l.table.Groups().Named(c.name).Scheduled()
	for _, mb := range c.members {
		l.nominateMember(mb, "")
	}
	for _, mb := range c.members {
		if !proceed() {
			return fit, false
		}
		l.nominateMember(mb, mb.kept)
		l.tryMember(c, mb)
		l.nominateMember(mb, "")
		switch {
		case mb.fits || fit.Message != "":
		case mb.failed != nil:
			fit.Message = explain.Status(mb.failed)
		default:
			fit.Message = explain.Message(mb.record)
		}
	}
	fit.Scheduled = placed + c.fitting()
	fit.Feasible = l.placementFeasible(c, framework.PlacementProgress{Scheduled: fit.Scheduled}) == nil
	return fit, true
}
