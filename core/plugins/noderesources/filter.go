package noderesources

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// preFilter returns the pod's requests as sums for the filter to check.
func (ig ignored) preFilter(t *table.Table, p *object.Pod) framework.PreFilterResult {
	return framework.PreFilterResult{Rules: framework.Rules{Sums: ig.sums(t, &p.Demand.Requests)}}
}

// sums returns the requests that must be free on a node, one for each resource: a pod,
// CPU, memory, ephemeral storage, then the others by name. Resources that are ignored
// or not requested are left out.
func (ig ignored) sums(t *table.Table, requests *resource.Vector) []sums.Sum {
	var list []sums.Sum
	add := func(name v1.ResourceName, request int64) {
		if request > 0 {
			list = append(list, sums.New(t, name, request, ig.delegates(t, name)))
		}
	}
	add(v1.ResourcePods, 1)
	add(v1.ResourceCPU, requests.MilliCPU)
	add(v1.ResourceMemory, requests.Memory)
	add(v1.ResourceEphemeralStorage, requests.EphemeralStorage)
	for _, s := range requests.Scalars {
		if !ig.has(s.Name) {
			add(s.Name, s.Value)
		}
	}
	return list
}

// filter rejects the rows on which a requested resource is not free. The verdict says which ones.
func filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	sums.Verdicts(in.Sums, in.Table, rows, out)
}

// explain returns the resources that the row lacks, as the bits of v say, with kube-scheduler's
// reasons. The code is UnschedulableAndUnresolvable if the pod requests more of a resource than the
// whole node has, else Unschedulable.
func explain(in *framework.Input, row table.Row, v framework.Verdict) decision.Blocker {
	b := decision.Blocker{Code: decision.Unschedulable}
	beyond := sums.EachShort(in.Sums, in.Table, row, uint64(v), func(s *sums.Sum) {
		reason := "Insufficient " + string(s.Name)
		if s.Name == v1.ResourcePods {
			reason = "Too many pods"
		}
		b.Insufficient, b.Reasons = append(b.Insufficient, s.Name), append(b.Reasons, reason)
	})
	if beyond {
		b.Code = decision.UnschedulableAndUnresolvable
	}
	return b
}
