package preempt

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/table"
)

// quotaWorld is a group beside placed pods, gangs and queues. Its pods must have room on their
// nodes, and their queue must let them through.
type quotaWorld struct {
	*groupWorld
	namespace string
	mins      map[string]int64 // CPU, by namespace
	spread    bool             // the filters look beyond the node
}

// drawQuotaWorld draws queues, pods and gangs, and a group that comes.
func drawQuotaWorld(t *rapid.T) *quotaWorld {
	number := func(name string, low, high int) int { // each as likely: IntRange prefers small ones
		var all []int
		for n := low; n <= high; n++ {
			all = append(all, n)
		}
		return rapid.SampledFrom(all).Draw(t, name)
	}
	namespaces := []string{"a", "b", "c", "none"}
	w := &quotaWorld{mins: map[string]int64{}, namespace: rapid.SampledFrom(namespaces).Draw(t, "namespace of the group"), spread: number("spread", 0, 1) == 1}
	call := &framework.PodGroupPostFilterCall{Now: now, Table: table.New(), Group: &object.PodGroup{Priority: int32(number("priority of the group", 0, 6))}, Quotas: &framework.QuotaRules{}}
	w.groupWorld = newGroupWorldOf(call, int64(number("cpu of the group", 1, 3)))
	w.Try, w.Fits = w.tryWithQuotas, w.allows
	w.Table.CountGroups()
	for _, namespace := range namespaces[:3] {
		o := &object.ElasticQuota{Meta: object.Meta{Kind: object.ElasticQuotas, Namespace: namespace, Name: "q"}, Parts: []string{"*"}}
		w.mins[namespace] = int64(number("min", 0, 20))
		o.Min = object.Amounts{{Name: v1.ResourceCPU, Value: w.mins[namespace]}}
		if number("max", 0, 3) == 0 {
			o.Max = object.Amounts{{Name: v1.ResourceCPU, Value: w.mins[namespace] + int64(number("beyond min", 0, 8))}}
		}
		if namespace == "c" && number("parent", 0, 2) == 0 {
			o.Parent = "b/q"
		}
		w.Table.Objects().Set(o)
	}
	for _, namespace := range namespaces {
		for _, name := range []string{"whole", "loose"} {
			w.Table.Objects().Set(&object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: namespace, Name: name, UID: types.UID(namespace + name)},
				Priority: int32(number("priority of a gang", 0, 6)), PreemptedWhole: name == "whole"})
		}
	}
	world := &world{table: w.Table}
	for i := range number("nodes", 1, 3) {
		var pods []*object.Pod
		for free := int64(nodeCPU - number("free", 0, 2)); free > 0; {
			key := fmt.Sprintf("%s/%d-%d", rapid.SampledFrom(namespaces).Draw(t, "namespace"), i, len(pods))
			p := pod(key, int32(number("priority", 0, 6)), min(free, int64(number("cpu", 1, 4))), startedAt(-number("age", 1, 3)))
			p.Demand.Requests = p.Demand.Usage
			p.SchedulingGroup = object.InPodGroup(rapid.SampledFrom([]string{"", "", "whole", "loose"}).Draw(t, "gang"))
			p.Terminating = number("terminating", 0, 9) == 0
			w.Table.Groups().Join(p)
			free -= p.Demand.Usage.MilliCPU
			pods = append(pods, p)
		}
		world.node(fmt.Sprint("n", i), nodeCPU, pods...)
	}
	if number("strict", 0, 2) == 0 {
		selector := labels.Everything()
		for _, namespace := range namespaces {
			w.Budgets = append(w.Budgets, &object.Budget{Namespace: namespace, Name: "all", Strict: true, Selector: selector, Allowed: int32(number("allowed", 0, 2))})
		}
		w.Strict = true
	}
	for i := range number("pods of the group", 1, 3) {
		p := pod(fmt.Sprintf("%s/own-%d", w.namespace, i), call.Group.Priority, w.cpu)
		p.Demand.Requests = p.Demand.Usage
		w.Pods = append(w.Pods, p)
	}
	return w
}

// allows reports whether the pod has room on its node, and its queue lets it through.
func (w *quotaWorld) allows(a framework.GroupAssignment) bool {
	return w.free(a.Row) >= w.cpu && quota.Of(w.Table).Exceeded(&quota.Ask{Pod: a.Pod}) == nil
}

// tryWithQuotas gives each pod of the group the first node that it may go to.
func (w *quotaWorld) tryWithQuotas() (found []framework.GroupAssignment, _ *decision.Status) {
	defer func() {
		for _, a := range found {
			a.Remove()
		}
	}()
	for _, p := range w.Pods {
		for _, r := range w.Table.All() {
			a := framework.GroupAssignment{Assignment: framework.Assignment{Pod: p, Row: r}, Local: !w.spread}
			a.Place, a.Remove = func() { w.Table.Place(p, r) }, func() { w.Table.RemovePod(p.UID) }
			if w.allows(a) {
				found = append(found, a)
				a.Place()
				break
			}
		}
	}
	if len(found) < len(w.Pods) {
		return found, &decision.Status{Code: decision.Unschedulable, Reasons: []string{"no room"}}
	}
	return found, nil
}

// fit reports whether the group's pods fit where they were assigned, as the table is now.
func (w *quotaWorld) fit(found []framework.Assignment) bool {
	placed := 0
	defer func() {
		for _, a := range found[:placed] {
			w.Table.RemovePod(a.Pod.UID)
		}
	}()
	for _, a := range found {
		if !w.allows(framework.GroupAssignment{Assignment: a}) {
			return false
		}
		w.Table.Place(a.Pod, a.Row)
		placed++
	}
	return true
}

// use returns what the pods of a queue and its parts use, counted from all pods. Those that
// are being deleted count only if leaving is set.
func (w *quotaWorld) use(of *quota.Queue, leaving bool) (milliCPU int64) {
	for _, r := range w.Table.All() {
		for _, pl := range w.Table.Pods(r) {
			for q := quota.Of(w.Table).Queue(pl.Pod.Namespace); q != nil; q = q.Parent() {
				if q == of && (leaving || !pl.Pod.Terminating) {
					milliCPU += pl.Pod.Demand.Usage.MilliCPU
				}
			}
		}
	}
	return milliCPU
}

// ancestors returns the queue of the namespace and those that it is a part of.
func (w *quotaWorld) ancestors(namespace string) (queues []*quota.Queue) {
	for q := quota.Of(w.Table).Queue(namespace); q != nil; q = q.Parent() {
		queues = append(queues, q)
	}
	return queues
}

// Whatever gangs, pods and queues there are, a group that finds victims fits without them and
// with none of them, its queue is within its min if others give something back, those keep
// theirs, and a gang that goes as a whole does. What the table counts is as if made anew.
func TestForGroupBesideQuotas(t *testing.T) {
	found := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		for range 5 {
			drawQuotaWorld(t).check(t, found)
		}
	})

	if found["own"] == 0 || found["lent"] == 0 || found["whole"] == 0 || found["strict"] == 0 || found["none"] == 0 {
		t.Errorf("too few cases: %v", found)
	}
}

// check searches the group's victims and checks the result. It counts what they are.
func (w *quotaWorld) check(t *rapid.T, found map[string]int) {
	before := picture(w.Table)
	result := searchVictims(w.PodGroupPostFilterCall, rapid.SampledFrom([]int{0, mostChecks}).Draw(t, "most"))
	if err := w.Table.Check(); err != nil || picture(w.Table) != before {
		t.Fatalf("the table is %s, and was %s: %v", picture(w.Table), before, err)
	}
	if result.Status.Code != decision.Success {
		found["none"]++
		return
	}
	if w.Strict {
		if found["strict"]++; violates(w.Budgets, result.Victims) {
			t.Fatalf("%v violate a budget", result.Victims)
		}
	}
	w.checkVictims(t, &result, found)
	if err := w.Table.Check(); err != nil {
		t.Fatal(err)
	}
}

// checkVictims checks a result with victims, and counts what they are.
func (w *quotaWorld) checkVictims(t *rapid.T, result *framework.PodGroupPostFilterResult, found map[string]int) {
	used := map[*quota.Queue]int64{}
	for _, q := range w.ancestors(w.namespace) {
		used[q] = w.use(q, true)
	}
	rows, units := map[types.UID]table.Row{}, map[string][]*object.Pod{}
	for _, p := range result.Victims {
		g, unit := groupOf(w.Table, p), p.Key()
		if g != nil && g.PreemptedWhole {
			unit = g.Key()
			found["whole"]++
		}
		rows[p.UID], units[unit] = w.Table.Pod(p.UID).Row, append(units[unit], p)
		if quota.Of(w.Table).Queue(p.Namespace) == quota.Of(w.Table).Queue(w.namespace) {
			found["own"]++
			if priorityIn(g, p) >= w.Group.Priority {
				t.Fatalf("%s goes, of the group's queue and not less important", p.Key())
			}
			continue
		}
		found["lent"]++
		within := slices.ContainsFunc(w.ancestors(w.namespace), func(q *quota.Queue) bool {
			return !slices.Contains(w.ancestors(p.Namespace), q) && used[q]+int64(len(w.Pods))*w.cpu <= w.mins[q.Quota.Namespace]
		})
		if !within || len(w.ancestors(p.Namespace)) == 0 {
			t.Fatalf("%s goes, and the group is within no min", p.Key())
		}
	}
	for _, p := range result.Victims {
		w.Table.RemovePod(p.UID)
	}
	for name, pods := range units { // any order: each by itself
		w.checkUnit(t, name, pods, rows, result.Assignments)
	}
}

// checkUnit checks what goes as a whole, while no victim is in the table.
func (w *quotaWorld) checkUnit(t *rapid.T, name string, pods []*object.Pod, rows map[types.UID]table.Row, found []framework.Assignment) {
	if !w.fit(found) {
		t.Fatal("the group does not fit without its victims")
	}
	if g := groupOf(w.Table, pods[0]); g != nil && g.PreemptedWhole {
		for range w.Table.Groups().Of(pods[0]).Placed() {
			t.Fatalf("a part of %s goes", name)
		}
	}
	stays := slices.ContainsFunc(pods, func(p *object.Pod) bool { return !p.Terminating })
	if namespace := pods[0].Namespace; stays && quota.Of(w.Table).Queue(namespace) != quota.Of(w.Table).Queue(w.namespace) {
		for _, q := range w.ancestors(namespace) {
			if !slices.Contains(w.ancestors(w.namespace), q) && w.use(q, false) < w.mins[q.Quota.Namespace] {
				t.Fatalf("%s goes, and %s has %d then of %d", name, q.Quota.Key(), w.use(q, false), w.mins[q.Quota.Namespace])
			}
		}
	}
	for _, p := range pods {
		w.Table.Place(p, rows[p.UID])
	}
	if w.fit(found) {
		t.Fatalf("%s need not go", name)
	}
	for _, p := range pods {
		w.Table.RemovePod(p.UID)
	}
}
