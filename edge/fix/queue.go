package fix

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/turn"
)

// Bounds of the trial of fixes in the queue.
const (
	mostOthers   = 1_000   // pods that take their turn
	mostTurnWork = 100_000 // units of work of all turns
)

// Others are the pods that wait beside the one for which fixes are looked for.
type Others struct {
	Pods []*v1.Pod
	// Unread is true where more pods wait.
	Unread bool
	// Like reports whether a change of one of the pods is one of the other, too: the same
	// template makes both.
	Like func(a, b *v1.Pod) bool
}

// line is the queue that the pod waits in. Those of the others that fit as the cluster is are
// placed, as they will be before anybody carries out a fix.
type line struct {
	*search
	pods   []turn.Pod // the others, in the scheduler's order
	ahead  int        // of them, that come before the pod
	like   func(a, b *v1.Pod) bool
	fits   *turn.Run
	ctx    context.Context // ends with the work that is left
	end    context.CancelFunc
	work   int  // that is left
	behind bool // some of the others are not looked at
}

// newLine lets the others take their turn.
func newLine(s *search, others Others) *line {
	l := lineUp(s, others)
	l.fits = turn.Take(l.ctx, s.machine, l.decode, l.pods, nil)
	return l
}

// lineUp sorts the others as the queue does.
func lineUp(s *search, others Others) *line {
	l := &line{search: s, like: others.Like, work: mostTurnWork}
	l.ctx, l.end = context.WithCancel(s.budget.ctx)
	if s.pod.PodGroup() == "" || !s.machine.PlacesGroups() { // a member of a group is looked at by itself
		for _, p := range others.Pods {
			l.pods = append(l.pods, turn.Pod{API: p})
		}
	}
	turn.Sort(l.pods)
	if l.ahead = slices.IndexFunc(l.pods, func(p turn.Pod) bool { return p.API.UID == s.api.UID }); l.ahead >= 0 {
		l.pods = slices.Delete(l.pods, l.ahead, l.ahead+1)
	}
	l.behind = others.Unread || len(l.pods) > mostOthers
	l.pods = l.pods[:min(len(l.pods), mostOthers)]
	kinds := turn.Kinds{}
	for i := range l.pods {
		l.pods[i].Kind, _ = kinds.Of(l.pods[i].API)
	}
	return l
}

// Outrunning returns the names of the pods that come before the pod in the queue and take the
// room that it would get, none if its own turn places it still or, where it preempts, has others
// leave for it.
func Outrunning(ctx context.Context, m *machine.Machine, set *manifest.Set, pod *v1.Pod, preempts bool, others Others) (names []string) {
	s := newSearch(ctx, m, set, pod)
	if s == nil {
		return nil
	}
	l := lineUp(s, others)
	defer l.end()
	before := slices.DeleteFunc(slices.Clone(l.pods[:min(max(0, l.ahead), len(l.pods))]), func(p turn.Pod) bool { return turn.Compare(p.API, pod) == 0 }) // nobody knows which is first
	if len(before) == 0 {
		return nil
	}
	run := turn.Take(l.ctx, m, l.decode, append(before, turn.Pod{API: pod, Kind: len(l.pods)}), nil)
	defer run.Undo()
	if l.ctx.Err() != nil || run.Nodes[pod.UID] != "" || preempts && run.Nominated[pod.UID] != "" {
		return nil
	}
	for _, p := range before {
		if run.Nodes[p.API.UID] != "" || run.Nominated[p.API.UID] != "" {
			names = append(names, p.API.Namespace+"/"+p.API.Name)
		}
	}
	return names
}

// disband takes the others off their nodes again.
func (l *line) disband() {
	l.fits.Undo()
	l.end()
}

// decode returns the pod as the scheduler sees it, and takes the work of its turn off what is left.
func (l *line) decode(p *v1.Pod) *object.Pod {
	if l.work -= 10 + l.table.Live()/200; l.work < 0 {
		l.end()
	}
	return l.set.DecodePod(p)
}

// cut says that not all others took their turn, "" if they did.
func (l *line) cut() string {
	if l.ctx.Err() == nil && !l.behind {
		return ""
	}
	return fmt.Sprintf("of the pods that wait beside it not all were let take their turn first (at most %d, and for %d units of work): others may take what a fix frees", mostOthers, mostTurnWork)
}

// try lets the pods that come before the pod take their turn once the fix is made, and reports
// whether the pod is placed in its own. A fix that adds a node or puts one right is extended to
// more of them for that.
func (l *line) try(f *Fix) bool {
	of := *l.search
	of.budget.ctx = l.ctx
	s := &sharing{Group: &Group{Machine: l.machine, Set: l.set, Like: l.like}, search: &of, decode: l.decode}
	edits, ok := s.editsOf(f)
	if !ok {
		return true
	}
	if s.Pods = l.before(s, f); len(s.Pods)+len(l.fits.Nodes)+len(l.fits.Nominated) == 0 {
		return true
	}
	s.Pods = append(s.Pods, turn.Pod{API: l.api, Kind: len(l.pods)}) // a kind of its own
	s.enough = func() bool { return s.placed[l.api.UID] }
	s.play(f, edits, true)
	if l.ctx.Err() != nil {
		return true
	}
	if s.enough() && len(s.added) == 0 {
		return true
	}
	took := func(p turn.Pod) bool { return s.placed[p.API.UID] || s.nominated[p.API.UID] }
	fits := func(p turn.Pod) string { return cmp.Or(l.fits.Nodes[p.API.UID], l.fits.Nominated[p.API.UID]) }
	if !slices.ContainsFunc(s.Pods, took) { // then those on its node, or elsewhere in its domains
		took = func(p turn.Pod) bool { return fits(p) == f.Then.Node }
	}
	if !slices.ContainsFunc(l.pods, took) {
		took = func(p turn.Pod) bool { return fits(p) != "" }
	}
	for _, p := range l.pods {
		if took(p) {
			f.First = append(f.First, p.API.Namespace+"/"+p.API.Name)
		}
	}
	if s.enough() {
		f.More = s.added
	}
	return s.enough()
}

// before returns the pods that come before the pod once the fix is made and that are not placed
// yet. Of pods of one second nobody knows which comes first. A pod that is changed is made anew,
// and comes last of its priority.
func (l *line) before(s *sharing, f *Fix) (pods []turn.Pod) {
	asked := l.api
	if changed := s.changed(l.api); changed != nil {
		asked = changed
	}
	anew := asked.DeepCopy()
	if slices.ContainsFunc(s.ops, func(op Op) bool { return op.Path != "/spec/schedulingGates" }) {
		anew.CreationTimestamp = metav1.Unix(math.MaxInt32, 0)
	}
	for i, p := range l.pods {
		if l.fits.Nodes[p.API.UID] != "" || l.fits.Nominated[p.API.UID] != "" || f.deletes(p.API) {
			continue
		}
		as := anew
		if l.like(l.api, p.API) { // it is made anew, too
			as = asked
		}
		if c := turn.Compare(p.API, as); c < 0 || c == 0 && (i < l.ahead || !as.CreationTimestamp.IsZero()) {
			pods = append(pods, p)
		}
	}
	return pods
}

// deletes reports whether the fix deletes the pod.
func (f *Fix) deletes(p *v1.Pod) bool {
	return slices.ContainsFunc(f.Changes, func(c Change) bool {
		return c.Delete && c.Namespace == p.Namespace && c.Name == p.Name
	})
}
