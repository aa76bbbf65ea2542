package quota_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// The queues of the package's comment: web has borrowed from batch, and batch may have back
// what it lacks.
func Example() {
	t := table.New()
	t.SetNode(&object.Node{Name: "n"})
	for _, q := range []*object.ElasticQuota{
		{Meta: object.Meta{Namespace: "web", Name: "q"}, Min: cpus(4), Max: cpus(8)},
		{Meta: object.Meta{Namespace: "batch", Name: "q"}, Min: cpus(6), Max: cpus(6)},
	} {
		q.Kind = object.ElasticQuotas
		t.Objects().Set(q)
	}
	var placed []*object.Pod
	for i, namespace := range []string{"web", "web", "web", "batch"} {
		p := podOf(namespace, fmt.Sprint(namespace, "-", i), []int64{2, 2, 2, 3}[i])
		t.AddPod(p, "n")
		placed = append(placed, p)
	}
	queues := quota.Of(t)
	for _, q := range queues.Queues() {
		fmt.Printf("%s is guaranteed %v of %v and uses %v\n", q.Quota.Namespace, q.Quota.Min, q.Quota.Max, q.Used())
	}
	for _, pod := range []*object.Pod{podOf("web", "more", 2), podOf("batch", "own", 3)} {
		ask := &quota.Ask{Pod: pod}
		e := queues.Exceeded(ask)
		r := queues.Reclaim(ask, nil)
		fmt.Printf("%s/%s: %d in use + %d > %d; entitled %v, may preempt:", pod.Namespace, pod.Name, e.Used, e.Requested, e.Limit, r.Entitled())
		for _, victim := range r.Preemptible(nil, placed) {
			fmt.Print(" ", victim.Name)
		}
		fmt.Println()
	}

	// Output:
	// batch is guaranteed cpu 6 of cpu 6 and uses cpu 3
	// web is guaranteed cpu 4 of cpu 8 and uses cpu 6
	// web/more: 9000 in use + 2000 > 10000; entitled false, may preempt:
	// batch/own: 9000 in use + 3000 > 10000; entitled true, may preempt: web-2
}

// cpus are so many CPUs, in the unit in which quotas count them.
func cpus(n int64) object.Amounts { return object.Amounts{{Name: v1.ResourceCPU, Value: n * 1000}} }

func podOf(namespace, name string, cpus int64) *object.Pod {
	u := resource.Vector{MilliCPU: cpus * 1000}
	return &object.Pod{UID: types.UID(name), Namespace: namespace, Name: name, Demand: resource.Demand{Requests: u, Usage: u}}
}
