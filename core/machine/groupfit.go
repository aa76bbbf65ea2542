package machine

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
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

// AssessGroup returns, for each placement of the pod group, how many of its pods fit there
// now, without placing them: none if no pod waits. Of many placements it tries those that a
// first attempt would. The error is why the group cannot be tried at all, or a plugin's panic.
func (q *Assessor) AssessGroup(name types.NamespacedName) (fits []GroupFit, err error) {
	if panicked := q.guard.run("scheduling cycle", "", func() { fits, err = q.groups.assess(name) }); panicked != nil {
		return nil, panicked
	}
	return fits, err
}

// assess implements AssessGroup.
func (l *podGroups) assess(name types.NamespacedName) ([]GroupFit, error) {
	c := &groupCycle{name: name, group: lookUpPodGroup(l.table, name), trial: true}
	for uid := range l.table.Groups().Named(name).Unscheduled() {
		if ps := l.pods.byUID[uid]; ps.entry != nil && !ps.pod.Terminating {
			c.members = append(c.members, l.newMember(ps, l.table.Live()))
		}
	}
	if len(c.members) == 0 {
		return nil, nil
	}
	c.profile = c.members[0].profile
	if err := l.validate(c); err != nil {
		return nil, err
	}
	if !l.options.GroupPlacements {
		return []GroupFit{l.fitIn(c, nil)}, nil
	}
	placements, status := l.generatePlacements(c)
	if status != nil {
		return nil, errorOf(status)
	}
	var fits []GroupFit
	for _, p := range window(placements, len(c.members), 1) {
		fits = append(fits, l.fitIn(c, &p))
	}
	return fits, nil
}

// fitIn returns how many pods of the group fit in a placement, nil for all nodes. It leaves
// nothing assumed.
func (l *podGroups) fitIn(c *groupCycle, p *framework.Placement) GroupFit {
	c.groupTry = l.newTry(c, p)
	fit := GroupFit{Nodes: l.table.Live()}
	if p != nil {
		fit.Placement, fit.Nodes = p.Name, len(p.Rows)
	}
	for _, mb := range c.members {
		l.nominateMember(mb, "")
	}
	for _, mb := range c.members {
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
	fit.Scheduled = l.table.Groups().Named(c.name).Scheduled()
	fit.Feasible = l.placementFeasible(c, framework.PlacementProgress{Scheduled: fit.Scheduled}) == nil
	l.undoGroup(c)
	return fit
}
