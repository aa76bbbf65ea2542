package fix

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/decode"
)

// highest is the highest priority that users may give.
const highest = 1000000000

// mostClasses bounds the priority classes that are tried.
const mostClasses = 4

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
	raised := func(level int32, class string) []edit {
		return join(s.base, append([]edit{s.raised(level, class)}, policy...))
	}
	aClass := func(from int32) bool {
		return slices.ContainsFunc(s.classesFrom(from), func(c *schedulingv1.PriorityClass) bool { return s.consider(raised(c.Value, c.Name)) })
	}
	works := func(i int) bool { return s.try(raised(levels[i], "")).ok }
	if len(levels) == 0 || !works(len(levels)-1) {
		if len(policy) == 0 || !s.consider(join(s.base, policy)) {
			aClass(highest + 1)
		}
		return
	}
	low := 0
	if !works(0) {
		low = int(bisect(0, int64(len(levels)-1), func(i int64) bool { return !works(int(i)) })) + 1
	}
	if !aClass(levels[low]) {
		s.consider(raised(levels[low], ""))
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

// classesFrom returns the first classes by value that have at least that priority, whose pods
// preempt, and that the pod may have and has no higher priority than.
func (s *search) classesFrom(level int32) (all []*schedulingv1.PriorityClass) {
	for _, c := range s.set.PriorityClasses() {
		never := c.PreemptionPolicy != nil && *c.PreemptionPolicy == v1.PreemptNever
		if c.Value >= level && c.Value <= highest && !never {
			all = append(all, c)
		}
	}
	for _, c := range decode.SystemPriorityClasses() {
		if c.Value > s.pod.Priority && s.suits(c) {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *schedulingv1.PriorityClass) int { return cmp.Compare(a.Value, b.Value) })
	return all[:min(mostClasses, len(all))]
}

// suits reports whether the class of the system is one for the pod: every pod of kube-system, and a
// DaemonSet's where a pod of its namespace has the class. Providers refuse it elsewhere.
func (s *search) suits(c *schedulingv1.PriorityClass) bool {
	if s.api.Namespace == metav1.NamespaceSystem {
		return true
	}
	if s.pod.Controller.Replacement != object.SameNode {
		return false
	}
	for _, r := range s.table.All() {
		for _, p := range s.podsOn(r) {
			if p.Namespace == s.api.Namespace && p.Priority == c.Value {
				return true
			}
		}
	}
	return false
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
