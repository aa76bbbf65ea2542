package devices

import (
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berth-scheduler/berth/core/index/devicepools"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// Stock counts the devices that stand for one extended resource, on nodes that do not offer
// the resource themselves (DRAExtendedResource). It is valid while the revision of
// devicepools stays the same.
type Stock struct {
	counter *Counter
	name    v1.ResourceName
	class   *resourcev1.DeviceClass
	shared  *Offer // the devices that several nodes can see
}

// SignRevision returns a revision that changes whenever DeviceClasses change, or devices that
// several nodes may use: the signature of a pod with extended resources depends on them. It is 0
// for a pod without scalar resources. known is always true. It implements
// framework.SignPlugin.SignRevision.
func SignRevision(t *table.Table, p *object.Pod) (revision uint64, known bool) {
	if d := &p.Demand; len(d.Requests.Scalars)+len(d.Usage.Scalars)+len(d.Scoring.Scalars) == 0 {
		return 0, true
	}
	return devicepools.Of(t).Revision() + t.Objects().Revision(object.DeviceClasses), true
}

// Has reports whether a device class stands for the extended resource, so that pods may get it as
// devices. It is false for a nil counter, which stands for DRAExtendedResource being off.
func (c *Counter) Has(t *table.Table, name v1.ResourceName) bool {
	return c != nil && devicepools.Of(t).ClassFor(name) != nil && resource.ByDevices(name) // the dearest last
}

// Stock returns the stock of the extended resource; nil if no device class stands for it, or the
// counter is nil.
func (c *Counter) Stock(t *table.Table, name v1.ResourceName) *Stock {
	if !c.Has(t, name) {
		return nil
	}
	return &Stock{counter: c, name: name, class: devicepools.Of(t).ClassFor(name).API, shared: Shared(t, c.Shares)}
}

// Columns returns how much of the resource rows[i] offers, in allocatable[i], and how much of that
// is taken, in used[i]. Devices are counted only where the node's own allocatable has none of the
// resource. A row without a node has 0.
func (s *Stock) Columns(t *table.Table, rows []table.Row) (allocatable, used []int64) {
	allocatable, used = make([]int64, len(rows)), make([]int64, len(rows))
	id, known := t.Column(s.name)
	for i, r := range rows {
		if known && t.Allocatable(id)[r] > 0 {
			allocatable[i], used[i] = t.Allocatable(id)[r], t.Used(id)[r]
		} else if n := t.Node(r); n != nil {
			allocatable[i], used[i] = s.counter.Count(n, s.class, s.shared.WithNode(t, n.Name, s.counter.Shares))
		}
	}
	return allocatable, used
}

// Numbered returns 0, 1, ... as table.Rows, as many as rows: the indexes in the columns of
// Stock.Columns, for functions that index columns by row.
func Numbered(rows []table.Row) []table.Row {
	numbers := make([]table.Row, len(rows))
	for i := range numbers {
		numbers[i] = table.Row(i)
	}
	return numbers
}
