package fix

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/manifest"
)

// Bounds of the search. What is looked at first promises the smallest fixes.
const (
	mostFixes    = 10 // that are told of
	mostOfASort  = 2  // of them, that differ in names and amounts alone
	mostGroups   = 8  // of nodes with the same blockers
	mostVariants = 3  // of the nodes of a group
	mostCombos   = 32 // of the ways to lift the blockers of a node
)

// candidate is edits that were tried, and their result.
type candidate struct {
	edits []edit
	trial
}

// Find looks for fixes of a pending pod, the smallest first. Each is tried once more with the
// others that come before the pod taking their turn. cut says in a sentence why the search ended
// early, "" if it did not; what was found until then holds.
func Find(ctx context.Context, m *machine.Machine, set *manifest.Set, pod *v1.Pod, others Others) (fixes []Fix, cut string) {
	s := newSearch(ctx, m, set, pod)
	if s == nil {
		return []Fix{}, ""
	}
	for _, s.anyLabel = range []bool{false, true} {
		s.run()
		if len(s.found) == 0 && s.cut == "" {
			s.evicting = true
			s.run()
			s.evicting = false
		}
		if len(s.found) > 0 || s.cut != "" {
			break
		}
	}
	fixes, cut = s.fixes(others)
	return fixes, cmp.Or(s.cut, cut)
}

// newSearch is nil where the pod is not known as it was written.
func newSearch(ctx context.Context, m *machine.Machine, set *manifest.Set, pod *v1.Pod) *search {
	s := &search{machine: m, table: m.Table(), set: set, api: pod, nodes: map[string]*v1.Node{}, known: map[string]bool{},
		budget: budget{ctx: ctx, left: mostWork}}
	written := set.Written("Pod", pod.Namespace, pod.Name)
	s.written, s.doc = &v1.Pod{}, parse(written)
	if s.doc == nil || kjson.UnmarshalCaseSensitivePreserveInts(written, s.written) != nil {
		return nil
	}
	s.size = len(written) / 100
	for _, n := range set.Nodes {
		s.nodes[n.Name] = n
	}
	s.spec = &s.written.Spec
	s.selectorKeys = slices.Sorted(maps.Keys(s.spec.NodeSelector))
	s.pod = s.set.DecodePod(pod)
	return s
}

// run looks for candidates of every kind. It makes nothing that is missing where a name that is
// set right helps.
func (s *search) run() {
	s.rollback()
	before := len(s.found)
	gates, missing := s.gates(), s.missing(true)
	s.runFrom(join(gates, missing))
	if len(s.found) == before && slices.Contains(kinds(missing), correctName) {
		s.runFrom(join(gates, s.missing(false)))
	}
}

// runFrom looks for candidates that begin with the edits.
func (s *search) runFrom(base []edit) {
	s.base = base
	if len(s.base) > mostEdits {
		return // no fix is that small
	}
	if len(s.base) > 0 {
		s.consider(s.base)
	}
	var d *decision.Decision
	if !s.with(s.base, func(p *object.Pod) { d = s.machine.Assess(p) }) || d.Result != decision.ResultUnschedulable {
		return
	}
	s.chosen = choosesOne(d.Nodes)
	s.meantPods()
	s.considerEach(meantKeys(s.spec, s.set))
	s.claims()
	s.devices()
	s.onNodes(d)
	s.deletions(d)
	s.newNodes()
	if !slices.ContainsFunc(s.found, func(c candidate) bool { return slices.Contains(kinds(c.edits), addNode) }) {
		s.nodesElsewhere()
	}
	s.priorities()
	s.withoutTerms()
}

// withoutTerms looks at what blocks the pod once it has no required pod affinity and
// anti-affinity, where nothing else was found: of a plugin's reasons only the first is
// told.
func (s *search) withoutTerms() {
	near, away := s.podTerms()
	if len(s.found) > 0 || len(near)+len(away) == 0 {
		return
	}
	defer func(base []edit) { s.base = base }(s.base)
	s.base = join(s.base, join(near, away))
	var d *decision.Decision
	if s.with(s.base, func(p *object.Pod) { d = s.machine.Assess(p) }) && d.Result == decision.ResultUnschedulable {
		s.onNodes(d)
		s.deletions(d)
	}
}

// considerEach tries each of the edits alone, or else all of them at once.
func (s *search) considerEach(edits []edit) {
	helped := false
	for i := range edits {
		helped = s.consider(join(s.base, edits[i:i+1])) || helped
	}
	if !helped && len(edits) > 1 {
		s.consider(join(s.base, edits))
	}
}

// consider tries the edits, leaves out what is not needed, and keeps the rest. It keeps
// nothing of which the work does not suffice to say that all is needed.
func (s *search) consider(edits []edit) bool {
	if len(edits) > mostEdits || !s.try(edits).ok {
		return false
	}
	for before := 0; before != len(edits); { // with better values less may be needed
		before = len(edits)
		edits = s.needed(edits)
		for i := range edits {
			s.tune(edits, i)
		}
	}
	key := keyOf(edits)
	if s.known[key] {
		return true
	}
	found := candidate{edits, s.try(edits)}
	if s.cut != "" {
		return false
	}
	s.known[key] = true
	s.found = append(s.found, found)
	return true
}

// needed leaves out the edits without which the pod is placed, too.
func (s *search) needed(edits []edit) []edit {
	edits = slices.Clone(edits)
	for i := 0; i < len(edits) && len(edits) > 1; {
		without := slices.Delete(slices.Clone(edits), i, i+1)
		if s.try(without).ok {
			edits = without
		} else {
			i++
		}
	}
	return edits
}

// tune gives an edit the best value with which the pod is still placed.
func (s *search) tune(edits []edit, i int) {
	t := edits[i].tune
	if t == nil {
		return
	}
	direction := int64(1)
	if t.best < t.value {
		direction = -1
	}
	steps := (t.best - t.value) * direction / t.step // steps that may be left to go
	works := func(n int64) bool {
		old := edits[i]
		edits[i] = t.with(t.value + direction*n*t.step)
		ok := s.try(edits).ok
		edits[i] = old
		return ok
	}
	good, bad := int64(0), steps+1
	for next := int64(1); good+1 < bad; next *= 4 { // mostly the first step is too far
		n := min(good+next, bad-1)
		if !works(n) {
			bad = n
			break
		}
		good = n
	}
	for good+1 < bad {
		if n := good + (bad-good)/2; works(n) {
			good = n
		} else {
			bad = n
		}
	}
	edits[i] = t.with(t.value + direction*good*t.step)
}

func keyOf(edits []edit) string {
	keys := make([]string, len(edits))
	for i := range edits {
		keys[i] = edits[i].say
	}
	slices.Sort(keys)
	return strings.Join(keys, "\n")
}

// fixes returns the first candidates by stage and size, written down. Those that do not help as
// others come first are the last. cut says which others were not tried.
func (s *search) fixes(others Others) (fixes []Fix, cut string) {
	slices.SortStableFunc(s.found, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(stageOf(a.edits), stageOf(b.edits)),
			cmp.Compare(objects(a.edits), objects(b.edits)),
			cmp.Compare(len(a.edits), len(b.edits)),
			slices.Compare(kinds(a.edits), kinds(b.edits)),
		)
	})
	l := newLine(s, others)
	defer l.disband()
	var held, late shortlist
	for _, c := range s.found {
		sort := fmt.Sprint(kinds(c.edits), c.edits[0].target.kind)
		if !c.ok || held.full(sort) {
			continue
		}
		if f := s.write(c); l.try(&f) {
			held.add(sort, f)
		} else if !late.full(sort) {
			late.add(sort, f)
		}
	}
	fixes = append(append([]Fix{}, held.fixes...), late.fixes...)
	return fixes[:min(mostFixes, len(fixes))], l.cut()
}

// shortlist is the fixes that are told of.
type shortlist struct {
	fixes []Fix
	sorts map[string]int // how many fixes there are of a sort
}

// full reports whether no fix of the sort is to be added.
func (l *shortlist) full(sort string) bool {
	return len(l.fixes) == mostFixes || l.sorts[sort] == mostOfASort
}

func (l *shortlist) add(sort string, f Fix) {
	if l.sorts == nil {
		l.sorts = map[string]int{}
	}
	l.sorts[sort]++
	l.fixes = append(l.fixes, f)
}

// stageOf returns the latest stage of the edits. Gates do not count: every fix of a gated pod
// removes them.
func stageOf(edits []edit) stage {
	latest := undoes
	for i := range edits {
		if edits[i].kind != removeGate {
			latest = max(latest, edits[i].stage)
		}
	}
	return latest
}

// objects is how many objects the edits change.
func objects(edits []edit) int {
	n, seen := 0, map[target]bool{}
	for i := range edits {
		e := &edits[i]
		switch {
		case e.remove != nil || e.create != nil:
			n++
		case !seen[e.target]:
			seen[e.target] = true
			n++
		}
	}
	return n
}

func kinds(edits []edit) []kind {
	all := make([]kind, len(edits))
	for i := range edits {
		all[i] = edits[i].kind
	}
	slices.Sort(all)
	return all
}

// write is the candidate as data: the pod's changes first, then the others as they
// come.
func (s *search) write(c candidate) Fix {
	f := Fix{stage: stageOf(c.edits), edits: c.edits, Then: Then{Node: c.node, Evicts: append([]string{}, c.evicts...)}, Changes: []Change{}}
	var say []string
	at := map[target]int{}
	ops := map[target][]Op{}
	for i := range c.edits {
		e := &c.edits[i]
		say = append(say, e.say)
		switch {
		case e.remove != nil:
			f.Changes = append(f.Changes, Change{APIVersion: "v1", Kind: "Pod", Namespace: e.remove.Namespace, Name: e.remove.Name, Delete: true})
		case e.create != nil:
			t := e.create.target
			f.Changes = append(f.Changes, Change{APIVersion: t.apiVersion, Kind: t.kind, Namespace: t.namespace, Name: t.name, Create: e.create.object})
		default:
			if _, known := at[e.target]; !known {
				at[e.target] = len(f.Changes)
				t := e.target
				if t == (target{}) {
					t = target{"v1", "Pod", s.api.Namespace, s.api.Name}
				}
				f.Changes = append(f.Changes, Change{APIVersion: t.apiVersion, Kind: t.kind, Namespace: t.namespace, Name: t.name})
			}
			ops[e.target] = append(ops[e.target], e.ops...)
		}
	}
	for t, list := range ops { // any order: each object by itself
		doc := s.doc
		if t != (target{}) {
			doc = parse(s.writtenOf(t))
		}
		f.Changes[at[t]].Patch = render(doc, list)
	}
	f.Summary = strings.Join(say, "; ")
	if f.UndoesRollout = c.edits[0].kind == undoRollout; f.UndoesRollout {
		f.Summary = "undo the last rollout, which " + strings.Join(say, " and ")
	}
	return f
}
