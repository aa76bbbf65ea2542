package devices

import (
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/berth-scheduler/berth/core/object"
)

// compiled is how many CEL selector expressions a cache of NewSelectors keeps compiled.
const compiled = 64

// Counter counts the devices that a device class selects on a node, for plugins that score
// an extended resource which devices stand for. It may be used concurrently.
type Counter struct {
	// Shares is set if claims can hold parts of a device (DRAConsumableCapacity).
	Shares    bool
	features  structured.Features // the device allocator's feature gates
	selectors *cel.Cache          // compiled CEL selectors of device classes
}

// NewCounter returns a counter under the device allocator's feature gates.
func NewCounter(f structured.Features) *Counter {
	return &Counter{Shares: f.ConsumableCapacity, features: f, selectors: NewSelectors(f)}
}

// NewSelectors returns an empty cache of compiled CEL device selectors under the device
// allocator's feature gates.
func NewSelectors(f structured.Features) *cel.Cache {
	return cel.NewCache(compiled, cel.Features{EnableConsumableCapacity: f.ConsumableCapacity, EnableListTypeAttributes: f.ListTypeAttributes})
}

// Count returns how many devices of the offer the class selects and the node can use (all), and how
// many of these are allocated, wholly or in part (taken). As kube-scheduler's
// calculateDRAResourceTotals it counts slices of outdated generations, too, and returns 0 and 0 if
// a node selector or a CEL selector fails.
func (c *Counter) Count(n *object.Node, class *resourcev1.DeviceClass, o *Offer) (all, taken int64) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
	for _, s := range o.Slices {
		if ok, err := c.reaches(node, s); err != nil {
			return 0, 0
		} else if !ok {
			continue
		}
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			ok, err := c.usable(node, s, d)
			if ok && err == nil {
				ok, err = c.selects(class, s.Spec.Driver, d)
			}
			if err != nil {
				return 0, 0
			}
			if !ok {
				continue
			}
			all++
			if structured.IsDeviceAllocated(structured.MakeDeviceID(s.Spec.Driver, s.Spec.Pool.Name, d.Name), &o.Taken) {
				taken++
			}
		}
	}
	return all, taken
}

// reaches reports whether the node may use devices of the slice, by the node selection of the slice
// as a whole. A slice that selects nodes for each device, or selects none at all, reaches every
// node. A selector that is not valid is an error.
func (c *Counter) reaches(n *v1.Node, s *resourcev1.ResourceSlice) (bool, error) {
	name := s.Spec.NodeName
	switch {
	case isTrue(s.Spec.PerDeviceNodeSelection), isTrue(s.Spec.AllNodes):
		return true, nil
	case name != nil && *name == n.Name:
		return true, nil
	case s.Spec.NodeSelector != nil:
		return structured.NodeMatches(c.features, n, "", false, s.Spec.NodeSelector)
	}
	return name == nil || *name == "", nil
}

// usable reports whether the device's own node selection admits the node. It is true if the slice
// does not select nodes for each device. It is false if the slice does and the device selects none.
// A selector that is not valid is an error.
func (c *Counter) usable(n *v1.Node, s *resourcev1.ResourceSlice, d *resourcev1.Device) (bool, error) {
	switch {
	case !isTrue(s.Spec.PerDeviceNodeSelection), isTrue(d.AllNodes), d.NodeName != nil && *d.NodeName == n.Name:
		return true, nil
	case d.NodeSelector != nil:
		return structured.NodeMatches(c.features, n, "", false, d.NodeSelector)
	}
	return false, nil
}

// isTrue reports whether b is set and true.
func isTrue(b *bool) bool { return b != nil && *b }

// selects reports whether all CEL selectors of the device class accept the device of the driver.
// Selectors of other types are ignored. A selector that does not compile or fails is an error.
func (c *Counter) selects(class *resourcev1.DeviceClass, driver string, d *resourcev1.Device) (bool, error) {
	for i := range class.Spec.Selectors {
		s := class.Spec.Selectors[i].CEL
		if s == nil {
			continue
		}
		expression := c.selectors.GetOrCompile(s.Expression)
		if expression.Error != nil {
			return false, expression.Error
		}
		ok, _, err := expression.DeviceMatches(unbounded{}, cel.Device{Driver: driver, Attributes: d.Attributes, Capacity: d.Capacity})
		if err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// unbounded is a context without deadline or cancellation for CEL: the library itself
// bounds what an expression may cost.
type unbounded struct{}

// Deadline returns no deadline.
func (unbounded) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done returns nil: the context is never cancelled.
func (unbounded) Done() <-chan struct{} { return nil }

// Err returns nil: the context is never cancelled.
func (unbounded) Err() error { return nil }

// Value returns nil: the context holds no values.
func (unbounded) Value(any) any { return nil }
