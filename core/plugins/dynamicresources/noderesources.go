package dynamicresources

import (
	"fmt"
	"hash/fnv"
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

// Devices may stand for CPU, memory and other resources of their node, or need some
// (KEP-5517, the gate DRANodeAllocatableResources): a pod that gets them takes those
// resources as well. What it takes depends on the devices, so nodes share no answers,
// and each pod has a class of its own.

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

// takesOf returns what the devices allocated to each claim consume of the node's
// resources, sorted by claim. some is true if there is any such device. open and got
// correspond.
func takesOf(p *object.Pod, slices []*resourcev1.ResourceSlice, open []*resourcev1.ResourceClaim, got []resourcev1.AllocationResult) (list []v1.NodeAllocatableResourceClaimStatus, some bool, err error) {
	for i, claim := range open {
		taken := v1.ResourceList(nil)
		for j := range got[i].Devices.Results {
			r := &got[i].Devices.Results[j]
			d := deviceOf(slices, r)
			if d == nil || len(d.NodeAllocatableResourceMappings) == 0 {
				continue
			}
			some = true
			if taken, err = addTaken(taken, d, r); err != nil {
				return nil, true, fmt.Errorf("claim %s/%s, device %s: %w", claim.Namespace, claim.Name, r.Device, err)
			}
		}
		if taken != nil {
			list = append(list, v1.NodeAllocatableResourceClaimStatus{ResourceClaimName: claim.Name, Containers: containersUsing(p, claim.Name), Resources: taken})
		}
	}
	sortByClaim(list)
	return list, some, nil
}

// sortByClaim sorts the list by claim name.
func sortByClaim(list []v1.NodeAllocatableResourceClaimStatus) {
	slices.SortFunc(list, func(a, b v1.NodeAllocatableResourceClaimStatus) int {
		return strings.Compare(a.ResourceClaimName, b.ResourceClaimName)
	})
}

// deviceOf returns the device that a result names, in the slice of its pool with the
// highest generation; nil if no slice has it.
func deviceOf(list []*resourcev1.ResourceSlice, r *resourcev1.DeviceRequestAllocationResult) (device *resourcev1.Device) {
	newest := int64(0)
	for _, s := range list {
		if s.Spec.Driver != r.Driver || s.Spec.Pool.Name != r.Pool || device != nil && s.Spec.Pool.Generation <= newest {
			continue
		}
		if i := slices.IndexFunc(s.Spec.Devices, func(d resourcev1.Device) bool { return d.Name == r.Device }); i >= 0 {
			device, newest = &s.Spec.Devices[i], s.Spec.Pool.Generation
		}
	}
	return device
}

// addTaken adds what the device consumes of the node's resources to taken, and returns
// that; taken may be nil.
func addTaken(taken v1.ResourceList, d *resourcev1.Device, r *resourcev1.DeviceRequestAllocationResult) (v1.ResourceList, error) {
	for _, name := range slices.Sorted(maps.Keys(d.NodeAllocatableResourceMappings)) {
		m := d.NodeAllocatableResourceMappings[name]
		q := resource.Quantity{}
		switch key := m.CapacityKey; {
		case key == nil || *key == "":
			if m.AllocationMultiplier != nil {
				q = m.AllocationMultiplier.DeepCopy()
			}
		case r.ConsumedCapacity == nil:
			return nil, fmt.Errorf("ConsumedCapacity is nil, but Capacity key '%s' is set in NodeAllocatableResourceMappings for resource %s", *key, name)
		default:
			consumed, there := r.ConsumedCapacity[*key]
			if !there {
				continue
			}
			q = product(consumed, m.AllocationMultiplier)
		}
		if taken == nil {
			taken = v1.ResourceList{}
		}
		if sum, there := taken[name]; there {
			sum.Add(q)
			q = sum
		}
		taken[name] = q
	}
	return taken, nil
}

// product returns the quantity, times the factor if there is one.
func product(q resource.Quantity, factor *resource.Quantity) resource.Quantity {
	q = q.DeepCopy()
	if factor == nil {
		return q
	}
	times, by := q.AsDec(), factor.DeepCopy()
	times.Mul(times, by.AsDec())
	return *resource.NewDecimalQuantity(*times, q.Format)
}

// containersUsing returns the names of the pod's containers that use the claim. A
// container that uses it several times is listed as often.
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

// entryOf returns the entry of the pod's spec.resourceClaims with this name; of two,
// the last.
func entryOf(p *v1.Pod, name string) (entry *v1.PodResourceClaim) {
	for i := range p.Spec.ResourceClaims {
		if p.Spec.ResourceClaims[i].Name == name {
			entry = &p.Spec.ResourceClaims[i]
		}
	}
	return entry
}

// checkNodeResources checks whether the node has enough CPU, memory and so on left for
// the pod and for what the devices allocated to its open claims consume. It returns a
// rejection as the error if not.
func (pl *plugin) checkNodeResources(in *framework.Input, n *object.Node, open []*resourcev1.ResourceClaim, got []resourcev1.AllocationResult) (found, error) {
	list, some, err := pl.takenOn(in.Table, in.Pod, n, in.State.(*state), open, got)
	switch {
	case err != nil:
		return found{verdict: broken}, err
	case !some:
		return found{}, nil
	}
	for i := range list {
		if len(list[i].Containers) == 0 {
			why := rejection{"claim " + list[i].ResourceClaimName +
				": node-allocatable resource claim not referenced by any container within the pod"}
			return found{verdict: why.verdict(refused)}, why
		}
	}
	total := in.Pod.Demand.Requests
	if in.Pod.Claiming != nil {
		if name := berthresource.Uncovered(in.Pod.Claiming, list); name != "" {
			why := rejection{fmt.Sprintf(
				"pod level request for %s is insufficient to cover the aggregated container and node-allocatable DRA requests", name)}
			return found{verdict: why.verdict(refused)}, why
		}
		total = berthresource.RequestsWithDevices(in.Pod.Claiming, list)
	}
	row, _ := in.Table.Find(n.Name)
	return fits(in.Table, row, &total)
}

// takenOn calls takesOf with the slices that the node sees.
func (pl *plugin) takenOn(t *table.Table, p *object.Pod, n *object.Node, s *state, open []*resourcev1.ResourceClaim, got []resourcev1.AllocationResult) ([]v1.NodeAllocatableResourceClaimStatus, bool, error) {
	return takesOf(p, s.shared.WithNode(t, n.Name, pl.features.DRAConsumableCapacity).Slices, open, got)
}

// fits checks whether the row has enough resources left for total. It returns a
// rejection as the error if not.
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

// sharedWith returns a rejection if another pod on the node consumes node resources
// through a claim of this pod: several pods cannot consume the same. It returns nil if
// not.
func (pl *plugin) sharedWith(in *framework.Input, n *object.Node) rejection {
	row, _ := in.Table.Find(n.Name)
	for _, c := range in.State.(*state).claims {
		if c.Allocation() == nil || !c.Nodes.Matches(n.Subject()) {
			continue
		}
		consumers, own := 0, false
		for _, placed := range in.Table.Pods(row) {
			if placed.Pod.Namespace == c.Namespace && takesThrough(placed.Pod, c.Name) {
				consumers, own = consumers+1, own || placed.Pod.UID == in.Pod.UID
			}
		}
		switch {
		case consumers > 1:
			return rejection{"node allocatable resource claim " + c.Name + " shared by multiple pods"}
		case consumers == 1 && !own:
			return rejection{"node allocatable resource claim " + c.Name + " is already used by another pod"}
		}
	}
	return nil
}

// takesThrough reports whether the pod consumes node resources through devices of the
// claim.
func takesThrough(p *object.Pod, claim string) bool {
	return slices.ContainsFunc(p.FromDevices, func(s v1.NodeAllocatableResourceClaimStatus) bool { return s.ResourceClaimName == claim })
}

// assumeTaken updates the assumed pod in the table to consume the node resources in
// list. It replaces what an earlier attempt left in the pod's status.
func assumeTaken(t *table.Table, p *object.Pod, node string, list []v1.NodeAllocatableResourceClaimStatus) {
	if p.Claiming != nil && len(list)+len(p.FromDevices) > 0 {
		t.AddPod(p.With(list), node)
	}
}

// writeTaken returns the write that sets nodeAllocatableResourceClaimStatuses in the
// pod's status: to what its devices consume, or, if taken is false, to nothing. It
// returns nil if there is nothing to write.
func writeTaken(t *table.Table, p *object.Pod, taken bool) []framework.Write {
	placed := t.Pod(p.UID)
	if placed == nil || len(placed.Pod.FromDevices) == 0 {
		return nil
	}
	list := any(nil)
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
