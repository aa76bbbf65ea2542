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

// New returns the plugin; nil args stand for the defaults (CPU and memory).
// With a counter, devices count where a class stands for a resource. The error
// names the fields that are wrong.
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

// balance is the resources that are kept in balance. counter counts the devices
// that classes stand for; nil: none do.
type balance struct {
	resources []v1.ResourceName
	counter   *devices.Counter
}

func resourcesOf(args *configv1.NodeResourcesBalancedAllocationArgs) []v1.ResourceName {
	list := make([]v1.ResourceName, len(args.Resources))
	for i, r := range args.Resources {
		list[i] = v1.ResourceName(r.Name)
	}
	return list
}

// reads returns the kinds of objects that score looks up.
func (b *balance) reads() []object.Kind {
	if b.counter == nil || !slices.ContainsFunc(b.resources, resource.ByDevices) {
		return nil
	}
	return []object.Kind{object.DeviceClasses, object.ResourceSlices, object.ResourceClaims}
}

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

// share is one resource and what the pod takes of it.
type share struct {
	name    v1.ResourceName
	request int64
	stock   *devices.Stock // devices that stand for it, nil for none
}

// preScore skips pods that take nothing of any of the resources: all of them
// would go to the same node. Resources other than the three basic ones count
// only where the pod takes some.
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

// column is one resource, by row. request is what the pod adds.
type column struct {
	allocatable, used []int64
	request           int64
}

// score writes the score of each row. It compares the balance with the pod to the balance
// without it: about 75 if it stays the same, towards 100 if it gets better, towards 50 if
// it gets worse.
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

// basic reports whether the shares are exactly CPU and memory.
func basic(shares []share) bool {
	return len(shares) == 2 && shares[0].name == v1.ResourceCPU && shares[1].name == v1.ResourceMemory
}

// withDevices returns the columns of the rows alone, devices counted, and the rows as
// they are numbered there.
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

func columnOf(t *table.Table, id table.Resource, request int64) column {
	return column{allocatable: t.Allocatable(id), used: t.Used(id), request: request}
}

// scoreAny scores one row by the resources of the columns, whatever they are.
func scoreAny(columns []column, r table.Row) int64 {
	return headroom.Rating(evenness(columns, r, true), evenness(columns, r, false))
}

// evenness returns 100 if all fractions in use are equal, and less with a greater
// standard deviation. Operations and their order are v1.36's, so that cutting off the
// fraction gives the same integer.
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

// fraction returns the part of the resource in use, at most 1; false where the
// node offers none.
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
