package noderesources

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// A verdict is a set of bits: one for each sum that is short, in their order, and two
// about them. The first sum is the number of pods.
const (
	tooManyPods framework.Verdict = 1
	// noOwnBit: the sum has no bit of its own, because the pod requests more
	// resources than there are bits. Its code is mixed into those of the
	// others instead, and Explain looks at the row again.
	noOwnBit framework.Verdict = 1 << 62
	// unresolvable: the pod requests more than the whole node has.
	unresolvable framework.Verdict = 1 << 63
)

// lastResource is the last sum that has a bit.
const lastResource = 61

// preFilter returns what the pod requests as a list of sums: one pod, CPU, memory,
// ephemeral storage, then the others by name.
func (ig ignored) preFilter(t *table.Table, p *object.Pod) framework.PreFilterResult {
	return framework.PreFilterResult{State: ig.sums(t, &p.Demand.Requests)}
}

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

func sumsOf(in *framework.Input) []sums.Sum { return in.State.([]sums.Sum) }

// hashBits returns bits, of those of resources, that differ between two
// resources with near certainty.
func hashBits(name v1.ResourceName) framework.Verdict {
	return framework.Verdict(draw.Hash(string(name))) & (1<<(lastResource+1) - 1<<1)
}

// filter rejects rows on which a requested amount is not free.
func filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	clear(out) // framework.Fits
	list := sumsOf(in)
	for k := range list {
		flag, code := bitsOf(k, list)
		list[k].EachUnfit(in.Table, rows, func(i int, a sums.Answer) { out[i] = reject(out[i], k, a, flag, code) })
	}
}

// exchanged returns the verdict for the case that lower pods leave the row and others
// come. It is unknown where a sum is, or where Explain would look at the row.
func exchanged(in *framework.Input, row table.Row, below int32, came []*object.Pod) (v framework.Verdict, known bool) {
	list := sumsOf(in)
	for k := range list {
		a, known := list[k].Exchanged(in.Table, row, below, came)
		if !known || k > lastResource {
			return 0, false
		}
		if a != sums.Fits {
			flag, code := bitsOf(k, list)
			v = reject(v, k, a, flag, code)
		}
	}
	return v, true
}

// bitsOf returns the flag of the k-th sum, and its code, which is 0 if the flag is its own.
func bitsOf(k int, list []sums.Sum) (flag, code framework.Verdict) {
	if k <= lastResource {
		return 1 << k, 0
	}
	return noOwnBit, hashBits(list[k].Name)
}

// reject adds to the verdict that the k-th sum does not fit.
func reject(v framework.Verdict, k int, a sums.Answer, flag, code framework.Verdict) framework.Verdict {
	if v = (v | flag) ^ code; a == sums.Never && k > 0 { // a node without any room for pods may get some
		v |= unresolvable
	}
	return v
}

// joinPass adds the filter to a pass, if it checks CPU and memory only. It returns false
// otherwise.
func joinPass(in *framework.Input, p *headroom.Pass) bool {
	list := sumsOf(in)
	if len(list) != 3 || list[1].Name != v1.ResourceCPU || list[2].Name != v1.ResourceMemory {
		return false
	}
	p.JoinFit(headroom.Of(list[1].Request, list[2].Request))
	return true
}

func explain(in *framework.Input, row table.Row, v framework.Verdict) decision.Blocker {
	b := decision.Blocker{Code: decision.Unschedulable}
	if v&unresolvable != 0 {
		b.Code = decision.UnschedulableAndUnresolvable
	}
	add := func(resource v1.ResourceName, reason string) {
		b.Insufficient, b.Reasons = append(b.Insufficient, resource), append(b.Reasons, reason)
	}
	if v&tooManyPods != 0 {
		add(v1.ResourcePods, "Too many pods")
	}
	list := sumsOf(in)
	for k := 1; k < len(list); k++ {
		flag, _ := bitsOf(k, list)
		short := v&flag != 0
		if v&noOwnBit != 0 {
			short = list[k].On(in.Table, row) != sums.Fits
		}
		if short {
			add(list[k].Name, "Insufficient "+string(list[k].Name))
		}
	}
	return b
}
