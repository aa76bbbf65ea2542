package conform

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/sim/generate"
)

// maxTrials bounds the worlds that one shrinking plays.
const maxTrials = 4000

// shrinker makes a world smaller while it still shows the disagreement.
type shrinker struct {
	other  Start
	kind   string
	best   *Disagreement
	trials int
}

// Shrink drops pods, nodes, changes, the configuration and single fields from
// the world of a disagreement as long as one of the same kind remains.
func Shrink(d *Disagreement, other Start) *Disagreement {
	s := &shrinker{other: other, kind: kind(d), best: d}
	for {
		before := s.trials
		size := s.size()
		s.lists()
		s.fields()
		if s.size() == size || s.trials == before || s.trials >= maxTrials {
			return s.best
		}
	}
}

// kind is what a disagreement is about, without the names of nodes and pods.
func kind(d *Disagreement) string {
	what, _, _ := strings.Cut(d.Diffs[0], ":")
	what, _, _ = strings.Cut(what, ", node ")
	return what
}

func (s *shrinker) size() int {
	w := s.best.World
	n := len(w.Config)
	for _, object := range objects(w) {
		n += len(paths(tree(object), nil))
	}
	return n + len(w.Changes) + len(w.Budgets) + len(w.SelectorOwners) + len(w.Namespaces) + len(w.Objects)
}

// try keeps the world if it still shows the disagreement.
func (s *shrinker) try(w generate.World) bool {
	if s.trials >= maxTrials {
		return false
	}
	s.trials++
	_, d := Compare(w, s.other)
	if d == nil || kind(d) != s.kind {
		return false
	}
	s.best = d
	return true
}

// lists drops whole objects, many at a time first.
func (s *shrinker) lists() {
	if w := s.best.World; w.Config != "" {
		w.Config = ""
		s.try(w)
	}
	s.drop(func(w *generate.World) int { return len(w.Pending) }, dropPending)
	s.drop(func(w *generate.World) int { return len(w.Changes) }, func(w *generate.World, i, j int) {
		w.Changes = slices.Delete(slices.Clone(w.Changes), i, j)
	})
	s.drop(func(w *generate.World) int { return len(w.Bound) }, func(w *generate.World, i, j int) {
		w.Bound = slices.Delete(slices.Clone(w.Bound), i, j)
	})
	s.drop(func(w *generate.World) int { return len(w.Budgets) }, func(w *generate.World, i, j int) {
		w.Budgets = slices.Delete(slices.Clone(w.Budgets), i, j)
	})
	s.drop(func(w *generate.World) int { return len(w.SelectorOwners) }, func(w *generate.World, i, j int) {
		w.SelectorOwners = slices.Delete(slices.Clone(w.SelectorOwners), i, j)
	})
	s.drop(func(w *generate.World) int { return len(w.Namespaces) }, func(w *generate.World, i, j int) {
		w.Namespaces = slices.Delete(slices.Clone(w.Namespaces), i, j)
	})
	s.drop(func(w *generate.World) int { return len(w.Objects) }, func(w *generate.World, i, j int) {
		w.Objects = slices.Delete(slices.Clone(w.Objects), i, j)
	})
	s.drop(func(w *generate.World) int { return len(w.Nodes) }, dropNodes)
}

// drop tries to take out runs of entries from the end, each run half as long
// as the one before.
func (s *shrinker) drop(length func(*generate.World) int, cut func(w *generate.World, i, j int)) {
	for run := length(&s.best.World); run > 0; run /= 2 {
		for end := length(&s.best.World); end > 0; end -= run {
			w := s.best.World
			cut(&w, max(0, end-run), end)
			s.try(w)
		}
	}
}

func dropPending(w *generate.World, i, j int) {
	w.Pending = slices.Delete(slices.Clone(w.Pending), i, j)
	w.Changes = slices.Clone(w.Changes)
	for k := range w.Changes {
		if after := w.Changes[k].After; after > i {
			w.Changes[k].After = max(i, after-(j-i))
		}
	}
}

// dropNodes takes the pods of the nodes along.
func dropNodes(w *generate.World, i, j int) {
	gone := map[string]bool{}
	for _, n := range w.Nodes[i:j] {
		gone[n.Name] = true
	}
	w.Nodes = slices.Delete(slices.Clone(w.Nodes), i, j)
	w.Bound = slices.DeleteFunc(slices.Clone(w.Bound), func(p *v1.Pod) bool { return gone[p.Spec.NodeName] })
}

// fields takes single fields and list entries out of every object.
func (s *shrinker) fields() {
	for i := range objects(s.best.World) {
		for _, path := range paths(tree(objects(s.best.World)[i]), nil) {
			if w, ok := without(s.best.World, i, path); ok && stored(objects(w)[i]) {
				s.try(w)
			}
		}
	}
}
