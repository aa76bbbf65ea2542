package interpodaffinity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// world is a cluster that changes and a plugin whose counts are kept by Sign,
// as an engine would, each brought up to date only now and then.
type world struct {
	*table.Table
	t      *rapid.T
	rand   *rand.Rand
	pl     *plugin
	plugin framework.Plugin
	ask    naive // with the profile's arguments

	pool   []*object.Pod
	kept   map[string]*class
	epoch  uint64
	serial int
	marks  []table.Mark
	// before the outermost checkpoint: each pod's kept answers, and whether the
	// filter had nothing to say; nominated are the pods that may be tried.
	keys      []string
	skips     []bool
	nominated []*object.Pod
	summed    map[*existing][][]int64 // what standings came to
}

type class struct {
	filter framework.PreFilterResult
	score  framework.PreScoreResult
}

func (w *world) one(list ...string) string { return list[w.rand.IntN(len(list))] }
func (w *world) chance(percent int) bool   { return w.rand.IntN(100) < percent }

func newWorld(t *rapid.T) *world {
	w := &world{Table: table.New(), t: t, kept: map[string]*class{}}
	w.rand = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	hard := int32(w.rand.IntN(3) * 7)
	args := &configv1.InterPodAffinityArgs{HardPodAffinityWeight: &hard, IgnorePreferredTermsOfExistingPods: w.chance(30)}
	w.ask = naive{t: w.Table, hard: int64(hard), ignore: args.IgnorePreferredTermsOfExistingPods}
	var err error
	if w.pl, err = newPlugin(args); err != nil {
		t.Fatal(err)
	}
	w.plugin = w.pl.declare()
	for range w.rand.IntN(12) {
		w.setNode(t)
	}
	for range 6 {
		w.setNamespace(t)
		p := w.newPod(60)
		w.pool = append(w.pool, p, w.twin(p))
	}
	return w
}

// twin differs from p in labels or namespace, which Sign may leave out only if
// no answer depends on it.
func (w *world) twin(p *object.Pod) *object.Pod {
	twin, other := *p, w.newPod(0)
	twin.UID, twin.Name = other.UID, other.Name
	if w.chance(70) {
		twin.Labels = other.Labels
	}
	if w.chance(30) {
		twin.Namespace = other.Namespace
	}
	return &twin
}

func (w *world) selector() *metav1.LabelSelector {
	switch w.rand.IntN(9) {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{}
	case 2:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"y"}}}}
	case 3:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "rev", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.one("x", "y")}}
}

func (w *world) term() v1.PodAffinityTerm {
	term := v1.PodAffinityTerm{LabelSelector: w.selector(),
		TopologyKey: w.one(v1.LabelHostname, v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyZone, "rack")}
	if w.chance(5) {
		term.TopologyKey = w.one("", "nowhere")
	}
	if w.chance(20) {
		term.Namespaces = []string{w.one("a", "b", "c")}
	}
	if w.chance(25) {
		term.NamespaceSelector = w.selector()
	}
	return term
}

func (w *world) affinity(namespace string) *match.PodAffinity {
	a := &v1.Affinity{PodAffinity: &v1.PodAffinity{}, PodAntiAffinity: &v1.PodAntiAffinity{}}
	for w.chance(35) {
		list := &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, w.term())
	}
	for w.chance(35) {
		list := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, w.term())
	}
	for w.chance(35) {
		list := &a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, v1.WeightedPodAffinityTerm{Weight: int32(w.rand.IntN(4)), PodAffinityTerm: w.term()})
	}
	for w.chance(35) {
		list := &a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, v1.WeightedPodAffinityTerm{Weight: int32(w.rand.IntN(4)), PodAffinityTerm: w.term()})
	}
	return match.NewPodAffinity(a, namespace)
}

func (w *world) newPod(affine int) *object.Pod {
	w.serial++
	p := &object.Pod{UID: types.UID(fmt.Sprint("u", w.serial)), Name: fmt.Sprint("p", w.serial), Namespace: w.one("a", "a", "b"),
		Priority: w.rand.Int32N(2), Labels: map[string]string{"own": fmt.Sprint(w.serial)}}
	if w.chance(85) {
		p.Labels["app"] = w.one("x", "x", "y")
	}
	if w.chance(50) {
		p.Labels["rev"] = w.one("1", "2")
	}
	if w.chance(affine) {
		p.Affinity = w.affinity(p.Namespace)
	}
	return p
}

func (w *world) setNode(*rapid.T) {
	if len(w.marks) > 0 {
		return
	}
	n := &object.Node{Name: fmt.Sprint("n", w.rand.IntN(14)), Labels: map[string]string{}}
	put := func(percent int, key string, values ...string) {
		if w.chance(percent) {
			n.Labels[key] = w.one(values...)
		}
	}
	put(90, v1.LabelHostname, n.Name, n.Name, n.Name, n.Name, n.Name, n.Name, n.Name, "shared")
	put(85, v1.LabelTopologyZone, "a", "b", "c", "c", "")
	put(90, "rack", n.Name, n.Name, n.Name, n.Name, n.Name, "shared")
	w.SetNode(n)
}

func (w *world) removeNode(*rapid.T) {
	if len(w.marks) == 0 {
		w.RemoveNode(fmt.Sprint("n", w.rand.IntN(14)))
	}
}

func (w *world) setNamespace(*rapid.T) {
	if len(w.marks) > 0 {
		return
	}
	n := &object.Namespace{Name: w.one("a", "b", "c"), Labels: map[string]string{}}
	if w.chance(60) {
		n.Labels["app"] = w.one("x", "y")
	}
	if w.chance(30) {
		n.Labels["rev"] = "1"
	}
	w.Namespaces().Set(n)
}

// place: under a checkpoint only pods that are nominated, or placed already.
func (w *world) place(*rapid.T) {
	p := w.newPod(30)
	if len(w.marks) > 0 {
		p = w.nominated[w.rand.IntN(len(w.nominated))]
	} else if w.chance(20) { // known, perhaps: it moves or changes
		p.UID = types.UID(fmt.Sprint("u", 1+w.rand.IntN(w.serial)))
	}
	w.AddPod(p, fmt.Sprint("n", w.rand.IntN(15)))
}

func (w *world) remove(*rapid.T) {
	for range 20 {
		if w.RemovePod(types.UID(fmt.Sprint("u", 1+w.rand.IntN(w.serial)))) {
			return
		}
	}
}

// storm is more than the journal of pod changes holds, and more terms than the
// table remembers.
func (w *world) storm(t *rapid.T) {
	if len(w.marks) > 0 || w.chance(90) {
		return
	}
	p := w.newPod(0)
	for range 1 << 13 {
		w.AddPod(p, "n1")
		w.RemovePod(p.UID)
	}
	for i := range 1500 {
		q := *p
		q.Affinity = w.affinity(fmt.Sprint("namespace-", i))
		w.AddPod(&q, "n1")
		w.RemovePod(q.UID)
	}
}

func (w *world) checkpoint(*rapid.T) {
	if len(w.marks) == 0 {
		w.nominated = []*object.Pod{w.newPod(70), w.newPod(70)}
		w.Terms().TrackNominated("n1", w.nominated)
		w.keys, w.skips = nil, nil
		for _, p := range w.pool {
			w.keys = append(w.keys, w.keep(p))
			w.skips = append(w.skips, w.skipped(p))
		}
	}
	if len(w.marks) == 0 {
		w.summed = w.sumStandings()
	}
	if len(w.marks) < 3 {
		w.marks = append(w.marks, w.Checkpoint())
	}
}

func (w *world) undo(*rapid.T) {
	if n := len(w.marks); n > 0 {
		w.Undo(w.marks[n-1])
		w.marks = w.marks[:n-1]
	}
	if len(w.marks) > 0 {
		return
	}
	for e, sums := range w.sumStandings() {
		if before, known := w.summed[e]; known && !slices.EqualFunc(before, sums, slices.Equal) {
			w.t.Fatalf("undone: terms come to %v, before to %v", sums, before)
		}
	}
	w.summed = nil
}

// sumStandings is what the terms of placed pods come to.
func (w *world) sumStandings() map[*existing][][]int64 {
	summed := map[*existing][][]int64{}
	for _, s := range w.pl.standings {
		for _, e := range []*existing{s.awayCounts, s.pullCounts} {
			e.sync(w.Table)
			summed[e] = [][]int64{}
			for _, c := range e.columns {
				summed[e] = append(summed[e], slices.Clone(c.Sums[domain.Unnamed:]), []int64{c.Total()})
			}
		}
	}
	return summed
}

// compareStandings: what the terms of placed pods come to, brought up to date, is what
// they come to when all is counted.
func (w *world) compareStandings(t *rapid.T) {
	for e, sums := range w.sumStandings() {
		fresh := &existing{pl: w.pl, weight: e.weight}
		for _, c := range e.columns { // in their order
			fresh.columnOf(w.Table, c.Label)
		}
		var list []*table.Term
		for i := range e.terms {
			list = append(list, e.terms[i].Term)
		}
		fresh = fresh.with(w.Table, list)
		for i, c := range fresh.columns[:len(e.columns)] { // one more: of keys that no node has any more
			if got, total := sums[2*i], sums[2*i+1][0]; !slices.Equal(got, c.Sums[domain.Unnamed:]) || total != c.Total() {
				t.Fatalf("terms by %s come to %v, %d in all; counted anew to %v, %d", c.Label, got, total, c.Sums[domain.Unnamed:], c.Total())
			}
		}
		fresh.release()
	}
}

// release gives the states of a class back, as an engine does that drops it.
func (w *world) release(*rapid.T) {
	if len(w.marks) > 0 {
		return
	}
	key := w.keep(w.pool[w.rand.IntN(len(w.pool))])
	for _, state := range []any{w.kept[key].filter.State, w.kept[key].score.State} {
		if state != nil {
			state.(framework.Releaser).Release()
		}
	}
	delete(w.kept, key)
}

func (w *world) naive(p *object.Pod) *naive {
	n := w.ask
	n.pod = p
	return &n
}

// keep finds or makes the answers for the pod's class.
func (w *world) keep(p *object.Pod) string {
	if now := w.plugin.Epoch(w.Table); w.epoch != now {
		clear(w.kept)
		w.epoch = now
	}
	key := string(w.plugin.Sign(nil, w.Table, p))
	if w.kept[key] == nil {
		w.kept[key] = &class{w.plugin.PreFilter(w.Table, p), w.plugin.PreScore(w.Table, p)}
	}
	return key
}

// skipped reports whether Filter is to skip the pod: it has no required terms, and no required
// anti-affinity of placed or nominated pods is about it.
func (w *world) skipped(p *object.Pod) bool {
	n := w.naive(p)
	return n.skips() && !slices.ContainsFunc(w.nominated, func(o *object.Pod) bool {
		return o.Affinity != nil && slices.ContainsFunc(o.Affinity.AntiAffinity, func(t match.PodTerm) bool { return n.isFound(t) })
	})
}

// decide compares what is kept of a pod's class with what it should say.
func (w *world) decide(t *rapid.T) {
	i := w.rand.IntN(len(w.pool))
	p := w.pool[i]
	var key string
	n, skips := w.naive(p), false
	if len(w.marks) == 0 {
		key, skips = w.keep(p), w.skipped(p)
	} else {
		key, skips = w.keys[i], w.skips[i]
	}
	k := w.kept[key]
	if k.filter.Skip != skips {
		t.Fatalf("pod %s: Filter skipped %v, want %v", p.Name, k.filter.Skip, skips)
	}
	if !skips {
		w.compareFilter(t, n, k.filter.State)
	}
	if k.score.Skip {
		for node, want := range n.scores() {
			if want != 0 && len(w.marks) == 0 {
				t.Fatalf("pod %s: Score skipped, node %s has %d", p.Name, node, want)
			}
		}
	} else if len(w.marks) == 0 { // nothing is scored during a try
		w.compareScores(t, n, k.score.State)
	}
}

func (w *world) compareFilter(t *rapid.T, n *naive, state any) {
	in := &framework.Input{Table: w.Table, State: state}
	w.plugin.CellFilter.Sync(in)
	cells, byRow := w.cells(in, w.plugin.CellFilter.Cells), make([]framework.Verdict, w.Rows())
	w.plugin.CellFilter.Rows(in, w.All(), byRow)
	for node, want := range n.verdicts() {
		r, _ := w.Find(node)
		if len(n.nominated[node]) > 0 {
			continue
		}
		if got := w.plugin.CellFilter.Filter(in, cells[r]); got != want || byRow[r] != want {
			t.Fatalf("pod %s, node %s: verdict %d, by row %d, want %d", n.pod.Name, node, got, byRow[r], want)
		}
	}
}

func (w *world) compareScores(t *rapid.T, n *naive, state any) {
	in := &framework.Input{Table: w.Table, State: state}
	w.plugin.CellScore.Sync(in)
	cells, byRow := w.cells(in, w.plugin.CellScore.Cells), make([]int64, w.Rows())
	w.plugin.CellScore.Rows(in, w.All(), byRow)
	for node, want := range n.scores() {
		r, _ := w.Find(node)
		if got := w.plugin.CellScore.Score(in, cells[r]); got != want || byRow[r] != want {
			t.Fatalf("pod %s, node %s: score %d, by row %d, want %d", n.pod.Name, node, got, byRow[r], want)
		}
	}
}

// cells asks for all rows at once, and for each alone.
func (w *world) cells(in *framework.Input, of func(*framework.Input, []table.Row, []int64)) []int64 {
	all, single := make([]int64, w.Rows()), make([]int64, 1)
	of(in, in.Table.All(), all)
	for r := range all {
		if of(in, in.Table.All()[r:r+1], single); single[0] != all[r] {
			w.t.Fatalf("row %d: cell %d among all, %d alone", r, all[r], single[0])
		}
	}
	return all
}

// Kept answers equal those of a naive walk over all pods, for every pod of the
// class, through placements, tries, nodes and namespaces that change; and a
// row's cell changes only with the row.
func TestKeptCountsAreRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"":            w.decide,
			"set node":    w.setNode,
			"remove node": w.removeNode,
			"namespace":   w.setNamespace,
			"place":       w.place,
			"place more":  w.place,
			"remove":      w.remove,
			"storm":       w.storm,
			"checkpoint":  w.checkpoint,
			"undo":        w.undo,
			"still":       w.still,
			"release":     w.release,
			"standings":   w.compareStandings,
		})
	})
}

// still: rows that did not change keep their cells, whatever happens elsewhere.
func (w *world) still(t *rapid.T) {
	if len(w.marks) > 0 {
		return
	}
	k := w.kept[w.keep(w.pool[0])]
	if k.filter.Skip {
		return
	}
	in := &framework.Input{Table: w.Table, State: k.filter.State}
	w.plugin.CellFilter.Sync(in)
	before, since, epoch := w.cells(in, w.plugin.CellFilter.Cells), w.Revision(), w.plugin.Epoch(w.Table)
	for range 3 {
		w.setNode(t)
		w.place(t)
		w.remove(t)
	}
	if w.plugin.Epoch(w.Table) != epoch {
		return
	}
	changed := map[table.Row]bool{}
	for _, r := range w.AppendChanged(nil, since, w.Rows()) {
		changed[r] = true
	}
	w.plugin.CellFilter.Sync(in)
	for r, cell := range w.cells(in, w.plugin.CellFilter.Cells) {
		if r < len(before) && before[r] != cell && !changed[table.Row(r)] {
			t.Fatalf("row %d: cell %d before, %d now; changed %v", r, before[r], cell, changed)
		}
	}
}

// What is said of rows without some of their pods is what a try says.
func TestExchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range 6 {
			w.setNode(t)
		}
		for range 4 {
			for range 8 {
				w.place(t)
			}
			w.without(t)
		}
	})
}

// without compares for all pods of the pool and all rows.
func (w *world) without(t *rapid.T) {
	for _, p := range w.pool {
		w.Terms().Track(p)
	}
	for i, p := range w.pool {
		k := w.kept[w.keep(p)]
		if k.filter.Skip {
			continue
		}
		in := &framework.Input{Table: w.Table, Pod: p, State: k.filter.State}
		for _, r := range w.All() {
			if w.Node(r) != nil && len(w.Pods(r)) > 0 {
				below := 1 + w.rand.Int32N(2)
				plugintest.CheckExchanged(t, &w.plugin, in, r, below)
				if came := w.pool[(i+1)%len(w.pool)]; w.Pod(came.UID) == nil {
					plugintest.CheckExchanged(t, &w.plugin, in, r, below, came)
				}
			}
		}
	}
}
