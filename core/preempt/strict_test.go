package preempt

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// violates reports whether a budget does not allow that all of the victims go, counted by
// itself.
func violates(budgets []*object.Budget, victims []*object.Pod) bool {
	return slices.ContainsFunc(budgets, func(b *object.Budget) bool {
		n := int32(0)
		for _, v := range victims {
			if v.Namespace == b.Namespace && b.Counts(v) {
				n++
			}
		}
		return n > max(b.Allowed, 0)
	})
}

// With strict budgets no plan violates one, a plan without violation is found as without
// strict, and if there is no plan that is so for each node.
func TestStrictBudgets(t *testing.T) {
	refusals, clean, finder := 0, 0, &Finder{}
	check := func(t *rapid.T) {
		w := drawWorld(t)
		w.spread = rapid.Bool().Draw(t, "spread")
		plain, c := w.call(), w.call()
		plain.Check, plain.Cache = true, nil
		c.Disruption.Strict, c.Check = true, true
		if rapid.Bool().Draw(t, "cached") {
			// A search before this one has filled the cache of the class.
			if _, _, err := finder.Find(c, everything); err != nil {
				t.Fatal(err)
			}
		}
		want, _, _ := finder.Find(plain, everything)
		got, refused, err := finder.Find(c, everything)
		switch {
		case err != nil:
			t.Fatal(err)
		case got != nil && violates(w.budgets, got.Victims):
			t.Fatalf("the plan %s violates a budget", got.text())
		case want != nil && want.NumPDBViolations == 0 && got.text() != want.text():
			t.Fatalf("got %q, %v; without strict %q, which violates no budget", got.text(), refused, want.text())
		case want == nil && got != nil:
			t.Fatalf("got %q, without strict there is no plan", got.text())
		case want != nil && got == nil:
			refusals++
			if !slices.ContainsFunc(refused, namesBudget) {
				t.Fatalf("the reasons %v name no budget, without strict there is %q", refused, want.text())
			}
		case got != nil:
			clean++
		}
	}
	for range 10 { // few worlds have a refusal
		rapid.Check(t, check)
	}
	if refusals == 0 || clean == 0 {
		t.Errorf("%d searches were refused by a budget, and %d were not", refusals, clean)
	}
}

// namesBudget reports whether the reason is that a budget allows no more disruptions.
func namesBudget(r decision.Tally) bool {
	return len(r.Reasons) == 1 && slices.Contains(budgetReasons, r.Reasons[0])
}

var budgetReasons = func() (reasons []string) {
	for _, namespace := range []string{"x", "y"} {
		for i := range 10 {
			reasons = append(reasons, fmt.Sprintf("disruption budget %s/%d allows no more disruptions", namespace, i))
		}
	}
	return reasons
}()

// What a budget counts is the victims alone: of two pods that it covers one may go, also if
// that is the one that counts second.
func TestStrictBudgetCountsVictims(t *testing.T) {
	w := newWorld(pod("p", 9, 3)).node("a", 4, pod("x/small", 5, 1, app("b")), pod("x/large", 1, 3, app("b"))).budget("x", "b", 1)
	c := w.call()
	c.Disruption.Strict = true
	plan, refused, err := new(Finder).Find(c, everything)
	if err != nil || plan.text() != "a: large, 1 violations" {
		t.Errorf("%s, %v, %v", plan.text(), refused, err)
	}
}

// With strict budgets neither a single pod nor a group has more pods of a gang evicted than a budget
// allows, and the gang keeps its minimum or goes as a whole. Victims that violate no budget are found
// as without strict.
func TestStrictBudgetsOfGangs(t *testing.T) {
	refused, surplus := 0, 0
	check := func(t *rapid.T) {
		w := drawElastic(t)
		for _, p := range w.pods {
			if app := rapid.SampledFrom([]string{"", "b"}).Draw(t, "app"); p.Labels == nil {
				p.Labels = map[string]string{"app": app}
			} else {
				p.Labels["app"] = app
			}
		}
		w.budget("d", "b", rapid.Int32Range(0, 2).Draw(t, "allowed"))
		plain, c := w.call(), w.call()
		plain.Cache, c.Cache, c.Disruption.Strict, c.Check = nil, nil, true, true
		want, _, _ := new(Finder).Find(plain, everything)
		got, _, err := new(Finder).Find(c, everything)
		switch {
		case err != nil:
			t.Fatal(err)
		case got == nil && want != nil && !violates(w.budgets, want.Victims) || got != nil && want == nil:
			t.Fatalf("got %s; without strict %s", got.text(), want.text())
		case got == nil && want != nil:
			refused++
		case got == nil:
			return
		case violates(w.budgets, got.Victims) || !w.goes(got.Victims):
			t.Fatalf("got %s", got.text())
		case got.surplus > 0:
			surplus++
		}
		g := newGroupWorldOf(&framework.PodGroupPostFilterCall{Now: now, Table: w.table, Group: &object.PodGroup{Priority: w.pod.Priority}, Budgets: w.budgets, Strict: true}, w.pod.Demand.Usage.MilliCPU)
		g.local = true
		for range rapid.IntRange(1, 3).Draw(t, "pods of the group") {
			g.Pods = append(g.Pods, &object.Pod{})
		}
		if result := ForGroup(g.PodGroupPostFilterCall); violates(w.budgets, result.Victims) || !w.goes(result.Victims) {
			t.Fatalf("a group has %v evicted", result.Victims)
		}
	}
	for range 10 { // few worlds have a refusal
		rapid.Check(t, check)
	}
	if refused == 0 || surplus == 0 {
		t.Errorf("%d pods were refused by a budget, %d have the surplus of a gang evicted", refused, surplus)
	}
}

// goes reports whether the gang keeps its minimum without the victims, or goes as a whole.
func (w *elastic) goes(victims []*object.Pod) bool {
	_, ok := w.outcome(set(victims))
	return ok
}

// What was kept for a class is made anew once a configuration makes budgets strict, or no longer.
func TestStrictIsSwitched(t *testing.T) {
	w := newWorld(pod("p", 9, 2)).node("a", 4, pod("x/guarded", 1, 4, app("b"))).budget("x", "b", 0)
	finder := &Finder{}
	for i, strict := range []bool{true, false, true} {
		c := w.call()
		c.Disruption.Strict, c.Check = strict, true
		plan, refused, err := finder.Find(c, everything)
		if err != nil || (plan == nil) != strict || strict != slices.ContainsFunc(refused, namesBudget) {
			t.Errorf("search %d, strict %t: %s, %v, %v", i, strict, plan.text(), refused, err)
		}
	}
}

// An extender may not choose a victim that a budget protects.
func TestStrictBudgetsOfExtenders(t *testing.T) {
	guarded, other := pod("x/guarded", 1, 2, app("b")), pod("x/other", 1, 2)
	w := newWorld(pod("p", 9, 2)).node("a", 4, guarded, other).budget("x", "b", 0)
	c := w.call()
	c.Disruption.Strict = true
	found, refused, err := Candidates(c, everything)
	if err != nil || len(found) != 1 || !slices.Equal(found[0].Victims, []*object.Pod{other}) {
		t.Fatalf("%v, %v, %v", found, refused, err)
	}
	changed := slices.Clone(found)
	changed[0].Victims = []*object.Pod{guarded}
	if left := Left(c, found); len(left) != 1 {
		t.Errorf("%v", left)
	}
	if left := Left(c, changed); len(left) != 0 {
		t.Errorf("an extender chose %v", left)
	}
}

// With strict budgets no victim of a group violates one, victims that violate none are found
// as without strict, and the message names the budget if it is what keeps them.
func TestStrictBudgetsOfGroups(t *testing.T) {
	refused, moved := 0, 0
	for seed := range uint64(2000) {
		w := newGroupWorld(rand.New(rand.NewPCG(seed, 1)))
		want := ForGroup(w.PodGroupPostFilterCall)
		w.Strict = true
		got := ForGroup(w.PodGroupPostFilterCall)
		ok, plain := got.Status.Code == decision.Success, want.Status.Code == decision.Success
		switch {
		case violates(w.Budgets, got.Victims):
			t.Fatalf("seed %d: %v violate a budget", seed, got.Victims)
		case ok && !plain:
			t.Fatalf("seed %d: found %v, without strict there are none", seed, got.Victims)
		case plain && !violates(w.Budgets, want.Victims) && (!ok || !slices.Equal(got.Victims, want.Victims)):
			t.Fatalf("seed %d: %v, %v; without strict %v", seed, got.Status, got.Victims, want.Victims)
		case plain && !ok:
			refused++
			if said := got.Status.Reasons[0]; said != prefix+"disruption budget d/0 allows no more disruptions" {
				t.Fatalf("seed %d: %s", seed, said)
			}
		case ok && violates(w.Budgets, want.Victims):
			moved++
		}
	}
	if refused == 0 || moved == 0 {
		t.Errorf("%d groups were refused, %d placed elsewhere", refused, moved)
	}
}
