package dynamicresources

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// offer is slices, and what of their devices is taken.
type offer struct {
	slices []*resourcev1.ResourceSlice
	taken  structured.AllocatedState
}

func newOffer() *offer {
	return &offer{taken: structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}}
}

// sharedOffer is what several nodes can see. What is taken of devices that a
// single node can use is left to that node.
func (pl *plugin) sharedOffer(t *table.Table) *offer {
	o := newOffer()
	for _, p := range t.SharedDevices() {
		o.slices = append(o.slices, p.Slices...)
		if p.Node == "" {
			o.takeAll(p, pl.features.ConsumableCapacity)
		}
	}
	return o
}

// offerOn is the shared offer with what concerns the node alone.
func (pl *plugin) offerOn(t *table.Table, node string, shared *offer) *offer {
	own := t.DevicesOf(node)
	if len(own) == 0 {
		return shared
	}
	all := newOffer()
	for _, p := range own {
		all.takeAll(p, pl.features.ConsumableCapacity)
		if p.Local {
			all.slices = append(all.slices, p.Slices...)
		}
	}
	all.slices = append(all.slices, shared.slices...)
	all.taken.AllocatedDevices = all.taken.AllocatedDevices.Union(shared.taken.AllocatedDevices)
	all.taken.AllocatedSharedDeviceIDs = all.taken.AllocatedSharedDeviceIDs.Union(shared.taken.AllocatedSharedDeviceIDs)
	for id, capacity := range shared.taken.AggregatedCapacity { // any order: into a map, of other devices
		all.taken.AggregatedCapacity[id] = capacity
	}
	return all
}

func (o *offer) takeAll(p *table.DevicePool, shares bool) {
	for _, r := range p.Taken {
		o.take(r, shares)
	}
}

// take counts what a claim holds. With consumable capacity (shares), several
// claims can hold shares of one device.
func (o *offer) take(r *resourcev1.DeviceRequestAllocationResult, shares bool) {
	id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
	if !shares || r.ShareID == nil {
		o.taken.AllocatedDevices.Insert(id)
		return
	}
	o.taken.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
	if r.ConsumedCapacity != nil {
		o.taken.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
	}
}

// errSteps is why a search was given up.
var errSteps = errors.New("too many steps")

// allocate asks what the claims would get on the node: nil and no error where
// there is not enough. It is a pure function of the table and the claims but
// for the ShareIDs, which the library draws.
func (pl *plugin) allocate(t *table.Table, n *object.Node, open []*resourcev1.ResourceClaim, shared *offer) ([]resourcev1.AllocationResult, error) {
	o := pl.offerOn(t, n.Name, shared)
	limit := &limit{left: pl.steps, limited: pl.steps > 0}
	ctx := logr.NewContext(limit, logr.Discard())
	allocator, err := structured.NewAllocator(ctx, pl.allocator, o.taken, classes{t}, o.slices, pl.selectors)
	if err != nil {
		return nil, err
	}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
	got, err := allocator.Allocate(ctx, node, open)
	if limit.limited && limit.left < 0 {
		return nil, fmt.Errorf("node %s: timed out trying to allocate devices: %w", n.Name, errSteps)
	}
	if err == nil && len(got) != len(open) {
		got = nil
	}
	return got, err
}

// classes lists the device classes of the table for the allocator.
type classes struct{ table *table.Table }

func (c classes) Get(name string) (*resourcev1.DeviceClass, error) {
	if class, ok := c.table.Object(object.DeviceClasses, "", name).(*object.DeviceClass); ok {
		return class.API, nil
	}
	return nil, fmt.Errorf("deviceclass.resource.k8s.io %q not found", name)
}

func (c classes) List() ([]*resourcev1.DeviceClass, error) {
	var list []*resourcev1.DeviceClass
	for _, o := range c.table.Objects(object.DeviceClasses) {
		list = append(list, o.(*object.DeviceClass).API)
	}
	return list, nil
}

// limit is the context that the allocator runs under. v1.36 stops a search
// after some time; a search that has to come to the same end every time is
// stopped after a number of steps, at each of which the allocator asks Err.
type limit struct {
	left    int
	limited bool
}

// stepsOf is how many steps stand for the time, which is generous: a step
// takes a microsecond at least.
func stepsOf(d time.Duration) int {
	return int(min(max(d/(100*time.Microsecond), 1), 1<<30))
}

func (*limit) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*limit) Done() <-chan struct{}       { return nil }
func (*limit) Value(any) any               { return nil }

func (l *limit) Err() error {
	if !l.limited {
		return nil
	}
	if l.left--; l.left < 0 {
		return errSteps
	}
	return nil
}
