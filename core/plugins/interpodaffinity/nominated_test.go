package interpodaffinity

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// Nominated pods close the domains that a walk over them and all placed pods finds closed, for
// every pod of the class, and only until others are nominated. The rows that they are nominated
// to are the engine's, which places them there.
func TestNominatedPodsCloseDomains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range 8 {
			w.setNode(t)
		}
		for range 6 {
			for range 4 {
				w.place(t)
				w.setNode(t)
			}
			nominated := w.nominateSome()
			for _, p := range w.pool {
				w.compareNominated(t, p, nominated)
			}
			for node := range nominated { // any order: each by itself
				w.Terms().TrackNominated(node, nil)
			}
			for _, p := range w.pool {
				w.compareNominated(t, p, nil)
			}
		}
	})
}

// nominateSome nominates pods to nodes, and records them with the table.
func (w *world) nominateSome() map[string][]*object.Pod {
	nominated := map[string][]*object.Pod{}
	for range w.rand.IntN(4) {
		if r := table.Row(w.rand.IntN(w.Rows())); w.Node(r) != nil {
			nominated[w.Name(r)] = append(nominated[w.Name(r)], w.newPod(70))
		}
	}
	for node, pods := range nominated { // any order: each by itself
		w.Terms().TrackNominated(node, pods)
	}
	return nominated
}

// compareNominated compares the verdicts on the pod, which may be nominated itself.
func (w *world) compareNominated(t *rapid.T, p *object.Pod, nominated map[string][]*object.Pod) {
	k, n, own := w.kept[w.keep(p)], w.naive(p), table.Row(-1)
	n.nominated = map[string][]*object.Pod{}
	for node, pods := range nominated { // any order: into another map
		n.nominated[node] = slices.DeleteFunc(slices.Clone(pods), func(q *object.Pod) bool { return q.Priority < p.Priority })
	}
	if r := table.Row(w.rand.IntN(w.Rows())); w.chance(50) && w.Node(r) != nil {
		own, n.nodeOfPod = r, w.Node(r)
	}
	if k.filter.Skip {
		if v := slices.Collect(maps.Values(n.verdicts())); slices.ContainsFunc(v, func(v framework.Verdict) bool { return v != framework.Fits }) {
			t.Fatalf("pod %s is skipped, with verdicts %v", p.Name, v)
		}
		return
	}
	in := &framework.Input{Table: w.Table, Pod: p, State: k.filter.State}
	w.plugin.CellFilter.SetNominated(in, p, own, func(yield func(table.Row, *object.Pod) bool) {
		for node, pods := range n.nominated { // any order: each by itself
			r, _ := w.Find(node)
			for _, q := range pods {
				if !yield(r, q) {
					return
				}
			}
		}
	})
	w.compareFilter(t, n, k.filter.State)
	for _, r := range w.All() {
		if w.Node(r) != nil {
			plugintest.CheckExchanged(t, &w.plugin, in, r, 1+w.rand.Int32N(2))
		}
	}
}
