package conform

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/lab/oracle"
	"github.com/berth-scheduler/berth/sim/generate"
	"github.com/berth-scheduler/berth/sim/scenario"
)

// Print writes a disagreement as a story (scenarios/README.md) that expects
// what kube-scheduler says; what Berth says instead stands beside it as
// comments. Earlier steps tell no more than how they ended.
func Print(out io.Writer, d *Disagreement) error {
	_, err := io.WriteString(out, tell(d, false))
	return err
}

// tell is the story of a disagreement, if wanted with every step in full.
func tell(d *Disagreement, detailed bool) string {
	s := story{changed: map[string]bool{}, ending: map[string]bool{}, runs: map[string]bool{}}
	for _, c := range d.World.Changes {
		if c.Pod != nil && c.Verb == generate.Update {
			s.changed[key(c.Pod)] = true
		}
	}
	s.comment("mix %s, seed %d: Berth is to say what kube-scheduler says.", d.World.Mix, d.World.Seed)
	for _, diff := range d.Diffs {
		s.comment("%s", diff)
	}
	if strings.Contains(d.World.Config, generate.ExtenderAddress) {
		s.comment("Played as a story no extender is asked: it shows what happened, and is red.")
	}
	s.cluster(d.World)
	for i, step := range d.Steps {
		switch last := i == len(d.Steps)-1; {
		case step.Order != nil:
			s.order(d.World, step)
		case step.Change != nil:
			s.change(step, last)
		default:
			s.decide(step, last, last || detailed)
		}
	}
	return s.String()
}

// story writes steps as directives. It knows which of the pods are there when
// the story is played.
type story struct {
	strings.Builder
	// changed pods keep their UID through the story: they are written as YAML.
	changed map[string]bool
	// ending pods are on their way out from the start: nobody evicts them.
	ending  map[string]bool
	waiting []*v1.Pod
	runs    map[string]bool
}

func (s *story) line(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

func (s *story) comment(format string, args ...any) {
	s.line("# %s", strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))
}

func (s *story) cluster(w generate.World) {
	if len(w.Gates) > 0 {
		s.WriteString("gates")
		for _, name := range slices.Sorted(maps.Keys(w.Gates)) {
			fmt.Fprintf(s, " %s=%t", name, w.Gates[name])
		}
		s.WriteString("\n")
	}
	if w.Config != "" {
		s.WriteString("config\n" + scenario.Block(w.Config))
	}
	for _, n := range w.Nodes {
		s.WriteString(scenario.WriteNode(bare(n)))
	}
	for _, b := range w.Budgets {
		s.WriteString(scenario.WriteObject(b))
	}
	for _, n := range w.Namespaces {
		s.WriteString(scenario.WriteObject(n))
	}
	for _, f := range w.SelectorOwners {
		s.WriteString(scenario.WriteObject(f))
	}
	for _, o := range w.Objects {
		s.WriteString(scenario.WriteObject(o))
	}
	for _, p := range w.Bound {
		s.pod(p)
	}
}

// bare is the node without its capacity, which no scheduler looks at.
func bare(n *v1.Node) *v1.Node {
	n = n.DeepCopy()
	n.Status.Capacity = nil
	return n
}

// pod has the pod come, bound or to be decided.
func (s *story) pod(p *v1.Pod) {
	s.ending[key(p)] = p.DeletionTimestamp != nil
	if p.Spec.NodeName != "" {
		s.runs[key(p)] = true
	} else {
		s.waiting = append(s.waiting, p)
	}
	if s.changed[key(p)] {
		s.WriteString(scenario.WriteObject(p))
		return
	}
	s.WriteString(scenario.WritePod(p))
}

// gone has the pod go if it is there.
func (s *story) gone(p *v1.Pod) {
	if !s.there(p) {
		return
	}
	s.line("delete pod %s", key(p))
	delete(s.runs, key(p))
	s.waiting = slices.DeleteFunc(s.waiting, func(w *v1.Pod) bool { return w.UID == p.UID })
}

func (s *story) there(p *v1.Pod) bool {
	return s.runs[key(p)] || slices.ContainsFunc(s.waiting, func(w *v1.Pod) bool { return w.UID == p.UID })
}

// clear has all go that wait: who is tried again comes as new.
func (s *story) clear() {
	for len(s.waiting) > 0 {
		s.gone(s.waiting[0])
	}
}

// order has all pods come before the first is decided.
func (s *story) order(w generate.World, step Step) {
	for _, p := range w.Pending {
		if slices.Contains(step.Order, p) {
			s.pod(p)
			s.line("pause 1s")
		}
	}
	s.line("%s", strings.TrimSpace(strings.Repeat("cycle\n", len(step.Order))))
	s.line("expect decided %s", keys(step.Order))
	s.comment("Berth: %s", keys(step.GotOrder))
}

// key is how a story names a pod.
func key(p *v1.Pod) string {
	return strings.TrimPrefix(p.Namespace+"/"+p.Name, v1.NamespaceDefault+"/")
}

func keys(pods []*v1.Pod) string {
	var all []string
	for _, p := range pods {
		all = append(all, key(p))
	}
	return strings.Join(all, " ")
}

func (s *story) change(step Step, last bool) {
	c := *step.Change
	switch {
	case c.Node != nil && c.Verb == generate.Delete:
		s.line("delete node %s", c.Node.Name)
	case c.Node != nil && c.Verb == generate.Add:
		s.WriteString(scenario.WriteNode(bare(c.Node)))
	case c.Node != nil:
		s.WriteString(scenario.WriteObject(bare(c.Node)))
	case c.Namespace != nil:
		s.WriteString(scenario.WriteObject(c.Namespace))
	case c.Other != nil && c.Verb == generate.Delete:
		s.line("delete %s %s", reflect.TypeOf(c.Other).Elem().Name(), strings.TrimPrefix(c.Other.GetNamespace()+"/"+c.Other.GetName(), "/"))
	case c.Other != nil:
		s.WriteString(scenario.WriteObject(c.Other))
	case c.Verb == generate.Delete:
		s.gone(c.Pod)
	case s.there(c.Pod):
		s.WriteString(scenario.WriteObject(c.Pod))
	}
	for _, p := range step.Requeued {
		s.line("expect %s in active|backoff|error backoff", key(p))
	}
	if !last {
		s.clear()
	}
}

// decide tells an attempt. Before the last step, a choice among equals is made
// for the story: what follows depends on it.
func (s *story) decide(step Step, last, full bool) {
	equals := max(len(step.Want.Best), len(step.Want.Plans)) > 1
	// Were it to come and go, those who wait would be requeued, and what it wrote
	// would stay.
	if !last && equals && (step.Placed == nil || len(s.waiting) > 0 || len(step.Written) > 0) {
		s.comment("%s is decided here, among equals", key(step.Pod))
		s.chosen(step)
		return
	}
	s.pod(step.Pod)
	if step.Want.Result != oracle.Gated {
		s.line("cycle")
	}
	s.expect(step, full)
	switch {
	case last:
	case step.Placed != nil && !equals:
		s.waiting = s.waiting[:len(s.waiting)-1]
		s.runs[key(step.Pod)] = true
		s.written(step)
	case step.Placed != nil:
		s.gone(step.Pod)
		s.chosen(step)
	case step.Want.Result == oracle.Preempting:
		for _, victim := range step.Got.Victims {
			victim = strings.TrimPrefix(victim, v1.NamespaceDefault+"/")
			if delete(s.runs, victim); s.ending[victim] {
				s.line("delete pod %s", victim)
			}
		}
		s.clear()
	default:
		s.written(step)
	}
}

// written has the objects be as Berth's writes left them. Those who wait would
// be requeued; they go, as nothing more is asked about them.
func (s *story) written(step Step) {
	if len(step.Written) > 0 {
		s.clear()
	}
	for _, o := range step.Written {
		s.WriteString(scenario.WriteObject(o))
	}
}

// chosen does what the decision came to.
func (s *story) chosen(step Step) {
	s.written(step)
	if step.Placed != nil {
		s.pod(step.Placed)
		return
	}
	for _, victim := range step.Got.Victims {
		victim = strings.TrimPrefix(victim, v1.NamespaceDefault+"/")
		s.line("delete pod %s", victim)
		delete(s.runs, victim)
	}
	s.clear()
}
