package why

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/workload"
)

// mostPreempted bounds the workloads that are listed as preempted.
const mostPreempted = 5

// Preempted is a workload whose pods made room for others lately, as far as events and conditions
// say so.
type Preempted struct {
	// Workload is kind/namespace/name, or pods/namespace/NAME-* where only names of pods are known;
	// pod/namespace/name for one that no controller made.
	Workload string `json:"workload"`
	Pods     int    `json:"pods"`
	// By are those for which they went, as Workload; NAME* where the names differ in a number.
	By []string `json:"by"`
	// Priority is that of its pods, and ByPriority is the highest of By, as far as pods and templates
	// show them. ByClass is the class of all that are known to have it, "" where there is no such.
	Priority   *int32     `json:"priority,omitempty"`
	ByPriority *int32     `json:"byPriority,omitempty"`
	ByClass    string     `json:"byClass,omitempty"`
	First      *time.Time `json:"first"`
	Last       *time.Time `json:"last"`

	victims map[string]bool // by UID or else by name
	by      map[Workload]bool
	varied  bool // the priorities of By that are known differ
	partial bool // some are not known
}

// preempted lists the workloads of the scope that were preempted, the most pods first. Labels of
// pods that are gone are not known: with a selector none are listed.
func (c *Cluster) preempted(scope *Scope) (all []Preempted) {
	if scope.Selector != nil && !scope.Selector.Empty() {
		return nil
	}
	found := map[Workload]*Preempted{}
	take := func(namespace, name, uid string, at time.Time) *Preempted {
		makers := c.makersOf(namespace, name, uid)
		if scope.Namespace != "" && namespace != scope.Namespace || scope.Workload != nil && !slices.Contains(makers, *scope.Workload) {
			return nil
		}
		w := makers[0]
		if scope.Workload != nil {
			w = *scope.Workload
		}
		if found[w] == nil {
			found[w] = &Preempted{Workload: w.String(), victims: map[string]bool{}, by: map[Workload]bool{}}
		}
		found[w].count(cmp.Or(uid, name), at)
		return found[w]
	}
	for i := range c.Set.Events {
		if e := &c.Set.Events[i]; e.Reason == "Preempted" && e.Kind == "Pod" {
			if p := take(e.Namespace, e.Name, e.UID, e.Last); p != nil {
				if by := c.preemptor(e); by != (types.NamespacedName{}) && !c.Set.Hidden(by.Namespace) {
					p.by[c.makersOf(by.Namespace, by.Name, "")[0]] = true
				}
			}
		}
	}
	for _, p := range c.Set.Pods {
		if at, yes := wasPreempted(p); yes {
			take(p.Namespace, p.Name, string(p.UID), at)
		}
	}
	if len(found) == 0 {
		return nil
	}
	levels := c.levels()
	for w, p := range found { // any order: sorted below
		p.Pods, p.By = len(p.victims), alike(p.by)
		p.rank(w, levels)
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b Preempted) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), strings.Compare(a.Workload, b.Workload))
	})
	return all
}

// count counts a victim once.
func (p *Preempted) count(victim string, at time.Time) {
	p.victims[victim] = true
	if at.IsZero() {
		return
	}
	if p.First == nil || at.Before(*p.First) {
		p.First = pointer(at.UTC())
	}
	if p.Last == nil || at.After(*p.Last) {
		p.Last = pointer(at.UTC())
	}
}

// wasPreempted reports whether the pod's condition says that it makes room, and since when.
func wasPreempted(p *v1.Pod) (at time.Time, yes bool) {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == v1.DisruptionTarget && c.Status == v1.ConditionTrue && c.Reason == v1.PodReasonPreemptionByScheduler {
			return c.LastTransitionTime.UTC(), true
		}
	}
	return at, false
}

var preemptorUID = regexp.MustCompile(`^Preempted by pod ([0-9a-f-]+) on node `)

// preemptor returns the pod for which the event's pod made room: the event's related object or,
// where it has none, that of the UID in its message; the zero name where neither is known.
func (c *Cluster) preemptor(e *manifest.Event) types.NamespacedName {
	if e.Related != (types.NamespacedName{}) {
		return e.Related
	}
	if uid := preemptorUID.FindStringSubmatch(e.Message); uid != nil {
		if p := c.indexPods()[types.UID(uid[1])]; p != nil {
			return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
		}
	}
	return types.NamespacedName{}
}

// makersOf returns the workload of a pod, and what it made that made the pod: by its owners where
// the pod is known, else as far as the form of its name tells. There is at least one.
func (c *Cluster) makersOf(namespace, name, uid string) []Workload {
	if p := c.podOf(namespace, name, uid); p != nil {
		owner := metav1.GetControllerOfNoCopy(p)
		if owner == nil {
			return []Workload{cmp.Or(c.WorkloadOf(p), Workload{"pod", namespace, name})}
		}
		made := c.withOwner(Workload{strings.ToLower(owner.Kind), namespace, owner.Name})
		if w := c.WorkloadOf(p); !slices.Contains(made, w) {
			return append([]Workload{w}, made...)
		}
		return made
	}
	for _, by := range workload.ByName(name) {
		if w := (Workload{strings.ToLower(by.Kind), namespace, by.Name}); c.indexWorkloads().objects[w] != nil {
			return c.withOwner(w)
		}
	}
	return []Workload{likeNamed(namespace, name)}
}

// withOwner returns the workload behind the one that made it, if that is known.
func (c *Cluster) withOwner(w Workload) []Workload {
	if by := ownerOf(c.indexWorkloads().objects[w]); by != nil {
		return []Workload{{strings.ToLower(by.Kind), w.Namespace, by.Name}, w}
	}
	return []Workload{w}
}

// podOf returns the pod of the UID, or else of the name; nil if there is none.
func (c *Cluster) podOf(namespace, name, uid string) *v1.Pod {
	if p := c.indexPods()[types.UID(uid)]; p != nil {
		return p
	}
	if c.index.podNames == nil {
		c.index.podNames = make(map[types.NamespacedName]*v1.Pod, len(c.Set.Pods))
		for _, p := range c.Set.Pods {
			c.index.podNames[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = p
		}
	}
	return c.index.podNames[types.NamespacedName{Namespace: namespace, Name: name}]
}

// stem is what workloads share whose names differ in a number at their end.
type stem struct{ namespace, name string }

func stemOf(w Workload) stem {
	return stem{w.Namespace, strings.TrimRight(strings.TrimSuffix(w.Name, "-*"), "0123456789")}
}

// alike names the workloads, those as one whose names differ in a number at their end.
func alike(all map[Workload]bool) []string {
	texts := []string{}
	stems := map[stem][]Workload{}
	for w := range all { // any order: sorted below
		s := stemOf(w)
		stems[s] = append(stems[s], w)
	}
	for s, list := range stems { // any order: sorted below
		slices.SortFunc(list, func(a, b Workload) int { // a kind that is known first
			return cmp.Or(cmp.Compare(unknownKind(a), unknownKind(b)), strings.Compare(a.String(), b.String()))
		})
		w := list[0]
		if len(list) > 1 {
			w.Name = s.name + "*"
		}
		texts = append(texts, w.String())
	}
	slices.Sort(texts)
	return texts
}

func unknownKind(w Workload) int {
	if w.Kind == "pods" {
		return 1
	}
	return 0
}

// preemptedText says which workloads were preempted, how often, when and by whom.
func (l *List) preemptedText(b *strings.Builder) {
	for i := range l.Preempted[:min(mostPreempted, len(l.Preempted))] {
		p := &l.Preempted[i]
		text := fmt.Sprintf("%s of %s%s preempted", terminal.Count(p.Pods, "pod"), p.Workload, terminal.Plural(p.Pods, " was", " were"))
		if strings.HasPrefix(p.Workload, "pod/") && p.Pods == 1 {
			text = p.Workload + " was preempted"
		}
		if len(p.By) > 0 {
			text += " by " + list(p.By, shortNames) + p.priorityText()
		}
		switch {
		case p.First == nil:
		case clock(*p.First) == clock(*p.Last):
			text += ", at " + clock(*p.First)
		default:
			text += ", from " + clock(*p.First) + " to " + clock(*p.Last)
		}
		terminal.Fprintf(b, "\n%s\n", text)
	}
	if rest := len(l.Preempted) - mostPreempted; rest > 0 {
		terminal.Fprintf(b, "(and pods of %s)\n", terminal.Count(rest, "other workload"))
	}
}
