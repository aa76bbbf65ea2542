package machine

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/table"
)

// GroupTopology returns a text for people: in which domains of its profile's tree a pod group is to
// be, where its pods are, and where those that wait would be placed now, or how many fit in the
// best domain. Nothing is placed. It is "" for a group that is not placed by the tree. The error is
// why the group cannot be tried at all, or a plugin's panic.
func (q *Assessor) GroupTopology(name types.NamespacedName) (text string, err error) {
	if q.groups.table.Groups() == nil {
		return "", nil
	}
	if panicked := q.guard.run("scheduling cycle", "", func() { text, err = topologyText(q.groups, name) }); panicked != nil {
		return "", panicked
	}
	return text, err
}

// TreeHolds returns, for a group that is placed by its profile's tree and does not fit, how many of
// its waiting pods fit together in the best domain: 0 if the group has a fault. short is false if
// the group fits, is not placed by the tree, or cannot be tried.
func (q *Assessor) TreeHolds(name types.NamespacedName) (pods int, short bool) {
	if q.groups.table.Groups() == nil {
		return 0, false
	}
	panicked := q.guard.run("scheduling cycle", "", func() {
		l := q.groups
		c := newAssessment(l, name)
		if len(c.members) == 0 || c.group == nil {
			return
		}
		of, fault := levelsOf(l.options, c.profile, c.group)
		switch {
		case of.levels == nil || l.validate(c) != nil:
			return
		case fault == "":
			newDomainSearch(l, c, of).run()
		}
		pods, short = c.fitting(), fault != "" || c.status != nil
	})
	return pods, short && panicked == nil
}

// topologyText implements GroupTopology. It may panic with a plugin.
func topologyText(l *podGroups, name types.NamespacedName) (string, error) {
	c := newAssessment(l, name)
	for uid := range l.table.Groups().Named(name).Placed() {
		if c.profile == nil {
			c.profile, c.group = l.profiles[l.table.Pod(uid).Pod.SchedulerName], table.PodGroup(l.table, name)
		}
	}
	if c.profile == nil || c.group == nil {
		return "", nil
	}
	of, fault := levelsOf(l.options, c.profile, c.group)
	if of.levels == nil {
		return "", nil
	}
	if fault != "" {
		return fault, nil
	}
	s := &domainSearch{podGroups: l, levelRange: of, cycle: c}
	parts := []string{of.wish()}
	if s.scheduled() > 0 {
		parts = append(parts, s.placedText())
	}
	if len(c.members) > 0 {
		if err := l.validate(c); err != nil {
			return "", err
		}
		newDomainSearch(l, c, of).run()
		switch {
		case c.status != nil:
			parts = append(parts, explain.Status(c.status))
		case c.placement == nil:
			parts = append(parts, fmt.Sprintf("%d that wait fit in the whole cluster now", c.fitting()))
		default:
			parts = append(parts, fmt.Sprintf("%d that wait fit in %s now", c.fitting(), c.placement.Name))
		}
	}
	return strings.Join(parts, "; "), nil
}

// wish returns a text that says at which levels the group must be, and is to be if possible.
func (r levelRange) wish() string {
	switch narrowest := r.name(r.narrowest); r.widest {
	case wholeCluster:
		return fmt.Sprintf("its pods are to be in one %s if possible", narrowest)
	case r.narrowest:
		return fmt.Sprintf("its pods must be in one %s", narrowest)
	default:
		return fmt.Sprintf("its pods must be in one %s, and in one %s if possible", r.name(r.widest), narrowest)
	}
}

// placedText returns a text that says in which domain the placed pods of the group are: the
// narrowest that has all.
func (s *domainSearch) placedText() string {
	n := s.scheduled()
	for level := len(s.levels) - 1; level >= 0; level-- {
		paths := map[string]bool{}
		for uid := range s.table.Groups().Named(s.cycle.name).Placed() {
			path, _ := s.pathOf(s.table.Node(s.table.Pod(uid).Row), level)
			paths[path] = true
		}
		for path := range paths { // any order: there is one
			if len(paths) == 1 && path != "" {
				return fmt.Sprintf("%d are in %s %s", n, s.name(level), path)
			}
		}
	}
	return fmt.Sprintf("%d are in more than one %s", n, s.name(0))
}
