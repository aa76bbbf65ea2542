package preempt

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// TestFindIsTheBestOfAll compares Find with a search that tries every set of
// victims on every node of a small cluster.
func TestFindIsTheBestOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		limits := Limits{Percentage: rapid.SampledFrom([]int{100, 100, 0, 50}).Draw(t, "percentage"), Absolute: 1}
		plan, refused, err := w.find(t, limits)
		if err != nil {
			t.Fatalf("%v", err)
		}
		all := w.allPlans()
		if plan == nil {
			nodes := 0
			for _, r := range refused {
				nodes += r.Nodes
			}
			if len(all) > 0 || nodes != w.table.Live() {
				t.Fatalf("no plan, %d nodes of %d refused; there is %v", nodes, w.table.Live(), all)
			}
			return
		}
		at := slices.IndexFunc(all, func(b brutePlan) bool { return b.node == plan.Node })
		if at < 0 || !slices.Equal(plan.Victims, all[at].victims) || plan.NumPDBViolations != all[at].violations {
			t.Fatalf("got %s; of all sets of victims the best are %v", plan.text(), all)
		}
		best := slices.MinFunc(all, brutePlan.compare)
		if limits.Percentage == 100 && all[at].compare(best) != 0 {
			t.Fatalf("got %s; better is %v", plan.text(), best)
		}
		if plan.NumPDBViolations > 0 && best.violations == 0 {
			t.Fatalf("got %s; without violations there is %v", plan.text(), best)
		}
		w.checkMinimal(t, plan)
	})
}

// TestKeptRanksAreThoseMadeAnew lets things happen to a cluster between pods of
// one class, and compares what Find says with what was kept to what it says
// without, and with a try of every node.
func TestKeptRanksAreThoseMadeAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.spread = rapid.Bool().Draw(t, "spread")
		limits := Limits{Percentage: rapid.SampledFrom([]int{100, 0}).Draw(t, "percentage"), Absolute: 1}
		strict, finder := rapid.Bool().Draw(t, "strict"), &Finder{}
		for i := range rapid.IntRange(2, 6).Draw(t, "pods") {
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				w.change(t, i)
			}
			with, without := w.call(), w.call()
			with.Check, without.Check, without.Cache = true, true, nil
			with.Disruption.Strict, without.Disruption.Strict = strict, strict
			plan, refused, err := finder.Find(with, limits)
			again, why, _ := finder.Find(without, limits)
			if err != nil || plan.text() != again.text() || fmt.Sprint(refused) != fmt.Sprint(why) {
				t.Fatalf("got %s, %v, %v; afresh it is %s, %v", plan.text(), refused, err, again.text(), why)
			}
			w.checkHeap(t)
		}
	})
}

// checkHeap checks that each row that may have a plan is on the heap once.
func (w *world) checkHeap(t *rapid.T) {
	k, ranked := w.kept.(*ranks)
	if !ranked {
		return
	}
	for i, row := range k.heap {
		if int(k.rows[row].at) != i+1 {
			t.Fatalf("row %d is on the heap at %d and %d", row, i+1, k.rows[row].at)
		}
	}
	for row := range k.rows {
		if r := &k.rows[row]; r.mayHavePlan() != (r.at > 0) {
			t.Fatalf("row %d: outlook %d, refusal %v, on the heap at %d", row, r.outlook, r.refusal, r.at)
		}
	}
}

// change is something that happens between two pods.
func (w *world) change(t *rapid.T, round int) {
	number := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	node := fmt.Sprintf("n%d", number("node", 0, w.table.Rows()))
	row, known := w.table.Find(node)
	switch number("what", 0, 10) {
	case 10:
		w.quota(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "namespace"), number("there", 0, 1) == 1)
	case 0, 1:
		p := pod(fmt.Sprintf("x/late-%d-%d", round, number("pod", 0, 9)), w.priorities[number("priority", 0, 5)], int64(number("cpu", 0, 4)),
			startedAt(number("age", -3, 1)))
		if number("starts", 0, 2) == 0 {
			notStarted(p)
		}
		if number("guarded", 0, 1) == 0 {
			app("b")(p)
		}
		if known {
			w.table.AddPod(p, node)
		}
	case 2, 3:
		if known && len(w.table.Pods(row)) > 0 {
			w.table.RemovePod(w.table.Pods(row)[0].Pod.UID)
		}
	case 4:
		w.node(node, int64(number("room", 0, 8)))
	case 5, 8, 9:
		w.renominated = append(w.renominated, node)
		w.nominated[node] = append(slices.Clone(w.nominated[node]), pod(fmt.Sprint("nominated", round, len(w.renominated)), w.priorities[number("priority", 2, 5)], int64(number("cpu", 0, 3))))
	case 6:
		w.renominated = append(w.renominated, node)
		if delete(w.nominated, node); number("own", 0, 1) == 0 && w.own == "" {
			w.nominated[node], w.own = []*object.Pod{w.pod}, node
		} else if w.own != "" { // the next of the class
			next := *w.pod
			next.UID, w.own = w.pod.UID+"'", ""
			w.pod = &next
		}
	case 7:
		if w.budgets = slices.Clone(w.budgets); len(w.budgets) > 0 && number("lifted", 0, 2) > 0 {
			w.budgets = w.budgets[1:]
			return
		}
		w.budget("x", "b", int32(number("allowed", 0, 2)))
	}
}

// checkMinimal: every victim is needed, and none is the preemptor's equal.
func (w *world) checkMinimal(t *rapid.T, plan *Plan) {
	row, _ := w.table.Find(plan.Node)
	for _, spared := range plan.Victims {
		var stay []*object.Pod
		for _, pl := range w.table.Pods(row) {
			if pl.Pod == spared || !slices.Contains(plan.Victims, pl.Pod) {
				stay = append(stay, pl.Pod)
			}
		}
		if w.fits(plan.Node, stay) {
			t.Fatalf("%s: %s need not go", plan.text(), spared.Name)
		}
		if !w.mayGo(spared) {
			t.Fatalf("%s: %s may not go", plan.text(), spared.Name)
		}
	}
}

func drawWorld(t *rapid.T) *world {
	number := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	decorate := func(p *object.Pod) {
		if number("port", 0, 3) == 0 {
			port(int32(80 + number("which port", 0, 1)))(p)
		}
		if a := number("app", 0, 3); a > 0 {
			app(string(rune('a' + a)))(p)
		}
	}
	priorities := rapid.SampledFrom([][]int32{{0, 1, 2, 3, 4, 5}, {math.MinInt32, math.MinInt32 + 1, -1, 0, math.MaxInt32 - 1, math.MaxInt32}}).Draw(t, "priorities")
	w := newWorld(pod("p", priorities[number("preemptor's priority", 2, 5)], int64(number("preemptor's cpu", 0, 6)), decorate))
	w.priorities = priorities
	for n := range number("nodes", 1, 6) {
		name := fmt.Sprintf("n%d", n)
		w.node(name, int64(number("room", 0, 8)))
		for i := range number("pods", 0, 6) {
			w.table.AddPod(pod(fmt.Sprintf("%s/%s-%d", rapid.SampledFrom([]string{"x", "y"}).Draw(t, "namespace"), name, i),
				w.priorities[number("priority", 0, 5)], int64(number("cpu", 0, 4)), decorate, startedAt(-number("age", 1, 3))), name)
		}
		if number("nominated", 0, 4) == 0 {
			nominate(w, name, pod("nominated-"+name, w.priorities[number("priority", 0, 5)], int64(number("cpu", 0, 3))))
		}
		w.closed[name] = number("closed", 0, 6) == 0
		w.silent[name] = number("silent", 0, 2) == 0
	}
	for range number("budgets", 0, 4) {
		w.budget(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "namespace"), string(rune('a'+number("app", 1, 3))), int32(number("allowed", 0, 2)),
			fmt.Sprintf("n%d-%d", number("node", 0, 5), number("pod", 0, 5)))
	}
	if number("quotas", 0, 2) > 0 {
		w.quotas = &framework.QuotaRules{}
		w.quota("x", number("quota of x", 0, 3) > 0)
	}
	w.draw = number("draw", 0, 5)
	return w
}

func (w *world) fits(node string, pods []*object.Pod) bool {
	row, _ := w.table.Find(node)
	n := w.table.Node(row)
	for _, q := range w.nominated[node] {
		if q.Priority >= w.pod.Priority {
			pods = append(slices.Clip(pods), q)
		}
	}
	return !w.closed[node] && block(n, w.pod, pods) == nil
}

type brutePlan struct {
	node       string
	victims    []*object.Pod
	violations int
}

func (b brutePlan) String() string {
	return (&Plan{Node: b.node, Victims: b.victims, NumPDBViolations: b.violations}).text()
}

// compare is the order of kube-scheduler's five criteria, written once more.
func (b brutePlan) compare(o brutePlan) int {
	rank := func(p brutePlan) []int64 {
		highest, sum, since := p.victims[0].Priority, int64(0), now
		for _, v := range p.victims {
			highest, sum = max(highest, v.Priority), sum+int64(v.Priority)+(1<<31)
		}
		for _, v := range p.victims {
			if v.Priority == highest && v.Started.Before(since) {
				since = v.Started
			}
		}
		return []int64{int64(p.violations), int64(highest), sum, int64(len(p.victims)), -since.Unix()}
	}
	return slices.Compare(rank(b), rank(o))
}

// allPlans has the plan of each node that has one: of all sets of lower pods
// that may stay beside the pod, the one that keeps the first in kube-scheduler's order
// of pardon, then the second, and so on.
func (w *world) allPlans() []brutePlan {
	var plans []brutePlan
	for r := range w.table.Rows() {
		node := w.table.Name(table.Row(r))
		var others, lower []*object.Pod
		for _, pl := range w.table.Pods(table.Row(r)) {
			if w.mayGo(pl.Pod) {
				lower = append(lower, pl.Pod)
			} else {
				others = append(others, pl.Pod)
			}
		}
		if w.fits(node, slices.Concat(others, lower)) {
			continue // not one that the filters rejected
		}
		slices.SortFunc(lower, func(a, b *object.Pod) int {
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Started.Compare(b.Started),
				cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		guarded := map[*object.Pod]bool{}
		for i, p := range lower {
			guarded[p] = w.overdrawn(lower[:i+1])
		}
		pardon := slices.Clone(lower)
		slices.SortStableFunc(pardon, func(a, b *object.Pod) int {
			if guarded[a] == guarded[b] {
				return 0
			} else if guarded[a] {
				return -1
			}
			return 1
		})
		for set := 1<<len(pardon) - 1; set >= 0; set-- { // the first in the highest bit
			stay, goes := slices.Clone(others), map[*object.Pod]bool{}
			for i, p := range pardon {
				if set>>(len(pardon)-1-i)&1 == 1 {
					stay = append(stay, p)
				} else {
					goes[p] = true
				}
			}
			if !w.fits(node, stay) {
				continue
			}
			b := brutePlan{node: node}
			for _, p := range lower {
				if goes[p] {
					b.victims = append(b.victims, p)
					if guarded[p] {
						b.violations++
					}
				}
			}
			plans = append(plans, b)
			break
		}
	}
	return plans
}

// overdrawn reports whether the eviction of the last pod violates a budget, after the evictions of
// the pods before it. A pod that violates a budget does not count for the budgets after that one, as
// in kube-scheduler (FilterVictimsWithPDBViolation).
func (w *world) overdrawn(pods []*object.Pod) (over bool) {
	charged := map[*object.Budget]int32{}
	for _, p := range pods {
		over = slices.ContainsFunc(w.budgets, func(b *object.Budget) bool {
			if !b.Counts(p) {
				return false
			}
			charged[b]++
			return charged[b] > b.Allowed
		})
	}
	return over
}
