package dynamicresources

import (
	"cmp"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// conditional reports whether devices of the allocation have binding conditions, which
// must hold before the pod is bound.
func conditional(a *resourcev1.AllocationResult) bool {
	return slices.ContainsFunc(a.Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool { return len(r.BindingConditions) > 0 })
}

// waitNotice returns the Event saying that the pod waits for the binding conditions of its devices;
// nil if none has conditions, or their feature gates are off. It names all devices of the pod's
// claims.
func (pl *plugin) waitNotice(t *table.Table, p *object.Pod, node string) *framework.Notice {
	if !pl.features.DeviceBindingConditions() {
		return nil
	}
	claims := []*object.ResourceClaim{pl.madeFor(t, p)}
	for i := range p.Claims {
		if c := shown(t, p.Namespace, p.Claims[i].Claim); c != nil {
			claims = append(claims, cmp.Or(withPendingAllocation(t, c), c))
		}
	}
	var devices []framework.WaitedDevice
	waits := false
	for _, c := range claims {
		if c == nil || c.Allocation() == nil {
			continue
		}
		for _, r := range c.Allocation().Devices.Results {
			d := framework.WaitedDevice{Driver: r.Driver, Conditional: len(r.BindingConditions) > 0}
			devices = append(devices, d)
			waits = waits || d.Conditional
		}
	}
	if !waits {
		return nil
	}
	return &framework.Notice{Reason: "BindingConditionsPending", Action: "Scheduling",
		Note: "waiting for binding conditions for device on node " + node, WaitedDevices: devices}
}

// isReadyForBinding reports whether all binding conditions of the claim's devices hold. It is true
// if there are none, and false if the claim is not allocated. It returns an error if one has failed
// for good.
func isReadyForBinding(c *resourcev1.ResourceClaim) (bool, error) {
	if c.Status.Allocation == nil {
		return false, nil
	}
	for i := range c.Status.Allocation.Devices.Results {
		r := &c.Status.Allocation.Devices.Results[i]
		if len(r.BindingConditions) == 0 {
			continue
		}
		at := slices.IndexFunc(c.Status.Devices, func(d resourcev1.AllocatedDeviceStatus) bool {
			return d.Driver == r.Driver && d.Pool == r.Pool && d.Device == r.Device
		})
		if at < 0 {
			return false, nil
		}
		conditions := c.Status.Devices[at].Conditions
		for _, name := range r.BindingFailureConditions {
			if f := meta.FindStatusCondition(conditions, name); f != nil && f.Status == metav1.ConditionTrue {
				return false, fmt.Errorf("%w: claim=%s, reason=%s, message=%q", framework.ErrDeviceBindingFailed, c.Name, f.Reason, f.Message)
			}
		}
		for _, name := range r.BindingConditions {
			if !meta.IsStatusConditionTrue(conditions, name) {
				return false, nil
			}
		}
	}
	return true, nil
}

// writesDone implements PreBindPlugin.WritesDone. It returns Wait until the API shows the
// claim that was made for the pod, if any, with its allocation, and until the binding
// conditions of all the pod's devices hold; then nil. It returns an error if a condition
// failed or timed out, or if a claim of the pod was deleted. It waits for the made claim
// since only a claim that the API shows can be deleted if the binding fails.
func (pl *plugin) writesDone(t *table.Table, p *object.Pod, _ string) *decision.Status {
	names := make([]string, 0, len(p.Claims)+1)
	if m := pl.made[p.UID]; m != nil {
		if c := pl.madeFor(t, p); c != nil && shown(t, p.Namespace, m.name) != c {
			return &decision.Status{Code: decision.Wait}
		}
		names = append(names, m.name)
	}
	if !pl.features.DeviceBindingConditions() && len(names) == 0 {
		return nil
	}
	for i := range p.Claims {
		names = append(names, p.Claims[i].Claim)
	}
	for _, name := range names {
		c := shown(t, p.Namespace, name)
		if c == nil {
			return decision.Failed("claim %s got deleted in the meantime", p.Namespace+"/"+name)
		}
		now := c
		if g := withPendingAllocation(t, c); g != nil {
			now = g
		}
		if now.Allocation() == nil || !conditional(now.Allocation()) {
			continue
		}
		switch ready, err := isReadyForBinding(c.API); {
		case err != nil:
			return &decision.Status{Code: decision.Error, Err: err}
		case !ready && pl.bindingTimedOut(t, c.API):
			return decision.Failed("%w: claim=%s", framework.ErrDeviceBindingTimeout, c.Name)
		case !ready:
			return &decision.Status{Code: decision.Wait}
		}
	}
	return nil
}
