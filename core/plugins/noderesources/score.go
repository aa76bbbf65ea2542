package noderesources

import (
	"encoding/binary"
	"math/bits"
	"slices"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/devices"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/index/devicepools"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/shape"
	"github.com/berth-scheduler/berth/core/table"
)

// scorer scores nodes by a scoring strategy: the weighted mean of the scores of the configured
// resources that the node has.
type scorer struct {
	resources []weighted
	// rate adds the score and weight of one resource, on each row that has it, to the row's packed
	// sums (sumOfWeights) in out.
	rate func(c column, rows []table.Row, out []int64)
	// halfUp is set if the mean is rounded instead of truncated.
	halfUp bool
	// fast is set for LeastAllocated of just CPU and memory, in this order.
	fast bool
	// counter counts the devices that provide extended resources; nil: none do.
	counter *devices.Counter
}

// weighted is a resource and its weight in the score.
type weighted struct {
	name   v1.ResourceName
	weight int64
}

// newScorer returns a scorer for a valid strategy. counter counts the devices that provide
// extended resources; nil: none do.
func newScorer(s *configv1.ScoringStrategy, counter *devices.Counter) *scorer {
	sc := &scorer{counter: counter}
	for _, r := range s.Resources {
		sc.resources = append(sc.resources, weighted{v1.ResourceName(r.Name), r.Weight})
	}
	switch s.Type {
	case configv1.LeastAllocated:
		sc.rate = least
		sc.fast = len(s.Resources) == 2 && s.Resources[0].Name == string(v1.ResourceCPU) && s.Resources[1].Name == string(v1.ResourceMemory)
	case configv1.MostAllocated:
		sc.rate = most
	case configv1.RequestedToCapacityRatio:
		sc.rate, sc.halfUp = byShape(shape.Tabulate(s.RequestedToCapacityRatio.Shape)), true
	}
	return sc
}

// share is one resource that the score weighs: its name and weight in the configuration,
// and the pod's request for it.
type share struct {
	weighted
	request int64
	// stock is the devices that stand for it on nodes that do not have it; nil: none do.
	stock *devices.Stock
}

// preScore returns, as the state for Score, the resources to score with the pod's requests
// (shares). It leaves out those that the pod does not request, except for CPU, memory and ephemeral
// storage. It never skips. For LeastAllocated of CPU and memory alone, each with weight 1, it also
// returns the score as data (Headroom), which the engine computes for all nodes in one pass.
func (s *scorer) preScore(t *table.Table, p *object.Pod) framework.PreScoreResult {
	shares := make([]share, 0, len(s.resources))
	for _, r := range s.resources {
		request := p.Demand.Scoring.Of(r.name)
		if request > 0 || basic(r.name) {
			shares = append(shares, share{r, request, s.counter.Stock(t, r.name)})
		}
	}
	out := framework.PreScoreResult{State: shares}
	if s.fast && len(shares) == 2 && shares[0].weight+shares[1].weight == 2 {
		out.Headroom = headroom.Score{Form: headroom.LeastAllocated, Amounts: headroom.Of(shares[0].request, shares[1].request)}
	}
	return out
}

// reads returns the kinds of objects, beside nodes and pods, that Filter and Score read; none
// without a counter.
func (s *scorer) reads() []object.Kind {
	switch {
	case s.counter == nil:
		return nil
	case slices.ContainsFunc(s.resources, func(w weighted) bool { return resource.ByDevices(w.name) }):
		return []object.Kind{object.DeviceClasses, object.ResourceSlices, object.ResourceClaims}
	}
	return []object.Kind{object.DeviceClasses}
}

// appendKey appends to the pod's signature the revision of the cluster's devices, if the pod
// requests a scored resource that a DeviceClass provides. Scores from before a change of devices
// are then not used again.
func (s *scorer) appendKey(key []byte, t *table.Table, p *object.Pod) []byte {
	for _, r := range s.resources {
		if !basic(r.name) && p.Demand.Scoring.Of(r.name) > 0 && s.counter.Has(t, r.name) {
			return binary.AppendUvarint(append(key, 's'), devicepools.Of(t).Revision())
		}
	}
	return key
}

// basic reports whether the resource is CPU, memory or ephemeral storage.
func basic(name v1.ResourceName) bool {
	return name == v1.ResourceCPU || name == v1.ResourceMemory || name == v1.ResourceEphemeralStorage
}

// sumOfWeights is the number of the bit from which on a row's output holds the sum of weights,
// while resources are added up. The bits below hold the weighted sum of scores. Weights and scores
// are at most 100, which is small enough for 100,000 resources.
const sumOfWeights = 32

// score writes the score of each row, 0 to 100, to out; 0 if the node has none of the resources.
func (s *scorer) score(in *framework.Input, rows []table.Row, out []int64) {
	shares := in.State.([]share)
	clear(out)
	for i := range shares {
		id, ok := in.Table.Column(shares[i].name)
		switch stock := shares[i].stock; {
		case stock != nil:
			c := column{request: shares[i].request, weight: shares[i].weight}
			c.allocatable, c.used = stock.Columns(in.Table, rows)
			s.rate(c, devices.Numbered(rows), out)
		case ok: // else no node offers it
			s.rate(shares[i].column(in.Table, id), rows, out)
		}
	}
	for i, packed := range out {
		sum, weight := uint32(packed), uint32(packed>>sumOfWeights)
		switch {
		case weight == 0:
			out[i] = 0
		case s.halfUp:
			out[i] = int64((2*sum + weight) / (2 * weight))
		default:
			out[i] = int64(sum / weight)
		}
	}
}

// column returns the table's column of the share's resource.
func (s *share) column(t *table.Table, id table.Resource) column {
	return column{allocatable: t.Allocatable(id), used: usedFor(t, id), request: s.request, weight: s.weight}
}

// usedFor returns the amounts in use for scoring, by row. For CPU and memory every
// container counts with at least a default request.
func usedFor(t *table.Table, id table.Resource) []int64 {
	milliCPU, memory := t.NonZero()
	switch id {
	case table.CPU:
		return milliCPU
	case table.Memory:
		return memory
	}
	return t.Used(id)
}

// column is one resource of all nodes, by row, with the pod's request and the weight in
// the score.
type column struct {
	allocatable, used []int64
	request, weight   int64
}

// taken returns how much of the node's allocatable is used with the pod, at most all.
// used and the request are not negative, so that their unsigned sum cannot overflow.
func (c *column) taken(allocatable, used int64) int64 {
	return int64(min(uint64(used)+uint64(c.request), uint64(allocatable)))
}

// least adds to each row's packed sum what LeastAllocated gives it for the resource: the percentage
// that stays free with the pod, with the weight. It leaves out rows that have none of the resource.
func least(c column, rows []table.Row, out []int64) {
	for i, r := range rows {
		if a := c.allocatable[r]; a > 0 {
			free := a - c.taken(a, c.used[r])
			out[i] += c.weight<<sumOfWeights + percent(free, a)*c.weight
		}
	}
}

// most adds to each row's packed sum what MostAllocated gives it for the resource: the percentage
// that is used with the pod, with the weight. It leaves out rows that have none of the resource.
func most(c column, rows []table.Row, out []int64) {
	for i, r := range rows {
		if a := c.allocatable[r]; a > 0 {
			taken := c.taken(a, c.used[r])
			out[i] += c.weight<<sumOfWeights + percent(taken, a)*c.weight
		}
	}
}

// byShape returns a function that adds to each row's packed sum what RequestedToCapacityRatio gives
// it for a resource: line[p] if p percent are used with the pod, with the weight. A score of 0 does
// not count in the mean.
func byShape(line [101]int64) func(column, []table.Row, []int64) {
	return func(c column, rows []table.Row, out []int64) {
		for i, r := range rows {
			a := c.allocatable[r]
			if a <= 0 {
				continue
			}
			taken := c.taken(a, c.used[r])
			if rating := line[percent(taken, a)]; rating > 0 {
				out[i] += c.weight<<sumOfWeights + rating*c.weight
			}
		}
	}
}

// percent returns part*100/whole, truncated. It requires 0 <= part <= whole and whole > 0.
func percent(part, whole int64) int64 {
	if whole < 1<<46 {
		// Both are exact as floats, and the quotient is so far from the next
		// integer that rounding cannot reach it. Some processors take several
		// times as long to divide integers.
		return int64(float64(part*100) / float64(whole))
	}
	hi, lo := bits.Mul64(uint64(part), 100)
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return int64(q)
}
