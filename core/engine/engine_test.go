package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// grid is a table of n nodes that differ in zone and rank, and its profile.
func grid(n int) (*table.Table, *profile.Profile) {
	t := table.New()
	for i := range n {
		t.SetNode(newNode(fmt.Sprint("node-", i), map[string]string{
			"zone": zones[i%3], "rank": fmt.Sprint(i % 7), "score": fmt.Sprint(i % 5),
		}, 4000, 4000))
	}
	byRows := slices.DeleteFunc(rules(&switchboard{}), func(ru *rule) bool { return ru.rejectZone != nil || ru.scoreZone != nil })
	return t, buildProfile(byRows)
}

// However many workers share a decision, it is the same.
func TestWorkersDoNotMatter(t *testing.T) {
	tb, p := grid(6000)
	r := rand.New(rand.NewPCG(1, 1))
	one, four := New(tb, seed, 1), New(tb, seed, 4)
	for i := range 40 {
		pod := newPod(fmt.Sprint("p", i), map[string]string{"app": fmt.Sprint(i % 4), "zone": []string{"", "b"}[i%2]}, int64(r.IntN(3000)), 10)
		a, b := one.Decide(For(p, pod), nil), four.Decide(For(p, pod), nil)
		if x, y := answerOf(tb, a), answerOf(tb, b); !reflect.DeepEqual(x, y) {
			t.Fatalf("pod %d: %s", i, differ(y, x))
		}
		for range r.IntN(1000) {
			tb.AddPod(newPod(fmt.Sprint("q", r.IntN(9000)), nil, 1000, 10), fmt.Sprint("node-", r.IntN(6000)))
		}
		tb.AddPod(pod, tb.Name(a.Row))
	}
	for _, e := range []*Engine{one, four} {
		if err := e.Check(); err != nil {
			t.Error(err)
		}
	}
}

// Views of classes that never come back push out each other alone.
func TestViewsOnTrialAreFew(t *testing.T) {
	tb, p := grid(100)
	e := New(tb, seed, 1)
	for i := range 3 * seenClasses / 2 {
		pod := newPod("p", nil, int64(i), 1)
		if i%1000 != 0 {
			e.cache.visit(e.classOf(For(p, pod)))
			continue
		}
		e.Decide(For(p, pod), nil)
	}
	if len(e.cache.views) > mostTrials || e.cache.promoted != 0 || len(e.cache.seen) > seenClasses {
		t.Errorf("%d views, %d of them to stay, %d classes remembered", len(e.cache.views), e.cache.promoted, len(e.cache.seen))
	}
}

// Views take no more memory than they may; those used last stay.
func TestViewsAreBounded(t *testing.T) {
	tb, p := grid(100)
	e := New(tb, seed, 1)
	e.cache.budget = 10 * (fixedRows + tb.Rows())
	favourite := newPod("favourite", map[string]string{"app": "f"}, 1, 1)
	often := func(pod *object.Pod) {
		for range cellsFrom {
			e.Decide(For(p, pod), nil)
		}
	}
	often(favourite)
	view := e.classOf(For(p, favourite)).Kept
	for i := range 300 {
		// A label that is read by a plugin that looks at nodes alone, so that
		// partitions are made as well.
		often(newPod("p", map[string]string{"zone": fmt.Sprint("z", i)}, int64(i), 1))
		if i%5 == 0 {
			e.Decide(For(p, favourite), nil)
		}
		if e.cache.promoted > 10 || len(e.cache.views) > 10+mostTrials {
			t.Fatalf("%d views, %d of them to stay after %d classes", len(e.cache.views), e.cache.promoted, i)
		}
	}
	if e.cache.views[view.class.Signature] != view {
		t.Error("the view that was used all the time is gone")
	}
	e.cache.budget = 1
	often(newPod("p", nil, 5000, 1))
	if e.cache.promoted != 1 {
		t.Errorf("%d views; the one in use stays, and no other", e.cache.promoted)
	}
}

// keeping is an engine that keeps one view.
func keeping(t *testing.T, tb *table.Table, p *profile.Profile, pod *object.Pod) (*Engine, *view) {
	t.Helper()
	e := New(tb, seed, 1)
	for range cellsFrom {
		e.Decide(For(p, pod), nil)
	}
	v := e.classOf(For(p, pod)).Kept
	if v == nil || !v.index.Bucketed {
		t.Fatal("no view with buckets")
	}
	return e, v
}

// More nodes are more rows to look at, and no reason to look at the others.
func TestViewsGrow(t *testing.T) {
	tb, p := grid(200)
	pod := newPod("p", nil, 100, 100)
	e, v := keeping(t, tb, p, pod)
	for i := range 20 {
		tb.SetNode(newNode(fmt.Sprint("more-", i), nil, 4000, 4000))
	}
	asked, last := 0, p.Filter[len(p.Filter)-1]
	filter := last.Filter
	last.Filter = func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
		asked += len(rows)
		filter(in, rows, out)
	}
	if e.Decide(For(p, pod), nil); v.index.Feasible != 220 || asked != 20 {
		t.Errorf("%d feasible rows, %d asked about", v.index.Feasible, asked)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}

// Labels that come and go without end leave buckets behind that have no row any
// more; when these are too many all rows are bucketed anew.
func TestRowsAreBucketedAnew(t *testing.T) {
	tb, p := grid(60)
	pod := newPod("p", nil, 100, 100)
	e, v := keeping(t, tb, p, pod)
	for i := range 100 {
		name := fmt.Sprint("node-", i%5)
		tb.SetNode(newNode(name, map[string]string{"zone": "b", "rank": fmt.Sprint(100 + i), "score": "1"}, 4000, 4000))
		e.Decide(For(p, pod), nil)
		if err := e.Check(); err != nil {
			t.Fatalf("after %d changes: %v", i, err)
		}
		if !v.index.Bucketed {
			t.Fatalf("no buckets after %d changes", i)
		}
	}
}

// plant has the index know of another answer for the row.
func (v *view) plant(r table.Row, c ranking.Cause, score int64) {
	found := &ranking.Answers{Filter: []int16{c.Filter}, Verdict: []uint64{c.Verdict}, Score: []int64{score}}
	for k := range v.columns {
		found.Values = append(found.Values, []int64{0})
		if v.index.IsFeasible(r) {
			found.Values[k][0] = v.index.Value(r, k)
		}
	}
	v.index.Update([]table.Row{r}, found)
}

// Check finds answers that are not those of today, wherever they stand.
func TestCheckFindsStaleness(t *testing.T) {
	plants := map[string]func(*Engine, *view){
		"feasible row":   func(_ *Engine, v *view) { v.plant(4, ranking.Cause{Filter: 2, Verdict: 1}, 0) },
		"infeasible row": func(_ *Engine, v *view) { v.plant(0, ranking.Cause{}, 1) },
		"closed row":     func(_ *Engine, v *view) { v.index.Close(4) },
		"open row":       func(_ *Engine, v *view) { v.plant(0, ranking.Cause{Filter: 2, Verdict: 7}, 0) },
		"score":          func(_ *Engine, v *view) { v.plant(4, ranking.Cause{}, v.index.Score(4)+1) },
		"kept verdict":   func(_ *Engine, v *view) { v.filters[0].partition.Sets[0].Rows[0] ^= 1 << 4 },
		"kept score": func(_ *Engine, v *view) {
			k := slices.IndexFunc(v.scorers, func(s scorer) bool { return s.partition != nil && s.partition.Sets != nil })
			v.scorers[k].partition.Sets[0].Rows[0] ^= 1 << 4
		},
		"count":        func(_ *Engine, v *view) { v.index.Feasible-- },
		"out of range": func(_ *Engine, v *view) { v.index.OutOfRange++ },
	}
	for name, plant := range plants {
		tb, p := grid(60)
		e, v := keeping(t, tb, p, newPod("p", map[string]string{"zone": "b"}, 100, 100))
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
		if v.index.IsFeasible(0) || !v.index.IsFeasible(4) {
			t.Fatal("the test plants where it should not")
		}
		if plant(e, v); e.Check() == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

// A failure is not kept: the next pod of the class is asked about anew.
func TestFailuresAreNotKept(t *testing.T) {
	tb, p := grid(10)
	broken := p.Score[2].PreScore
	p.Score[2].Plugin.PreScore = func(*table.Table, *object.Pod) framework.PreScoreResult {
		return framework.PreScoreResult{Status: &decision.Status{Code: decision.Error, Err: errors.New("broken")}}
	}
	e, pod := New(tb, seed, 1), newPod("p", nil, 1, 1)
	for range 3 { // once it is known to come back
		if o := e.Decide(For(p, pod), nil); o.Rejected == nil || o.Row >= 0 || o.Feasible != 10 {
			t.Fatalf("rejected %v, row %d, %d feasible", o.Rejected, o.Row, o.Feasible)
		}
	}
	p.Score[2].Plugin.PreScore = broken
	if o := e.Decide(For(p, pod), nil); o.Rejected != nil || o.Row < 0 {
		t.Errorf("still rejected: %v", o.Rejected)
	}
}

// Reset forgets, and changes no decision.
func TestReset(t *testing.T) {
	tb, p := grid(100)
	pod := newPod("p", map[string]string{"app": "a"}, 100, 100)
	e, _ := keeping(t, tb, p, pod)
	want := answerOf(tb, e.Decide(For(p, pod), nil))
	e.Reset()
	if partitions, _ := e.cache.store.Len(); len(e.cache.views)+partitions != 0 {
		t.Errorf("%d views, %d partitions", len(e.cache.views), partitions)
	}
	if diff := differ(answerOf(tb, e.Decide(For(p, pod), nil)), want); diff != "" {
		t.Error(diff)
	}
}

// equals is a table of n nodes that nothing tells apart, whatever is on them.
func equals(n int) (*table.Table, *profile.Profile) {
	t := table.New()
	for i := range n {
		t.SetNode(newNode(fmt.Sprint("node-", i), nil, 0, 0))
	}
	return t, buildProfile([]*rule{{name: "Same", weight: 1, score: func(*object.Pod, site) int64 { return 50 }}})
}

// chiSquare is the sum over all bins of (got-want)^2/want. For 10 bins it
// exceeds 27.9 once in a thousand times.
func chiSquare(got []int) float64 {
	n, sum := 0, 0.0
	for _, g := range got {
		n += g
	}
	want := float64(n) / float64(len(got))
	for _, g := range got {
		sum += (float64(g) - want) * (float64(g) - want) / want
	}
	return sum
}

// Among equals each is chosen as often as any other: by the seed, and in one
// run as the pods come. What was chosen last says nothing of what comes next.
func TestTiesAreUniform(t *testing.T) {
	const n = 5000
	tb, p := equals(10)
	bySeed, byPod, pairs := make([]int, 10), make([]int, 10), make([]int, 100)
	for i := range n {
		o := New(tb, uint64(i), 1).Decide(For(p, newPod("p", nil, 0, 0)), nil)
		if bySeed[o.Row]++; o.Ties != 10 {
			t.Fatalf("%d ties", o.Ties)
		}
	}
	e, last := New(tb, seed, 1), table.Row(0)
	for i := range n {
		pod := newPod(fmt.Sprint("p", i), nil, 0, 0)
		o := e.Decide(For(p, pod), nil)
		byPod[o.Row]++
		pairs[last*10+o.Row]++
		last = o.Row
		tb.AddPod(pod, tb.Name(o.Row))
	}
	if x := chiSquare(bySeed); x > 27.9 {
		t.Errorf("over seeds: chi-square %.1f, %v", x, bySeed)
	}
	if x := chiSquare(byPod); x > 27.9 {
		t.Errorf("over pods: chi-square %.1f, %v", x, byPod)
	}
	if x := chiSquare(pairs); x > 148 { // 100 bins
		t.Errorf("one after the other: chi-square %.1f, %v", x, pairs)
	}
}

// A pod that is tried on one node counts in its domain for as long as it is
// tried, and no longer.
func TestTriedPodsAreForgotten(t *testing.T) {
	tb := table.New()
	for _, name := range []string{"n", "m"} {
		tb.SetNode(newNode(name, map[string]string{"zone": "a"}, 1000, 1000))
		tb.AddPod(newPod("on "+name, map[string]string{"app": "x"}, 1, 1), name)
	}
	for _, name := range []string{"friendly", "too"} {
		tb.SetNode(newNode(name, map[string]string{"zone": "b"}, 1000, 1000))
		tb.AddPod(newPod("friend on "+name, map[string]string{"app": "y"}, 1, 1), name)
	}
	p := buildProfile(rules(&switchboard{}))
	pod := newPod("p", map[string]string{"app": "x", "spread": "yes", "friend": "y"}, 1, 1)
	nominated := podsByNode{"n": {newPod("q", map[string]string{"app": "x"}, 1, 1)}}
	e := New(tb, seed, 1)
	for range 3 { // then there is a view, which asks by buckets
		e.Decide(For(p, pod), nominated)
	}
	o := e.Decide(For(p, pod), nominated)
	want := "1 {Spread Unschedulable [too many by 1] []}; 1 {Together Unschedulable [no friend] []}"
	if got := answerOf(tb, o).tallies; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Room that is kept for a pod is kept from others alone.
func TestOwnNominationKeepsNoRoom(t *testing.T) {
	tb, p := grid(0)
	tb.SetNode(newNode("n", nil, 1000, 1000))
	pod, other := newPod("p", nil, 600, 1), newPod("q", nil, 600, 1)
	nominated, e := podsByNode{"n": {pod}}, New(tb, seed, 1)
	if o := e.Decide(For(p, pod), nominated); o.Row < 0 {
		t.Errorf("the pod is kept off the node that it is nominated to: %v", o.Tallies())
	}
	if o := e.Decide(For(p, other), nominated); o.Row >= 0 {
		t.Error("another pod is placed where the room is kept")
	}
}

// A pod that is put where it was nominated to can be asked for the scores of all nodes.
func TestScoresBesideAnOwnNomination(t *testing.T) {
	tb, p := table.New(), buildProfile(rules(&switchboard{}))
	for name, zone := range map[string]string{"n": "a", "m": "b"} { // any order
		tb.SetNode(newNode(name, map[string]string{"zone": zone}, 1000, 1000))
	}
	for i, name := range []string{"n", "m", "m"} {
		tb.AddPod(newPod(fmt.Sprint(i), map[string]string{"app": "x"}, 1, 1), name)
	}
	labels := map[string]string{"app": "x"}
	pod, nominated := newPod("p", labels, 1, 1), newPod("p", labels, 1, 1)
	nominated.NominatedNode = "n"
	want := New(tb, seed, 1).Decide(For(p, pod), nil).Nodes()
	for _, by := range []Nominator{nil, podsByNode{"n": {nominated}}} {
		o := New(tb, seed, 1).Decide(For(p, nominated), by)
		if got := o.Nodes(); tb.Name(o.Row) != "n" || !reflect.DeepEqual(got, want) {
			t.Errorf("node %s, %+v, want n, %+v", tb.Name(o.Row), got, want)
		}
	}
}
