package fix

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/turn"
)

// mostGrown bounds the nodes that one fix adds or puts right for many pods.
const mostGrown = 100

// Shared is a fix that was tried on several pods together.
type Shared struct {
	Fix
	Places int // how many of the pods
	// Evicts are the pods that those preempt.
	Evicts []string
	// Sample is the pod whose fix it is.
	Sample *v1.Pod

	rank int
}

// Group is pods that wait for the same reason, in the scheduler's order.
type Group struct {
	Machine *machine.Machine
	Set     *manifest.Set
	Pods    []turn.Pod
	// Before are those of the pods with which placed fixes are looked for.
	Before []turn.Pod
	// Like reports whether a change of one of the pods is one of the other, too: the same
	// template makes both.
	Like func(a, b *v1.Pod) bool
}

// Find looks for fixes of each of the samples, pods of the group, and tries them on all of
// them. Fixes that place none are left out. cut says why the search ended early.
func (g *Group) Find(ctx context.Context, samples []*v1.Pod) (found []Shared, cut string) {
	found = []Shared{}
	known := map[string]bool{}
	for _, sample := range samples {
		run := turn.TakeEach(ctx, g.Machine, g.Set.DecodePod, g.Before)
		fixes, early := Find(ctx, g.Machine, g.Set, sample, Others{})
		run.Undo()
		cut = cmp.Or(cut, early)
		for _, f := range fixes {
			key := f.key()
			if known[key] {
				continue
			}
			known[key] = true
			shared := g.sharing(ctx, sample).try(f)
			if shared.Places == 0 {
				continue
			}
			all, ok := g.lowerForAll(ctx, &shared)
			if !ok || shared.Places < len(g.Pods) {
				found = append(found, shared)
			}
			if ok && !known[all.key()] {
				known[all.key()] = true
				found = append(found, all)
			}
		}
	}
	if cut == "" && ctx.Err() != nil {
		cut = "the time was up while fixes were tried on all pods: there may be others, and they may place more"
	}
	slices.SortStableFunc(found, func(a, b Shared) int {
		return cmp.Or(cmp.Compare(a.gaveUp(), b.gaveUp()), cmp.Compare(b.Places, a.Places), cmp.Compare(a.rank, b.rank), cmp.Compare(len(a.Changes), len(b.Changes)), cmp.Compare(operations(a.Changes), operations(b.Changes)))
	})
	return found[:min(mostFixes, len(found))], cut
}

func (g *Group) sharing(ctx context.Context, sample *v1.Pod) *sharing {
	s := &sharing{Group: g, search: newSearch(ctx, g.Machine, g.Set, sample), decode: g.Set.DecodePod}
	s.enough = func() bool { return len(s.placed) == len(g.Pods) }
	return s
}

// lowerForAll returns the fix, which lowers requests, with the largest amounts that place all pods.
// ok is false if none above 0 places them, or of places them all and no larger ones do.
//
// The amounts of of are the largest with which the sample fits while others keep what they request.
// If its template makes all of them, lower ones may be needed, or larger ones be enough.
func (g *Group) lowerForAll(ctx context.Context, of *Shared) (all Shared, ok bool) {
	edits := slices.Clone(of.edits)
	for i := range edits {
		if edits[i].kind != lowerRequest || edits[i].target != (target{}) || edits[i].tune == nil {
			continue
		}
		t := edits[i].tune
		places := func(n int64) bool {
			if n == 0 {
				return false
			}
			edits[i] = t.with(n * t.step)
			s := g.sharing(ctx, of.Sample)
			tried := s.try(s.write(candidate{slices.Clone(edits), trial{node: of.Then.Node, evicts: of.Then.Evicts}}))
			if tried.Places == len(g.Pods) {
				all, ok = tried, true
			}
			return tried.Places == len(g.Pods)
		}
		now, most := t.value/t.step, t.best/t.step
		switch {
		case of.Places == len(g.Pods) && now < most && places(now+1):
			edits[i] = t.with(bisect(now+1, most+1, places) * t.step)
		case of.Places == len(g.Pods):
			edits[i] = t.with(t.value)
		case len(edits) == 1 && places(1):
			bisect(1, now, places)
		}
	}
	return all, ok && ctx.Err() == nil
}

// gaveUp returns 1 for a last resort, which comes last however many pods it places, else 0.
func (f *Fix) gaveUp() int {
	if f.stage == lastResort {
		return 1
	}
	return 0
}

// key returns a text that fixes share if they change the same objects in the same way.
func (f *Fix) key() string {
	text := f.Summary
	for i := range f.Changes {
		text += fmt.Sprintf(" %s/%s/%s", f.Changes[i].Kind, f.Changes[i].Namespace, f.Changes[i].Name)
	}
	return text
}

func operations(changes []Change) (n int) {
	for i := range changes {
		n += len(changes[i].Patch)
	}
	return n
}

// rankOf orders fixes as an operator does: what undoes a leftover first, what makes room for
// good, what changes the workload, what changes nodes or evicts, and last resorts.
func (s *sharing) rankOf(f *Fix) (rank int) {
	switch f.stage {
	case undoes:
		return 0
	case elsewhere:
		return 4
	case lastResort:
		return 5
	}
	for i := range f.Changes {
		c := &f.Changes[i]
		switch n, _ := c.Create.(*v1.Node); {
		case n != nil && s.pool != nil && equality.Semantic.DeepEqual(n.Status.Allocatable, s.pool.Like.Status.Allocatable):
			rank = max(rank, 1)
		case c.Delete || c.Kind == "Node" && n == nil || len(f.Then.Evicts) > 0:
			rank = max(rank, 3)
		default:
			rank = max(rank, 2)
		}
	}
	return rank
}

// sharing tries one fix on the pods of a group.
type sharing struct {
	*Group
	*search
	decode    turn.Decode
	enough    func() bool // reports whether the fix needs no extension
	ops       []Op        // of the sample, and of the pods that are like it
	placed    map[types.UID]bool
	nominated map[types.UID]bool       // pods that would preempt others in their turn
	evicted   map[string]bool          // pods that those that are placed preempt
	next      func() (extension, bool) // the next node that the fix may add or put right
	added     []Change                 // those that placed pods
	pool      *Pool                    // of the nodes that it adds
}

// extension is what a fix does to one node more.
type extension struct {
	edit   edit
	change Change
}

// try tries the fix on all pods of the group.
func (s *sharing) try(f Fix) Shared {
	edits, ok := s.editsOf(&f)
	if !ok {
		return Shared{Fix: f}
	}
	s.play(&f, edits, len(f.Then.Evicts) > 0)
	f.extend(s.added)
	return Shared{Fix: f, Places: len(s.placed), Evicts: slices.Sorted(maps.Keys(s.evicted)), Sample: s.api, rank: s.rankOf(&f)}
}

// editsOf returns the changes of the fix as edits of other objects than the sample, and keeps
// those of the sample. It returns false if an object is not there.
func (s *sharing) editsOf(f *Fix) (edits []edit, ok bool) {
	for i := range f.Changes {
		c := &f.Changes[i]
		if s.isSample(c) {
			s.ops = append(s.ops, c.Patch...)
			continue
		}
		e, ok := s.editOf(c)
		if !ok {
			return nil, false
		}
		edits = append(edits, e)
	}
	return edits, true
}

// play applies the fix to the cluster and to all pods that are like the sample, and lets all of
// the group take their turn. Until that is enough, a fix that adds a node or puts one right is
// extended to more of them for as long as that places more pods. evicting counts pods that preempt.
func (s *sharing) play(f *Fix, edits []edit, evicting bool) {
	s.placed, s.nominated, s.evicted, s.next = map[types.UID]bool{}, map[types.UID]bool{}, map[string]bool{}, s.extensions(f)
	s.with(edits, func(*object.Pod) { s.settle(nil, evicting) })
}

// isSample reports whether the change is one of the sample.
func (s *sharing) isSample(c *Change) bool {
	return c.Kind == "Pod" && !c.Delete && c.Create == nil && c.Namespace == s.api.Namespace && c.Name == s.api.Name
}

// editOf returns the change of another object as an edit.
func (s *sharing) editOf(c *Change) (edit, bool) {
	switch o := c.Create.(type) {
	case *v1.Node:
		return s.nodeMade(o), true
	case metav1.Object:
		return edit{kind: makeMissing, create: newCreation(c.APIVersion, c.Kind, o)}, true
	}
	if !c.Delete {
		return edit{kind: changeNode, target: target{c.APIVersion, c.Kind, c.Namespace, c.Name}, ops: c.Patch}, true
	}
	for _, p := range s.machine.Pods() {
		if p.Namespace == c.Namespace && p.Name == c.Name {
			return edit{kind: deletePod, remove: p}, true
		}
	}
	return edit{}, false
}

// nodeMade returns the edit that adds the node, with the pods that each node of its pool runs.
func (s *sharing) nodeMade(n *v1.Node) edit {
	name, _, _ := strings.Cut(n.Name, "-copy")
	if s.pool == nil || s.pool.Like.Name != name {
		s.pool = PoolOf(s.table, s.set, name)
	}
	made := &NewNode{API: n}
	if s.pool != nil {
		of := s.pool.NewNode(n.Name)
		made.pods, made.drivers = of.pods, of.drivers
	}
	made.decode()
	return newNode(addNode, made, "")
}

// settle lets the pods that wait still take their turn, with the extension, if any, made
// around it. Where that leaves some, it goes on with the next extension, as long as one places
// more; of a pod group also where one alone places none. It reports whether it placed any.
func (s *sharing) settle(made *extension, evicting bool) bool {
	run := turn.Take(s.ctx, s.machine, s.decode, s.waiting(), nil)
	defer run.Undo()
	before, added := len(s.placed), s.added
	for uid := range run.Nodes { // any order: a set
		s.placed[uid] = true
	}
	for uid := range run.Nominated { // any order: a set
		s.nominated[uid] = true
	}
	for _, p := range s.Pods {
		if node := run.Nominated[p.API.UID]; evicting && node != "" && !s.inVain(s.decode(p.API), run.Victims[p.API.UID], node) {
			s.placed[p.API.UID] = true
			for _, v := range run.Victims[p.API.UID] {
				s.evicted[v.String()] = true
			}
		}
	}
	any := len(s.placed) > before
	if !any && len(s.Before) == 0 {
		return false
	}
	if made != nil {
		s.added = append(s.added, made.change)
	}
	for !s.enough() && s.ctx.Err() == nil {
		next, ok := s.next()
		if !ok {
			break
		}
		more := false
		s.with([]edit{next.edit}, func(*object.Pod) { more = s.settle(&next, evicting) })
		any = any || more
		if next.edit.create != nil && !more {
			break // another node of the shape places none, either
		}
	}
	if !any {
		s.added = added
	}
	return any
}

// waiting returns the pods that are not placed yet, with the fix made.
func (s *sharing) waiting() (pods []turn.Pod) {
	for _, p := range s.Pods {
		if s.placed[p.API.UID] {
			continue
		}
		if len(s.ops) > 0 && (p.API == s.api || s.Like(s.api, p.API)) {
			if changed := s.changed(p.API); changed != nil {
				p = turn.Pod{API: changed, Kind: -1 - p.Kind}
			}
		}
		pods = append(pods, p)
	}
	return pods
}

// changed returns the pod with the fix made; nil where that cannot be done to it.
func (s *sharing) changed(p *v1.Pod) *v1.Pod {
	out := &v1.Pod{}
	if kjson.UnmarshalCaseSensitivePreserveInts(s.set.Written("Pod", p.Namespace, p.Name), out) != nil || patch(out, s.ops) != nil || s.set.AdmitPod(out) != nil {
		return nil
	}
	out.UID = p.UID
	return out
}

// extensions returns what yields what the fix may do to one more node after the other: add one
// like that which it adds, or take the same cordon or taint off another that has it.
func (s *sharing) extensions(f *Fix) func() (extension, bool) {
	for i := range f.Changes {
		if n, ok := f.Changes[i].Create.(*v1.Node); ok {
			return s.moreNodes(n)
		}
	}
	if len(f.Changes) == 1 && f.Changes[0].Kind == "Node" && f.stage == undoes {
		return s.moreUndone(&f.Changes[0])
	}
	return func() (extension, bool) { return extension{}, false }
}

func (s *sharing) moreNodes(like *v1.Node) func() (extension, bool) {
	number := 1
	return func() (extension, bool) {
		if number++; number > min(mostGrown, len(s.Pods)) {
			return extension{}, false
		}
		n := like.DeepCopy()
		n.Name = fmt.Sprintf("%s-%d", like.Name, number)
		n.Labels[v1.LabelHostname] = n.Name
		return extension{s.nodeMade(n), Change{APIVersion: "v1", Kind: "Node", Name: n.Name, Create: n}}, true
	}
}

func (s *sharing) moreUndone(c *Change) func() (extension, bool) {
	first, rest, found := s.nodes[c.Name], s.set.Nodes, 1
	return func() (extension, bool) {
		for len(rest) > 0 && found < min(mostGrown, len(s.Pods)) {
			n := rest[0]
			rest = rest[1:]
			ops := sameUndone(first, n, c.Patch)
			if n == first || len(ops) == 0 {
				continue
			}
			found++
			e := edit{kind: changeNode, target: target{"v1", "Node", "", n.Name}, ops: ops}
			return extension{e, Change{APIVersion: "v1", Kind: "Node", Name: n.Name, Patch: ops}}, true
		}
		return extension{}, false
	}
}

// sameUndone returns the operations that undo on node n what ops undo on the first; nil where
// it lacks one of these cordons and taints.
func sameUndone(first, n *v1.Node, ops []Op) (same []Op) {
	for _, op := range ops {
		if op.Path == "/spec/unschedulable" {
			if !n.Spec.Unschedulable {
				return nil
			}
			same = append(same, op)
			continue
		}
		var at int
		if _, err := fmt.Sscanf(op.Path, "/spec/taints/%d", &at); err != nil || at >= len(first.Spec.Taints) {
			return nil
		}
		of := &first.Spec.Taints[at]
		i := slices.IndexFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.MatchTaint(of) && t.Value == of.Value })
		if i < 0 {
			return nil
		}
		same = append(same, Op{Op: "remove", Path: fmt.Sprintf("/spec/taints/%d", i)})
	}
	return same
}

// Extended returns the fix with the changes that place the pod after those that come first.
func (f Fix) Extended() Fix {
	f.extend(f.More)
	return f
}

// extend adds what the fix does to more nodes.
func (f *Fix) extend(by []Change) {
	if len(by) == 0 {
		return
	}
	f.Changes = slices.Concat(f.Changes, by)
	if by[0].Create != nil {
		f.Summary = strings.Replace(f.Summary, "add a node like", fmt.Sprintf("add %d nodes like", len(by)+1), 1)
		return
	}
	var names []string
	for i := range by {
		names = append(names, by[i].Name)
	}
	f.Summary += "; likewise " + list(names)
}
