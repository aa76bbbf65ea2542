package why

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/edge/workload"
)

// level is the priority of a workload's pods, and their class, "" where these differ.
type level struct {
	priority int32
	class    string
}

// levels are the priorities of workloads, and of those whose names differ in a number alone. nil
// stands where pods or workloads differ.
type levels struct {
	workloads map[Workload]*level
	stems     map[stem]*level
}

// levels returns the priorities that pods have. Where no pod of a workload is seen, its template
// counts if all classes are known: without them a template says nothing.
func (c *Cluster) levels() levels {
	all := levels{map[Workload]*level{}, map[stem]*level{}}
	for _, p := range c.Set.Pods {
		agree(all.workloads, c.makersOf(p.Namespace, p.Name, string(p.UID))[0], c.levelOf(p))
	}
	for _, o := range c.all() {
		w, _ := workload.Of(o)
		if _, seen := all.workloads[keyOf(o)]; w != nil && !seen && c.Set.Knows.Classes {
			all.workloads[keyOf(o)] = c.levelOf(&v1.Pod{Spec: w.Template.Spec})
		}
	}
	for w, l := range all.workloads { // any order: they agree or not
		agree(all.stems, stemOf(w), l)
	}
	return all
}

// agree records a level under the key: without a class if one of another class is there, nil if
// one of another priority is.
func agree[K comparable](in map[K]*level, key K, l *level) {
	known, is := in[key]
	switch {
	case !is:
	case known == nil || l == nil || known.priority != l.priority:
		l = nil
	case known.class != l.class:
		l = &level{priority: l.priority}
	}
	in[key] = l
}

// levelOf returns the priority of the pod, nil where its class is not known.
func (c *Cluster) levelOf(p *v1.Pod) *level {
	p = &v1.Pod{Spec: p.Spec}
	if c.Set.Priority(p) != nil {
		return nil
	}
	return &level{*p.Spec.Priority, p.Spec.PriorityClassName}
}

// of returns the priority of the workload, nil where it is not known. One that is gone has that of
// those whose names differ from its own in a number alone.
func (l levels) of(w Workload) *level {
	if known, is := l.workloads[w]; is {
		return known
	}
	return l.stems[stemOf(w)]
}

// rank sets the priorities of the pods that went and of those for which they went.
func (p *Preempted) rank(of Workload, levels levels) {
	if l := levels.of(of); l != nil {
		p.Priority = &l.priority
	}
	for w := range p.by { // any order: the highest counts, and its class if that is one
		l := levels.of(w)
		switch {
		case l == nil:
			p.partial = true
		case p.ByPriority == nil:
			p.ByPriority, p.ByClass = &l.priority, l.class
		case *p.ByPriority != l.priority:
			p.varied = true
			if *p.ByPriority < l.priority {
				p.ByPriority, p.ByClass = &l.priority, l.class
			}
		case p.ByClass != l.class:
			p.ByClass = ""
		}
	}
}

// priorityText says in brackets by which priority the pods were preempted, as far as that is known. It
// returns "" if none is known, or none above theirs.
func (p *Preempted) priorityText() string {
	if p.ByPriority == nil || p.Priority != nil && *p.ByPriority <= *p.Priority {
		return ""
	}
	text := fmt.Sprintf(" (priority %d", *p.ByPriority)
	if p.varied {
		text = fmt.Sprintf(" (priorities up to %d", *p.ByPriority)
	}
	if p.partial {
		text += " as far as known"
	}
	if p.ByClass != "" {
		text += ", class " + p.ByClass
	}
	if p.Priority != nil {
		text += fmt.Sprintf(", against %d", *p.Priority)
	}
	return text + ")"
}
