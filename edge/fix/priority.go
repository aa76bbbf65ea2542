package fix

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/berth-scheduler/berth/core/table"
)

// highest is the highest priority that users may give.
const highest = 1000000000

// priorities looks for the lowest priority at which the pod would preempt.
func (s *search) priorities() {
	was := s.evicting
	s.evicting = true
	defer func() { s.evicting = was }()
	var levels []int32
	for _, r := range s.table.All() {
		levels = s.appendLevels(levels, r)
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	policy := s.mayPreempt()
	works := func(i int) bool { return s.try(join(s.base, append([]edit{s.raised(levels[i], "")}, policy...))).ok }
	if len(levels) == 0 || !works(len(levels)-1) {
		if len(policy) > 0 {
			s.consider(join(s.base, policy))
		}
		return
	}
	low := 0
	if !works(0) {
		low = int(bisect(0, int64(len(levels)-1), func(i int64) bool { return !works(int(i)) })) + 1
	}
	level, name := levels[low], ""
	if c := s.classFor(level); c != nil {
		level, name = c.Value, c.Name
	}
	if !s.consider(join(s.base, append([]edit{s.raised(level, name)}, policy...))) {
		s.consider(join(s.base, append([]edit{s.raised(levels[low], "")}, policy...)))
	}
}

// appendLevels adds what is just above the priorities of the row's pods.
func (s *search) appendLevels(levels []int32, r table.Row) []int32 {
	for _, p := range s.podsOn(r) {
		if p.Priority >= s.pod.Priority && p.Priority < highest {
			levels = append(levels, p.Priority+1)
		}
	}
	return levels
}

// classFor is the lowest priority class of at least that level.
func (s *search) classFor(level int32) (lowest *schedulingv1.PriorityClass) {
	for _, c := range s.set.PriorityClasses() {
		never := c.PreemptionPolicy != nil && *c.PreemptionPolicy == v1.PreemptNever
		if c.Value >= level && c.Value <= highest && !never && (lowest == nil || c.Value < lowest.Value) {
			lowest = c
		}
	}
	return lowest
}

func (s *search) raised(level int32, class string) edit {
	e := edit{kind: raisePriority, say: fmt.Sprintf("raise the priority from %d to %d", s.pod.Priority, level),
		ops: []Op{{Op: "add", Path: "/spec/priority", Value: level}}}
	switch {
	case class != "":
		e.say += fmt.Sprintf(" (PriorityClass %s)", class)
		e.ops = append(e.ops, Op{Op: "add", Path: "/spec/priorityClassName", Value: class})
	case s.spec.PriorityClassName != "":
		e.ops = append(e.ops, Op{Op: "remove", Path: "/spec/priorityClassName"})
	}
	return e
}

// mayPreempt lets a pod preempt that may not.
func (s *search) mayPreempt() []edit {
	if !s.pod.NeverPreempts {
		return nil
	}
	return []edit{{kind: raisePriority, say: "let the pod preempt others (preemptionPolicy)",
		ops: []Op{{Op: "add", Path: "/spec/preemptionPolicy", Value: string(v1.PreemptLowerPriority)}}}}
}
