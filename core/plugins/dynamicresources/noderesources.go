package dynamicresources

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	berthresource "github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// Devices may stand for CPU, memory and other resources of their node (a mapping), or need
// some besides (an overhead; KEP-5517, the gate DRANodeAllocatableResources): a pod that
// gets them takes those resources as well. What it takes depends on the devices, so nodes
// share no answers, and each pod has a class of its own.

// rejection is the reasons why a pod with its devices does not fit the node's CPU,
// memory and so on. It is an error.
type rejection []string

// Error returns the reasons, comma-separated.
func (r rejection) Error() string { return strings.Join(r, ", ") }

// verdict returns the verdict of the kind (refused or lacking) with a hash of the
// reasons, so that nodes with one verdict have the same reasons.
func (r rejection) verdict(kind framework.Verdict) framework.Verdict {
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.Error())) // it never fails
	return (framework.Verdict(h.Sum64())>>2)&^kinds | kind
}

// takesOf returns what the pod's devices consume of the node's resources, for each claim, sorted by
// claim name. claims yields the pod's claims, each with the allocation that it has or would get on
// the node; slices are those that the node sees. some is true if a device consumes any. It returns
// an error if a device is not in slices, or the allocation lacks its capacity.
func takesOf(p *object.Pod, n *object.Node, slices []*resourcev1.ResourceSlice, claims iter.Seq2[*resourcev1.ResourceClaim, *resourcev1.AllocationResult]) (list []v1.NodeAllocatableResourceClaimStatus, some bool, err error) {
	for claim, a := range claims {
		devices, consume := devicesOf(a, n, slices)
		if !consume {
			continue
		}
		some = true
		of := v1.NodeAllocatableResourceClaimStatus{ResourceClaimName: claim.Name, Containers: containersUsing(p, claim.Name)}
		for i, d := range devices {
			r := &a.Devices.Results[i]
			if d == nil {
				return nil, true, fmt.Errorf("claim %s/%s, device %s, driver %s: device %s not found in pool %s for driver %s",
					claim.Namespace, claim.Name, r.Device, r.Driver, r.Device, r.Pool, r.Driver)
			}
			if err := addTaken(&of, d, r); err != nil {
				return nil, true, fmt.Errorf("claim %s/%s, device %s: %w", claim.Namespace, claim.Name, r.Device, err)
			}
		}
		if len(of.Mapping)+len(of.Overhead) > 0 {
			list = append(list, of)
		}
	}
	sortByClaim(list)
	return list, some, nil
}

// devicesOf returns the device of each result of the allocation, nil for one that the node
// does not see. consume is set if one of them consumes resources of the node.
func devicesOf(a *resourcev1.AllocationResult, n *object.Node, slices []*resourcev1.ResourceSlice) (devices []*resourcev1.Device, consume bool) {
	for i := range a.Devices.Results {
		d := deviceOf(slices, n, &a.Devices.Results[i])
		devices = append(devices, d)
		consume = consume || d != nil && len(d.NodeAllocatableResources) > 0
	}
	return devices, consume
}

// sortByClaim sorts the list by claim name.
func sortByClaim(list []v1.NodeAllocatableResourceClaimStatus) {
	slices.SortFunc(list, func(a, b v1.NodeAllocatableResourceClaimStatus) int {
		return strings.Compare(a.ResourceClaimName, b.ResourceClaimName)
	})
}

// deviceOf returns the device that a result names, from the slices in list. Of several it is the
// one in the slice with the highest generation; nil if no slice has it for the node.
func deviceOf(list []*resourcev1.ResourceSlice, n *object.Node, r *resourcev1.DeviceRequestAllocationResult) (device *resourcev1.Device) {
	newest := int64(0)
	for _, s := range list {
		if s.Spec.Driver != r.Driver || s.Spec.Pool.Name != r.Pool || device != nil && s.Spec.Pool.Generation <= newest {
			continue
		}
		i := slices.IndexFunc(s.Spec.Devices, func(d resourcev1.Device) bool { return d.Name == r.Device })
		if i >= 0 && seenFrom(n, s, &s.Spec.Devices[i]) {
			device, newest = &s.Spec.Devices[i], s.Spec.Pool.Generation
		}
	}
	return device
}

// seenFrom reports whether the node can use the device of the slice. It is false if the node
// selection is not valid.
func seenFrom(n *object.Node, s *resourcev1.ResourceSlice, d *resourcev1.Device) bool {
	name, all, by := s.Spec.NodeName, s.Spec.AllNodes, s.Spec.NodeSelector
	if s.Spec.PerDeviceNodeSelection != nil && *s.Spec.PerDeviceNodeSelection {
		name, all, by = d.NodeName, d.AllNodes, d.NodeSelector
	}
	selector, ok := reach(name, all, by)
	return ok && (selector == nil || selector.Matches(n.Subject()))
}

// addTaken adds to taken what the device d, allocated by r, consumes of the node's resources: what
// it stands for (mapping), and what it needs besides (overhead). Both lists stay sorted by name. It
// returns an error if r lacks the capacity that the mapping refers to.
func addTaken(taken *v1.NodeAllocatableResourceClaimStatus, d *resourcev1.Device, r *resourcev1.DeviceRequestAllocationResult) error {
	for _, name := range slices.Sorted(maps.Keys(d.NodeAllocatableResources)) {
		of := d.NodeAllocatableResources[name]
		if of.Mapping != nil {
			q, err := mapped(name, of.Mapping, r)
			if err != nil {
				return err
			}
			if q != nil {
				i, known := slices.BinarySearchFunc(taken.Mapping, name, func(m v1.NodeAllocatableMappedResources, name v1.ResourceName) int { return cmp.Compare(m.Name, name) })
				if !known {
					taken.Mapping = slices.Insert(taken.Mapping, i, v1.NodeAllocatableMappedResources{Name: name})
				}
				taken.Mapping[i].Quantity = sum(taken.Mapping[i].Quantity, q)
			}
		}
		if o := of.Overhead; o != nil && (o.PerPod != nil || o.PerContainer != nil) {
			i, known := slices.BinarySearchFunc(taken.Overhead, name, func(o v1.NodeAllocatableOverheadResources, name v1.ResourceName) int {
				return cmp.Compare(o.Name, name)
			})
			if !known {
				taken.Overhead = slices.Insert(taken.Overhead, i, v1.NodeAllocatableOverheadResources{Name: name})
			}
			into := &taken.Overhead[i]
			into.PerPod, into.PerContainer = sum(into.PerPod, o.PerPod), sum(into.PerContainer, o.PerContainer)
		}
	}
	return nil
}

// mapped returns how much of the named node resource the device stands for: an amount of its own,
// or a multiple of the capacity that the claim consumes of it (r). It returns nil for nothing, and
// an error if r says nothing of consumed capacity though the mapping refers to it.
func mapped(name v1.ResourceName, m *resourcev1.NodeAllocatableMapping, r *resourcev1.DeviceRequestAllocationResult) (*resource.Quantity, error) {
	key := m.CapacityKey
	if key == nil || *key == "" {
		return m.DeviceMultiplier, nil
	}
	if r.ConsumedCapacity == nil {
		return nil, fmt.Errorf("ConsumedCapacity is nil, but Capacity key '%s' is set in NodeAllocatableResources for resource %s", *key, name)
	}
	consumed, there := r.ConsumedCapacity[*key]
	if !there {
		return nil, nil
	}
	return new(product(consumed, m.CapacityMultiplier)), nil
}

// sum returns the sum of two quantities. nil stands for none: the sum is then the other, which may
// be nil, too.
func sum(a, b *resource.Quantity) *resource.Quantity {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	q := a.DeepCopy()
	q.Add(*b)
	return &q
}

// product returns the quantity times the factor; the quantity itself if factor is nil.
func product(q resource.Quantity, factor *resource.Quantity) resource.Quantity {
	q = q.DeepCopy()
	if factor == nil || factor.CmpInt64(1) == 0 {
		return q
	}
	times, by := q.AsDec(), factor.DeepCopy()
	times.Mul(times, by.AsDec())
	return *resource.NewDecimalQuantity(*times, q.Format)
}

// containersUsing returns the names of the pod's containers, init containers first, that use the
// named ResourceClaim. A container that uses it several times is listed as often. It returns none
// if Pod.Claiming is nil.
func containersUsing(p *object.Pod, claim string) []string {
	names := []string{}
	if p.Claiming == nil {
		return names
	}
	for _, list := range [2][]v1.Container{p.Claiming.Spec.InitContainers, p.Claiming.Spec.Containers} {
		for i := range list {
			for _, used := range list[i].Resources.Claims {
				if entry := entryOf(p.Claiming, used.Name); entry != nil {
					if name, _, err := resourceclaim.Name(p.Claiming, entry); err == nil && name != nil && *name == claim {
						names = append(names, list[i].Name)
					}
				}
			}
		}
	}
	return names
}

// entryOf returns the entry of the pod's spec.resourceClaims with this name; of two, the last; nil
// if there is none.
func entryOf(p *v1.Pod, name string) (entry *v1.PodResourceClaim) {
	for i := range p.Spec.ResourceClaims {
		if p.Spec.ResourceClaims[i].Name == name {
			entry = &p.Spec.ResourceClaims[i]
		}
	}
	return entry
}

// checkNodeResources checks whether the node has enough CPU, memory and so on left for the pod and
// for what the devices of its claims consume. open are the claims that get devices there, got what
// they get. If not, it returns the verdict refused or lacking and a rejection as the error; another
// error comes with the verdict broken. It checks nothing if no device consumes node resources.
func (pl *plugin) checkNodeResources(in *framework.Input, n *object.Node, open []*resourcev1.ResourceClaim, got []resourcev1.AllocationResult) (found, error) {
	list, some, err := pl.takenOn(in.Table, in.Pod, n, in.State.(*state), open, got)
	switch {
	case err != nil:
		return found{verdict: broken}, err
	case !some:
		return found{}, nil
	}
	total := in.Pod.Demand.Requests
	if in.Pod.Claiming != nil {
		if reason := berthresource.Uncovered(in.Pod.Claiming, list); reason != "" {
			why := rejection{reason}
			return found{verdict: why.verdict(refused)}, why
		}
		total = berthresource.RequestsWithDevices(in.Pod.Claiming, list)
	}
	row, _ := in.Table.Find(n.Name)
	return fits(in.Table, row, &total)
}

// takenOn returns what the pod's devices consume of the node's resources: those of claims that are
// allocated, and those of the claims in open, which get the allocations in got. The bool is true if
// a device consumes any.
func (pl *plugin) takenOn(t *table.Table, p *object.Pod, n *object.Node, s *state, open []*resourcev1.ResourceClaim, got []resourcev1.AllocationResult) ([]v1.NodeAllocatableResourceClaimStatus, bool, error) {
	return takesOf(p, n, s.shared.WithNode(t, n.Name, pl.features.DRAConsumableCapacity).Slices, func(yield func(*resourcev1.ResourceClaim, *resourcev1.AllocationResult) bool) {
		for _, c := range s.claims {
			if a := c.Allocation(); a != nil && !yield(c.API, a) {
				return
			}
		}
		for i := range open {
			if !yield(open[i], &got[i]) {
				return
			}
		}
	})
}

// fits checks whether the row has enough CPU, memory, ephemeral storage and huge pages left for
// total. If not, it returns a rejection as the error, and the verdict refused if even an empty node
// has too little, else lacking.
func fits(t *table.Table, r table.Row, total *berthresource.Vector) (found, error) {
	var why rejection
	kind := lacking
	check := func(name v1.ResourceName, needed int64) {
		if needed <= 0 {
			return
		}
		sum := sums.New(t, name, needed, false)
		switch sum.On(t, r) {
		case sums.Fits:
			return
		case sums.Never:
			kind = refused
		}
		why = append(why, "Insufficient "+string(name))
	}
	check(v1.ResourceCPU, total.MilliCPU)
	check(v1.ResourceMemory, total.Memory)
	check(v1.ResourceEphemeralStorage, total.EphemeralStorage)
	for _, s := range total.Scalars {
		if strings.HasPrefix(string(s.Name), v1.ResourceHugePagesPrefix) {
			check(s.Name, s.Value)
		}
	}
	if why == nil {
		return found{}, nil
	}
	return found{verdict: why.verdict(kind)}, why
}

// sharedDeviceRejection returns a rejection if an allocated claim of the pod that the node can use
// is reserved for other pods only, and a device of it stands for resources of its node: only one
// pod can consume these. A device that only has an overhead is no reason, as each pod consumes that
// for itself. It returns nil if there is no such claim.
func (pl *plugin) sharedDeviceRejection(in *framework.Input, n *object.Node) rejection {
	s := in.State.(*state)
	for _, c := range s.claims {
		if c.Allocation() == nil || len(c.API.Status.ReservedFor) == 0 || c.ReservedFor(in.Pod.UID) || !usableOn(n, c) || pl.unusable(in.Table, c) {
			continue
		}
		devices, _ := devicesOf(c.Allocation(), n, s.shared.WithNode(in.Table, n.Name, pl.features.DRAConsumableCapacity).Slices)
		for _, d := range devices {
			if d != nil && standsForResources(d) {
				return rejection{"node allocatable resource claim " + c.Name + " has a mapped device and cannot be shared across pods"}
			}
		}
	}
	return nil
}

// standsForResources reports whether the device stands for resources of its node.
func standsForResources(d *resourcev1.Device) bool {
	for _, r := range d.NodeAllocatableResources { // any order: one is enough
		if r.Mapping != nil {
			return true
		}
	}
	return false
}

// assumeTaken updates the assumed pod in the table to consume the node resources in list. This
// replaces what an earlier attempt left in the pod's status; an empty list removes that.
func assumeTaken(t *table.Table, p *object.Pod, node string, list []v1.NodeAllocatableResourceClaimStatus) {
	if p.Claiming != nil && len(list)+len(p.FromDevices) > 0 {
		t.AddPod(p.With(list), node)
	}
}

// writeTaken returns the write that sets nodeAllocatableResourceClaimStatuses in the pod's status:
// to what its devices consume by the table, or, if taken is false, to an empty list, as the API
// server keeps the list if there is none in the patch. It returns nil if the pod's devices consume
// nothing, or the pod is not in the table.
func writeTaken(t *table.Table, p *object.Pod, taken bool) []framework.Write {
	placed := t.Pod(p.UID)
	if placed == nil || len(placed.Pod.FromDevices) == 0 {
		return nil
	}
	list := any([]any{map[string]any{"$patch": "replace"}})
	if taken {
		list = placed.Pod.FromDevices
	}
	return []framework.Write{{
		Object: object.Meta{Kind: object.Pods, Namespace: p.Namespace, Name: p.Name, UID: p.UID}, Strategic: true, Subresource: "status",
		Patch: map[string]any{"status": map[string]any{"nodeAllocatableResourceClaimStatuses": list}},
	}}
}

// codeOf returns the status code for a verdict of the kind: Unschedulable if preemption
// may help (lacking), else UnschedulableAndUnresolvable.
func codeOf(kind framework.Verdict) decision.Code {
	if kind == lacking {
		return decision.Unschedulable
	}
	return decision.UnschedulableAndUnresolvable
}
