package devices

import (
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berth-scheduler/berth/core/index/devicepools"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// Stock is the devices that stand for an extended resource on the nodes that do
// not offer it themselves. It is good while the revision of devicepools stands.
type Stock struct {
	counter *Counter
	name    v1.ResourceName
	class   *resourcev1.DeviceClass
	shared  *Offer
}

// SignRevision implements framework.SignPlugin's field for a plugin whose signature of a
// pod depends on the devices that stand for requested resources.
func SignRevision(t *table.Table, p *object.Pod) (revision uint64, known bool) {
	if d := &p.Demand; len(d.Requests.Scalars)+len(d.Usage.Scalars)+len(d.Scoring.Scalars) == 0 {
		return 0, true
	}
	return devicepools.Of(t).Revision() + t.Objects().Revision(object.DeviceClasses), true
}

// Has reports whether a device class stands for the resource. A nil counter has none.
func (c *Counter) Has(t *table.Table, name v1.ResourceName) bool {
	return c != nil && devicepools.Of(t).ClassFor(name) != nil && resource.ByDevices(name) // the dearest last
}

// Stock returns the stock of the resource, nil where no device class stands for it.
func (c *Counter) Stock(t *table.Table, name v1.ResourceName) *Stock {
	if !c.Has(t, name) {
		return nil
	}
	return &Stock{counter: c, name: name, class: devicepools.Of(t).ClassFor(name).API, shared: Shared(t, c.Shares)}
}

// Columns returns how much of the resource each of the rows offers, and how much of
// it is taken, in the rows' order: devices only where the node offers none.
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

// Numbered returns the index of each row, from 0. The columns of Stock.Columns are
// ordered by it.
func Numbered(rows []table.Row) []table.Row {
	numbers := make([]table.Row, len(rows))
	for i := range numbers {
		numbers[i] = table.Row(i)
	}
	return numbers
}
