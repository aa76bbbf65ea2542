package preempt

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/table"
)

// A pod within its queue's min gets back what that has lent from whatever nodes, by as few
// evictions as brute force finds. Who lent keeps its min, and every victim is needed. The most
// important victim comes first. With strict budgets the victims violate none.
func TestReclaimAcrossNodes(t *testing.T) {
	found := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
		w := newWorld(pod("b/p", 0, int64(number("cpu", 1, 3))))
		w.quotas = &framework.QuotaRules{}
		strict := rapid.Bool().Draw(t, "strict")
		if strict || rapid.Bool().Draw(t, "budget") {
			w.budget("a", "b", int32(number("allowed", 0, 2)))
		}
		var lent []*object.Pod
		rows := map[*object.Pod]table.Row{}
		for n := range number("nodes", 1, 3) {
			var here []*object.Pod
			for i := range number("pods", 0, 3) {
				here = append(here, pod(fmt.Sprintf("a/%d-%d", n, i), int32(number("priority", 0, 2)), 1, startedAt(-number("age", 1, 9)),
					app(rapid.SampledFrom([]string{"b", "c"}).Draw(t, "app"))))
			}
			w.node(fmt.Sprint(n), int64(len(here)+number("free", 0, 3)), here...)
			for _, p := range here {
				rows[p] = w.table.Pod(p.UID).Row
			}
			lent = append(lent, here...)
		}
		least := int64(number("min of a", 0, 6))
		for namespace, amount := range map[string]int64{"a": least, "b": int64(number("min of b", 0, 4))} {
			w.table.Objects().Set(&object.ElasticQuota{Meta: object.Meta{Kind: object.ElasticQuotas, Namespace: namespace, Name: "q"},
				Min: object.Amounts{{Name: v1.ResourceCPU, Value: amount}}})
		}
		fits := func(r table.Row) bool {
			return w.refit(r) == nil && quota.Of(w.table).Exceeded(&quota.Ask{Pod: w.pod}) == nil
		}
		if slices.ContainsFunc(w.table.All(), fits) {
			return
		}
		c := w.call()
		c.Disruption.Strict = strict
		c.Filters.Local, c.Filters.Rows = true, w.table.All()
		c.Filters.Code = func(table.Row) decision.Code { return decision.Unschedulable }
		c.Filters.Run = func(r table.Row) *decision.Blocker {
			if fits(r) {
				return nil
			}
			return &decision.Blocker{Code: decision.Unschedulable}
		}
		before := picture(w.table)
		plan, _, err := new(Finder).Find(c, everything)
		if after := picture(w.table); err != nil || after != before {
			t.Fatalf("the table is %s, and was %s: %v", after, before, err)
		}
		allowed := func(gone []*object.Pod) bool { return !strict || !violates(w.budgets, gone) }
		// without returns whether the pod fits the row, or any for nil, without the pods.
		without := func(r *table.Row, gone []*object.Pod) bool {
			mark := w.table.Checkpoint()
			defer w.table.Undo(mark)
			for _, p := range gone {
				w.table.RemovePod(p.UID)
			}
			return r != nil && fits(*r) || r == nil && slices.ContainsFunc(w.table.All(), fits)
		}
		entitled, fewest := quota.Of(w.table).Reclaim(&quota.Ask{Pod: w.pod}, nil).Entitled(), -1
		for set := range 1 << len(lent) {
			var gone []*object.Pod
			for i, p := range lent {
				if set>>i&1 == 1 {
					gone = append(gone, p)
				}
			}
			if entitled && int64(len(lent)-len(gone)) >= least && (fewest < 0 || len(gone) < fewest) && allowed(gone) && without(nil, gone) {
				fewest = len(gone)
			}
		}
		if (plan == nil) != (fewest < 0) {
			t.Fatalf("got %s; brute force finds %d victims", plan.text(), fewest)
		}
		if plan == nil {
			found["none"]++
			return
		}
		r, _ := w.table.Find(plan.Node)
		elsewhere := slices.ContainsFunc(plan.Victims, func(p *object.Pod) bool { return rows[p] != r })
		found[fmt.Sprint("elsewhere ", elsewhere)]++
		if !without(&r, plan.Victims) || int64(len(lent)-len(plan.Victims)) < least || !allowed(plan.Victims) {
			t.Fatalf("%s: it does not fit, a is below its min, or a budget is violated", plan.text())
		}
		if strict && len(w.budgets) > 0 {
			found["strict"]++
		}
		for i, p := range plan.Victims {
			if p.Priority > plan.Victims[0].Priority {
				t.Fatalf("%s: victim %d is more important than the first", plan.text(), i)
			}
			if without(&r, slices.Delete(slices.Clone(plan.Victims), i, i+1)) {
				t.Fatalf("%s: victim %d need not go", plan.text(), i)
			}
		}
		if same := !slices.ContainsFunc(lent, func(p *object.Pod) bool { return p.Priority != lent[0].Priority }); same && len(plan.Victims) != fewest {
			t.Fatalf("%s; %d are enough", plan.text(), fewest)
		}
	})
	if len(found) < 3 {
		t.Errorf("found %v", found)
	}
}

// Where the least important pod of the lender would leave too little of its min to let a larger
// one go, the larger one goes alone, and the lender never falls below its min.
func TestReclaimOfTheLargerPod(t *testing.T) {
	for least, want := range map[int64]string{1: "n: large, 0 violations", 2: ""} { // any order: worlds of their own
		w := newWorld(pod("b/p", 0, 2))
		w.quotas = &framework.QuotaRules{}
		w.node("n", 3, pod("a/large", 0, 2, startedAt(-9)), pod("a/small", 0, 1, startedAt(-1)))
		for namespace, amount := range map[string]int64{"a": least, "b": 2} { // any order: each has its own
			w.table.Objects().Set(&object.ElasticQuota{Meta: object.Meta{Kind: object.ElasticQuotas, Namespace: namespace, Name: "q"},
				Min: object.Amounts{{Name: v1.ResourceCPU, Value: amount}}})
		}
		plan, _, err := new(Finder).Find(w.call(), everything)
		if got := plan.text(); err != nil || got != want {
			t.Errorf("with a min of %d: %q, %v; want %q", least, got, err, want)
		}
	}
}

// A pod whose victims are leaving another node waits for them.
func TestWaitsForVictimsElsewhere(t *testing.T) {
	w := newWorld(pod("b/p", 0, 1))
	gone, leaves := pod("a/gone", 0, 1), pod("a/leaves", 0, 1)
	w.node("n", 0).node("m", 1, leaves)
	w.own = "n"
	c := w.call()
	c.Nominations.Leaving = []*object.Pod{gone}
	if why := NotEligible(c); why != "" {
		t.Errorf("got %q, and the victim is gone", why)
	}
	if c.Nominations.Leaving = append(c.Nominations.Leaving, leaves); NotEligible(c) != reasonTerminating {
		t.Errorf("got %q", NotEligible(c))
	}
}
