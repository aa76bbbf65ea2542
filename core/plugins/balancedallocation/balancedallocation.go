package balancedallocation

import (
	"encoding/binary"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/devices"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/index/devicepools"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// New returns the plugin; nil args stand for the defaults (CPU and memory). With a counter, an
// extended resource that a DeviceClass provides is scored by the node's devices, where the node
// offers none of it itself. A nil counter means that no device provides any. The error names the
// wrong fields.
func New(args *configv1.NodeResourcesBalancedAllocationArgs, counter *devices.Counter) (framework.Plugin, error) {
	if err := ValidateArgs(nil, args).ToAggregate(); err != nil {
		return framework.Plugin{}, err
	}
	b := &balance{resourcesOf(WithDefaults(args)), counter}
	return framework.Plugin{
		Name:        names.NodeResourcesBalancedAllocation,
		Reads:       framework.Reads{Kinds: b.reads()},
		SignPlugin:  framework.SignPlugin{Locality: framework.NodeAndPods, Sign: b.sign, SignRevision: devices.SignRevision},
		PreScore:    b.preScore,
		ScorePlugin: framework.ScorePlugin{Score: score},
	}, nil
}

// balance is the plugin's configuration: the resources to keep in balance, and the counter
// of devices that provide extended resources; nil: none do.
type balance struct {
	resources []v1.ResourceName
	counter   *devices.Counter
}

// resourcesOf returns the names of the resources in the arguments, in order.
func resourcesOf(args *configv1.NodeResourcesBalancedAllocationArgs) []v1.ResourceName {
	list := make([]v1.ResourceName, len(args.Resources))
	for i, r := range args.Resources {
		list[i] = v1.ResourceName(r.Name)
	}
	return list
}

// reads returns the kinds of objects that score looks up; none unless a resource may be provided by
// devices.
func (b *balance) reads() []object.Kind {
	if b.counter == nil || !slices.ContainsFunc(b.resources, resource.ByDevices) {
		return nil
	}
	return []object.Kind{object.DeviceClasses, object.ResourceSlices, object.ResourceClaims}
}

// sign appends to key what the score depends on of the pod: its requests for the resources, and the
// revision of the devices if it requests a resource that a DeviceClass provides.
func (b *balance) sign(key []byte, t *table.Table, p *object.Pod) []byte {
	stocked := false
	for _, name := range b.resources {
		key = binary.AppendVarint(key, p.Demand.Usage.Of(name))
		stocked = stocked || p.Demand.Usage.Of(name) > 0 && b.counter.Has(t, name)
	}
	if stocked {
		key = binary.AppendUvarint(append(key, 's'), devicepools.Of(t).Revision())
	}
	return key
}

// share is one of the resources to keep in balance, and the pod's request for it.
type share struct {
	name    v1.ResourceName
	request int64
	stock   *devices.Stock // devices that provide it; nil: none do
}

// preScore returns the resources to balance (shares) as the state for Score. Resources other than
// CPU, memory and ephemeral storage count only if the pod requests them. It skips pods that request
// none of the resources, since all of them would go to the same node. For CPU and memory alone it
// also returns the score as data (Headroom).
func (b *balance) preScore(t *table.Table, p *object.Pod) framework.PreScoreResult {
	var shares []share
	skip := true
	for _, name := range b.resources {
		request := p.Demand.Usage.Of(name)
		skip = skip && request == 0
		basic := name == v1.ResourceCPU || name == v1.ResourceMemory || name == v1.ResourceEphemeralStorage
		if request > 0 || basic {
			shares = append(shares, share{name, request, b.counter.Stock(t, name)})
		}
	}
	out := framework.PreScoreResult{State: shares, Skip: skip}
	if basic(shares) {
		out.Headroom = headroom.Score{Form: headroom.Balanced, Amounts: headroom.Of(shares[0].request, shares[1].request)}
	}
	return out
}

// column holds one resource of all nodes, by row, and the pod's request for it.
type column struct {
	allocatable, used []int64
	request           int64
}

// score writes the score of each row. It compares the balance with the pod to the balance without
// it: 75 if it stays the same, up to 100 if it gets better, down to 50 if it gets worse.
func score(in *framework.Input, rows []table.Row, out []int64) {
	var stack [4]column // more resources than that cost an allocation a call
	columns := stack[:0]
	shares := in.State.([]share)
	if slices.ContainsFunc(shares, func(s share) bool { return s.stock != nil }) {
		columns, rows = withDevices(in.Table, shares, rows)
		shares = nil
	}
	for _, s := range shares {
		id, ok := in.Table.Column(s.name)
		if !ok {
			continue // no node offers it
		}
		columns = append(columns, columnOf(in.Table, id, s.request))
	}
	for i, r := range rows {
		out[i] = scoreAny(columns, r)
	}
}

// basic reports whether the shares are exactly CPU and memory, in this order.
func basic(shares []share) bool {
	return len(shares) == 2 && shares[0].name == v1.ResourceCPU && shares[1].name == v1.ResourceMemory
}

// withDevices returns a column for each share that has only the given rows as its elements, and the
// indexes of the rows in the columns: 0, 1 and so on. Devices that stand for an extended resource
// count. Resources that no node offers are left out.
func withDevices(t *table.Table, shares []share, rows []table.Row) ([]column, []table.Row) {
	var columns []column
	for _, s := range shares {
		c := column{request: s.request}
		id, ok := t.Column(s.name)
		switch {
		case s.stock != nil:
			c.allocatable, c.used = s.stock.Columns(t, rows)
		case ok:
			for _, r := range rows {
				c.allocatable, c.used = append(c.allocatable, t.Allocatable(id)[r]), append(c.used, t.Used(id)[r])
			}
		default:
			continue
		}
		columns = append(columns, c)
	}
	return columns, devices.Numbered(rows)
}

// columnOf returns the table's column of the resource id, with the pod's request for it.
func columnOf(t *table.Table, id table.Resource, request int64) column {
	return column{allocatable: t.Allocatable(id), used: t.Used(id), request: request}
}

// scoreAny returns the score of row r for any number of resources.
func scoreAny(columns []column, r table.Row) int64 {
	return headroom.Rating(evenness(columns, r, true), evenness(columns, r, false))
}

// evenness returns how evenly the resources are used on the row, 50 to 100: 100 if all used
// fractions are equal, less with a greater standard deviation. withPod adds the pod's requests. The
// operations and their order are kube-scheduler's, so that truncation gives the same integer.
func evenness(columns []column, row table.Row, withPod bool) int64 {
	var total, first, second float64
	n := 0
	for i := range columns {
		f, ok := columns[i].fraction(row, withPod)
		if !ok {
			continue
		}
		if n == 0 {
			first = f
		} else {
			second = f
		}
		total += f
		n++
	}
	deviation := 0.0
	switch {
	case n == 2:
		deviation = math.Abs((first - second) / 2)
	case n > 2:
		mean, sum := total/float64(n), 0.0
		for i := range columns {
			if f, ok := columns[i].fraction(row, withPod); ok {
				sum = sum + (f-mean)*(f-mean)
			}
		}
		deviation = math.Sqrt(sum / float64(n))
	}
	return int64((1 - deviation) * 100)
}

// fraction returns the used fraction of the resource on the row, at most 1; false if the node has
// none allocatable. withPod adds the pod's request.
func (c *column) fraction(row table.Row, withPod bool) (float64, bool) {
	a, used := c.allocatable[row], c.used[row]
	if a <= 0 {
		return 0, false
	}
	if withPod {
		used = resource.Add(used, c.request)
	}
	return min(float64(used)/float64(a), 1), true
}
