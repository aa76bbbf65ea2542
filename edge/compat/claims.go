package compat

import (
	"fmt"
	"slices"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/berth-scheduler/berth/core/devices"
	"github.com/berth-scheduler/berth/core/object"
)

// claims is the ResourceClaimTracker that plugins get: the informer's ResourceClaims, with
// what plugins have assumed of them (assumptions). Allocations by Berth's own plugin that
// the API does not show yet count as pending.
type claims struct{ *Hosts }

// assumptions holds what plugins reported about claims, for any goroutine.
type assumptions struct {
	mu      sync.Mutex
	pending map[types.UID]*pendingClaim          // allocations about to be written, by the claim's UID
	written map[string]*resourcev1.ResourceClaim // claims after a write that the informer may not show, by namespace/name
}

// pendingClaim is a claim with the allocation that is about to be written.
type pendingClaim struct {
	claim *resourcev1.ResourceClaim
	users int // signals of plugins (SignalClaimPendingAllocation) that were not removed
}

// List returns all claims, each as a plugin has written it if that is later.
func (c claims) List() ([]*resourcev1.ResourceClaim, error) {
	list, err := c.factory.Resource().V1().ResourceClaims().Lister().List(labels.Everything())
	if err != nil {
		return nil, err
	}
	out := make([]*resourcev1.ResourceClaim, len(list))
	for i, claim := range list {
		out[i] = c.assumed(claim)
	}
	return out, nil
}

// Get returns the claim, as a plugin has written it if that is later.
func (c claims) Get(namespace, name string) (*resourcev1.ResourceClaim, error) {
	claim, err := c.factory.Resource().V1().ResourceClaims().Lister().ResourceClaims(namespace).Get(name)
	if err != nil {
		return nil, err
	}
	return c.assumed(claim), nil
}

// assumed returns what a plugin has written of the claim, if the informer's version, claim, is
// older. Else it returns claim, and forgets what the plugin has written.
func (c claims) assumed(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	l := &c.assumptions
	l.mu.Lock()
	defer l.mu.Unlock()
	key := claim.Namespace + "/" + claim.Name
	written := l.written[key]
	if written == nil {
		return claim
	}
	if written.UID != claim.UID || !older(claim.ResourceVersion, written.ResourceVersion) {
		delete(l.written, key)
		return claim
	}
	return written
}

// older reports whether resource version a, a number, is lower than b.
func older(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// ListAllAllocatedDevices returns the devices that all claims have allocated, pending allocations
// included. Devices of which claims have only shares are left out, and so is admin access.
func (c claims) ListAllAllocatedDevices() (sets.Set[structured.DeviceID], error) {
	state, err := c.GatherAllocatedState()
	if err != nil {
		return nil, err
	}
	return state.AllocatedDevices, nil
}

// GatherAllocatedState returns the devices, shares and capacity that all claims have
// allocated, pending allocations included. Admin access takes nothing.
func (c claims) GatherAllocatedState() (*structured.AllocatedState, error) {
	list, err := c.List()
	if err != nil {
		return nil, err
	}
	own, err := c.own()
	if err != nil {
		return nil, err
	}
	state := &structured.AllocatedState{
		AllocatedDevices: sets.New[structured.DeviceID](), AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range list {
		allocation := claim.Status.Allocation
		if pending := c.pendingOfPlugins(claim.UID); pending != nil {
			allocation = pending
		}
		if allocation != nil {
			own = slices.DeleteFunc(own, func(o *object.ResourceClaim) bool { return o.UID == claim.UID })
			addDevices(state, allocation)
		}
	}
	for _, claim := range own {
		addDevices(state, claim.Allocation())
	}
	return state, nil
}

// own returns the claims that are allocated according to the machine, including claims that are
// about to be written or created; none before Connect. It asks the loop, and returns an error if
// that does not answer.
func (c claims) own() (list []*object.ResourceClaim, err error) {
	if c.machine == nil {
		return nil, nil
	}
	err = c.ask(func() { list = c.machine.AllocatedClaims() })
	return list, err
}

// addDevices adds the allocation's devices to the state, except those for admin access.
func addDevices(state *structured.AllocatedState, a *resourcev1.AllocationResult) {
	for i := range a.Devices.Results {
		addDevice(state, &a.Devices.Results[i])
	}
}

// addDevice adds one allocated device to the state, unless it is for admin access.
func addDevice(state *structured.AllocatedState, r *resourcev1.DeviceRequestAllocationResult) {
	if r.AdminAccess != nil && *r.AdminAccess {
		return
	}
	devices.AddAllocated(state, r, true)
}

// SignalClaimPendingAllocation records that a plugin is about to write the allocation that claim
// has; without one it returns an error. Several pods may do so for one claim: the first allocation
// counts, until each signal is removed. The first signal is ignored if plugins see the claim as
// allocated.
func (c claims) SignalClaimPendingAllocation(uid types.UID, claim *resourcev1.ResourceClaim) error {
	if claim == nil || claim.Status.Allocation == nil {
		return fmt.Errorf("claim %s has no allocation", uid)
	}
	now, err := c.Get(claim.Namespace, claim.Name)
	allocated := err == nil && now.UID == uid && now.Status.Allocation != nil
	l := &c.assumptions
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending[uid] == nil {
		if allocated {
			return nil
		}
		l.pending[uid] = &pendingClaim{claim: claim}
	}
	l.pending[uid].users++
	return nil
}

// GetPendingAllocation returns the allocation that a plugin or Berth is about to write; nil if
// there is none, or if no plugin has one and the loop does not answer.
func (c claims) GetPendingAllocation(uid types.UID) *resourcev1.AllocationResult {
	if pending := c.pendingOfPlugins(uid); pending != nil {
		return pending
	}
	own, err := c.own()
	if err != nil {
		return nil
	}
	for _, claim := range own {
		if claim.UID == uid && !c.shown(claim) {
			return claim.Allocation()
		}
	}
	return nil
}

// shown reports whether plugins see the claim as allocated: by the informer, or as a plugin
// has written it.
func (c claims) shown(claim *object.ResourceClaim) bool {
	now, err := c.Get(claim.Namespace, claim.Name)
	return err == nil && now.UID == claim.UID && now.Status.Allocation != nil
}

// pendingOfPlugins returns the allocation that a plugin signalled; nil if there is none.
func (c claims) pendingOfPlugins(uid types.UID) *resourcev1.AllocationResult {
	l := &c.assumptions
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.pending[uid]; p != nil {
		return p.claim.Status.Allocation
	}
	return nil
}

// MaybeRemoveClaimPendingAllocation removes one signal of the claim's pending allocation, or each
// if all is set. It reports whether this ended the pending allocation.
func (c claims) MaybeRemoveClaimPendingAllocation(uid types.UID, all bool) bool {
	l := &c.assumptions
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pending[uid]
	if p == nil {
		return false
	}
	if p.users--; p.users > 0 && !all {
		return false
	}
	delete(l.pending, uid)
	return true
}

// AssumeClaimAfterAPICall records the claim as a plugin has written it. Get and List return
// that until the informer shows this version or a later one. The error is always nil.
func (c claims) AssumeClaimAfterAPICall(claim *resourcev1.ResourceClaim) error {
	l := &c.assumptions
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written[claim.Namespace+"/"+claim.Name] = claim
	return nil
}

// AssumedClaimRestore forgets what AssumeClaimAfterAPICall recorded.
func (c claims) AssumedClaimRestore(namespace, name string) {
	l := &c.assumptions
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.written, namespace+"/"+name)
}
