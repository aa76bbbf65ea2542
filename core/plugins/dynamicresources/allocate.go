package dynamicresources

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/berth-scheduler/berth/core/devices"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// errSteps is the error of a search that was given up after too many steps.
var errSteps = errors.New("too many steps")

// allocate calls Kubernetes' allocator for the open claims on the node. shared is the devices that
// several nodes can see. It returns one result for each claim; nil and no error if they cannot all
// be allocated. After too many steps it returns an error that wraps errSteps. The results depend on
// the table and the claims only, except for ShareIDs, which the library draws.
func (pl *plugin) allocate(t *table.Table, n *object.Node, open []*resourcev1.ResourceClaim, shared *devices.Offer) ([]resourcev1.AllocationResult, error) {
	o := shared.WithNode(t, n.Name, pl.features.DRAConsumableCapacity)
	limit := &limit{left: pl.steps, limited: pl.steps > 0}
	ctx := logr.NewContext(limit, logr.Discard())
	allocator, err := structured.NewAllocator(ctx, pl.allocator, o.Taken, classes{t}, o.Slices, pl.selectors)
	if err != nil {
		return nil, err
	}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}, Status: v1.NodeStatus{DeclaredFeatures: n.Features}}
	got, err := allocator.Allocate(ctx, node, open)
	if limit.limited && limit.left < 0 {
		return nil, fmt.Errorf("node %s: timed out trying to allocate devices: %w", n.Name, errSteps)
	}
	if err == nil && len(got) != len(open) {
		got = nil
	}
	return got, err
}

// classes is the allocator's lister of the table's DeviceClasses.
type classes struct{ table *table.Table }

// Get returns the class of that name, assumed state included, or an error if there is none.
func (c classes) Get(name string) (*resourcev1.DeviceClass, error) {
	if class, ok := c.table.Objects().Named(object.DeviceClasses, "", name).(*object.DeviceClass); ok {
		return class.API, nil
	}
	return nil, fmt.Errorf("deviceclass.resource.k8s.io %q not found", name)
}

// List returns all classes.
func (c classes) List() ([]*resourcev1.DeviceClass, error) {
	var list []*resourcev1.DeviceClass
	for _, o := range c.table.Objects().List(object.DeviceClasses) {
		list = append(list, o.(*object.DeviceClass).API)
	}
	return list, nil
}

// limit is the context that the allocator runs in. kube-scheduler ends a search by time; here
// results must not depend on time, so the search ends after a number of steps. Each call of Err is
// a step.
type limit struct {
	left    int  // steps; below 0: there were too many
	limited bool // false: any number of steps
}

// stepsOf returns the number of steps for a FilterTimeout: one for each 100 µs. That is
// generous, as a step takes at least a microsecond.
func stepsOf(d time.Duration) int {
	return int(min(max(d/(100*time.Microsecond), 1), 1<<30))
}

// Deadline returns none.
func (*limit) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done returns nil: the context is never cancelled.
func (*limit) Done() <-chan struct{} { return nil }

// Value returns nil: the context holds no values.
func (*limit) Value(any) any { return nil }

// Err counts a step and returns errSteps once there are too many; always nil if not limited.
func (l *limit) Err() error {
	if !l.limited {
		return nil
	}
	if l.left--; l.left < 0 {
		return errSteps
	}
	return nil
}
