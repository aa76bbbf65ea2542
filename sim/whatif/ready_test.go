package whatif_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/sim/whatif"
)

// Of a budget that allows nothing, a pod goes that does not run yet. One that is not ready
// goes while the others are healthy, or if the budget says that it always may.
func TestUnreadyPodsAreEvicted(t *testing.T) {
	const budget = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {minAvailable: 2, selector: {matchLabels: {app: web}}%s}\nstatus: {observedGeneration: 1, currentHealthy: %d, desiredHealthy: 2, expectedPods: 3}\n"
	status := func(phase, ready string) string {
		return fmt.Sprintf("status: {phase: %s, conditions: [{type: Ready, status: '%s'}]}\n", phase, ready)
	}
	for name, c := range map[string]struct{ status, more, kept string }{
		"ready":                {status("Running", "True"), fmt.Sprintf(budget, "", 2), "w a: budget default/web lets 0 of its pods be down at once, and 0 are"},
		"not ready":            {status("Running", "False"), fmt.Sprintf(budget, "", 2), ""},
		"nor are others":       {status("Running", "False"), fmt.Sprintf(budget, "", 1), "w a: budget default/web lets 0 of its pods be down at once, and 0 are"},
		"always allowed":       {status("Running", "False"), fmt.Sprintf(budget, ", unhealthyPodEvictionPolicy: AlwaysAllow", 1), ""},
		"if healthy":           {status("Running", "False"), fmt.Sprintf(budget, ", unhealthyPodEvictionPolicy: IfHealthyBudget", 1), "w a: budget default/web lets 0 of its pods be down at once, and 0 are"},
		"not running yet":      {status("Pending", "False"), fmt.Sprintf(budget, "", 1), ""},
		"without any status":   {"", fmt.Sprintf(budget, "", 2), "w a: budget default/web lets 0 of its pods be down at once, and 0 are"},
		"ready, always may go": {status("Running", "True"), fmt.Sprintf(budget, ", unhealthyPodEvictionPolicy: AlwaysAllow", 2), "w a: budget default/web lets 0 of its pods be down at once, and 0 are"},
	} {
		r := run(t, node("a", "")+node("b", "")+pod("w", "a", 1, "")+c.status+pod("x", "b", 1, "")+pod("v", "b", 1, "")+c.more, "drain", "a")
		want := ""
		if c.kept == "" {
			want = "w a-b"
		}
		if stays(r.Kept) != c.kept || moved(r) != want {
			t.Errorf("%s: kept %q, moved %q; want %q, %q", name, stays(r.Kept), moved(r), c.kept, want)
		}
		if len(r.Budgets) != 0 {
			t.Errorf("%s: a pod that was not ready counts as down: %v", name, r.Budgets)
		}
	}
}

// A pending pod that goes is gone, without a node, and goes before those that run.
func TestPendingPodIsScaledAway(t *testing.T) {
	r := run(t, node("a", "")+pod("w", "a", 1, "")+pod("x", "", 9, ""), "scale", "rs/web=1")
	if got := stays(r.Gone); got != "x : scaled down" || len(r.Unplaced) != 0 {
		t.Errorf("gone %q, unplaced %v", got, r.Unplaced)
	}
}

// A pod that is made again is charged to its quota anew. It is not made if the quota was
// lowered meanwhile, and what is scaled away makes room.
func TestQuotaOfPodsThatAreMadeAgain(t *testing.T) {
	const quota = "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: default}\nspec: {hard: {pods: %d}}\n"
	text := node("a", "") + node("b", "") + pod("w", "a", 1, "") + pod("x", "a", 1, "")
	if r := run(t, text+fmt.Sprintf(quota, 2), "drain", "a"); moved(r) != "w a-b, x a-b" {
		t.Errorf("moved %q", moved(r))
	}
	r := run(t, text+fmt.Sprintf(quota, 1), "drain", "a")
	if moved(r) != "w a-, x a-b" || !strings.Contains(r.Unplaced["default/w"], "ResourceQuota q allows pods 1 in all; 1 is used") || r.Stuck() != 1 {
		t.Errorf("moved %q, unplaced %v", moved(r), r.Unplaced)
	}
	r = run(t, text+fmt.Sprintf(quota, 2), "scale", "rs/web=1", "scale", "rs/web=3")
	if len(r.Unplaced) != 1 || len(r.Gone) != 1 {
		t.Errorf("unplaced %v, gone %v", r.Unplaced, stays(r.Gone))
	}
}

// Copies of a pod are charged to its quota, without those that they stand for.
func TestFitAsksQuotas(t *testing.T) {
	const quota = "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: default}\nspec: {hard: {pods: 3}}\n"
	set, in := cluster(t, node("a", "")+pod("w", "a", 1, "")+pod("x", "", 1, "")+quota)
	r, err := whatif.Fit(set, in, nil, "", whatif.Names{})
	if err != nil || r.Fits != 2 || r.Stops != "admission refuses it: ResourceQuota q allows pods 3 in all; 3 is used, and it takes 1 more" {
		t.Errorf("%v, %+v", err, r)
	}
}
