package generate

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// devices gives nodes devices in pools of every shape (whole, outdated,
// incomplete, with a name twice, shared, partitioned, tainted), and pods claims
// in every state that ask for them in every way.
var devices = feature{world: deviceWorld, alter: alterDevices,
	node: offerExtended, renode: reofferExtended, pod: requestExtended, config: scoreExtended}

const gpuDriver, nicDriver = "gpu.example.com", "nic.example.com"

// selections are the device classes by name; "" is no class at all.
var selections = []string{"gpu", "nic", "big", "odd", "any"}

func deviceWorld(b *builder, w *World) {
	for _, name := range selections {
		if b.chance(95) {
			w.Objects = append(w.Objects, deviceClass(b, name))
		}
	}
	for _, n := range w.Nodes {
		for _, s := range deviceSlices(b, n.Name) {
			w.Objects = append(w.Objects, s)
		}
	}
	for i := range b.pick(0, 0, 1, 2) {
		w.Objects = append(w.Objects, sharedSlice(b, fmt.Sprintf("net-%d", i)))
	}
	var common []*resourcev1.ResourceClaim
	for i := range b.pick(0, 1, 3) {
		c := resourceClaim(b, "default", fmt.Sprintf("common-%d", i), someAsk(b))
		common = append(common, c)
		w.Objects = append(w.Objects, c)
	}
	asks := []resourcev1.ResourceClaimSpec{someAsk(b), someAsk(b), someAsk(b)}
	for _, p := range append(append([]*v1.Pod(nil), w.Bound...), w.Pending...) {
		if requestsExtended(p) && b.chance(30) {
			leaveClaim(b, w, p)
		}
		if b.chance(25) || requestsExtended(p) && b.chance(60) {
			continue
		}
		for i := range b.pick(1, 1, 1, 2) {
			claimDevices(b, w, p, i, common, asks)
		}
	}
}

// claimDevices gives the pod a claim, and the world what is behind it.
func claimDevices(b *builder, w *World, p *v1.Pod, i int, common []*resourcev1.ResourceClaim, asks []resourcev1.ResourceClaimSpec) {
	r := v1.PodResourceClaim{Name: fmt.Sprintf("r%d", i)}
	name := fmt.Sprintf("%s-r%d", p.Name, i)
	ask := asks[b.IntN(len(asks))]
	switch n := b.IntN(30); {
	case n < 5 && i == 0 && len(common) > 0 && p.Namespace == "default":
		r.ResourceClaimName = &common[b.IntN(len(common))].Name
	case n < 15:
		r.ResourceClaimName = &name
		if b.chance(96) {
			w.Objects = append(w.Objects, held(b, w, p, resourceClaim(b, p.Namespace, name, ask)))
		}
	case n < 16:
		template := "template" // the claim was not made yet
		r.ResourceClaimTemplateName = &template
	case n < 17:
		template := "template" // none is needed
		r.ResourceClaimTemplateName = &template
		p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, v1.PodResourceClaimStatus{Name: r.Name})
	default:
		template := "template"
		r.ResourceClaimTemplateName = &template
		p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, v1.PodResourceClaimStatus{Name: r.Name, ResourceClaimName: &name})
		c := resourceClaim(b, p.Namespace, name, ask)
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: new(true)}}
		if b.chance(4) {
			c.OwnerReferences[0].UID = "another"
		}
		w.Objects = append(w.Objects, held(b, w, p, c))
	}
	p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, r)
}

// held gives the claim of a running pod, and of some others, a device.
func held(b *builder, w *World, p *v1.Pod, c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	s := someObject[*resourcev1.ResourceSlice](b, w)
	if s == nil || len(s.Spec.Devices) == 0 || !b.chance(8) && (p.Spec.NodeName == "" || !b.chance(70)) {
		return c
	}
	a := &resourcev1.AllocationResult{}
	d := s.Spec.Devices[b.IntN(len(s.Spec.Devices))]
	if d.AllowMultipleAllocations != nil || taken(w, s, d.Name) {
		return c
	}
	a.Devices.Results = []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: s.Spec.Driver, Pool: s.Spec.Pool.Name, Device: d.Name}}
	if s.Spec.NodeName != nil {
		a.NodeSelector = nodeNamed(*s.Spec.NodeName)
	}
	c.Status.Allocation = a
	if b.chance(70) {
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: p.Name, UID: p.UID}}
	}
	return c
}

// taken tells whether a claim of the world has the device.
func taken(w *World, s *resourcev1.ResourceSlice, device string) bool {
	for _, o := range w.Objects {
		c, ok := o.(*resourcev1.ResourceClaim)
		if !ok || c.Status.Allocation == nil {
			continue
		}
		if r := c.Status.Allocation.Devices.Results[0]; r.Driver == s.Spec.Driver && r.Pool == s.Spec.Pool.Name && r.Device == device {
			return true
		}
	}
	return false
}

func nodeNamed(name string) *v1.NodeSelector {
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{{
		Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{name}}}}}}
}

func deviceClass(b *builder, name string) *resourcev1.DeviceClass {
	c := &resourcev1.DeviceClass{TypeMeta: kindOf("resource.k8s.io/v1", "DeviceClass"), ObjectMeta: b.meta("", name)}
	expression := map[string]string{
		"gpu": `device.driver == "gpu.example.com"`,
		"nic": `device.driver == "nic.example.com"`,
		"big": `device.driver == "gpu.example.com" && device.capacity["gpu.example.com"].memory.compareTo(quantity("20Gi")) >= 0`,
		"odd": `"model" in device.attributes["gpu.example.com"] && device.attributes["gpu.example.com"].model == "odd"`,
	}[name]
	if expression != "" {
		c.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
	}
	if names := classed[name]; names != nil && b.chance(60) {
		c.Spec.ExtendedResourceName = new(b.word(names...))
	}
	if b.chance(50) {
		c.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(b.IntN(4)) * time.Minute))
	}
	if b.chance(30) {
		c.Spec.Config = []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{
			Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: gpuDriver}}}}
	}
	return c
}

// deviceSlices are those of a node: none, one pool, two pools.
func deviceSlices(b *builder, node string) []*resourcev1.ResourceSlice {
	var list []*resourcev1.ResourceSlice
	for _, driver := range []string{gpuDriver, nicDriver} {
		if b.chance(35) {
			continue
		}
		slices := b.pick(1, 1, 1, 2)
		pool := resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: int64(slices)}
		if b.chance(5) && !b.sound {
			pool.ResourceSliceCount++ // one is missing
		}
		for i := range slices {
			s := &resourcev1.ResourceSlice{TypeMeta: kindOf("resource.k8s.io/v1", "ResourceSlice"),
				ObjectMeta: b.meta("", fmt.Sprintf("%s-%s-%d", node, driver[:3], i)),
				Spec:       resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &node, Pool: pool}}
			for j := range b.pick(1, 2, 2, 4) {
				s.Spec.Devices = append(s.Spec.Devices, device(b, fmt.Sprintf("d%d-%d", i, j)))
			}
			spoil(b, s)
			list = append(list, s)
		}
	}
	if len(list) > 0 && b.chance(15) {
		partition(b, list[0])
		list = append(list, counters(b, list[0]))
		for _, s := range list {
			if s.Spec.Driver == list[0].Spec.Driver { // the counters are a slice more
				s.Spec.Pool.ResourceSliceCount++
			}
		}
	}
	return list
}

// spoil makes something wrong with some slices.
func spoil(b *builder, s *resourcev1.ResourceSlice) {
	if b.sound {
		return
	}
	switch b.IntN(25) {
	case 1:
		s.Spec.Devices = append(s.Spec.Devices, s.Spec.Devices[0]) // a name twice
	case 2:
		s.Spec.Pool.Generation = 2
	case 3:
		s.Spec.Devices = nil
	}
}

func device(b *builder, name string) resourcev1.Device {
	d := resourcev1.Device{Name: name,
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"model": {StringValue: new(b.word("odd", "even"))},
			"index": {IntValue: new(int64(b.IntN(3)))},
			"fast":  {BoolValue: new(b.chance(50))},
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
			"memory": {Value: resource.MustParse(b.word("10Gi", "20Gi", "40Gi"))},
		}}
	if b.chance(10) {
		d.Taints = []resourcev1.DeviceTaint{{Key: "broken", Value: "yes", Effect: resourcev1.DeviceTaintEffect(b.word("NoSchedule", "NoExecute", "None"))}}
	}
	if b.chance(12) {
		d.AllowMultipleAllocations = new(true)
	}
	return d
}

// partition has the slice's devices draw on common counters.
func partition(b *builder, s *resourcev1.ResourceSlice) {
	for i := range s.Spec.Devices {
		s.Spec.Devices[i].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "set",
			Counters: map[string]resourcev1.Counter{"slots": {Value: *resource.NewQuantity(int64(b.pick(1, 1, 2)), resource.DecimalSI)}}}}
	}
}

func counters(b *builder, of *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	name := "set"
	if b.chance(10) && !b.sound {
		name = "another"
	}
	s := of.DeepCopy()
	s.ObjectMeta = b.meta("", of.Name+"-counters")
	s.Spec.Devices = nil
	s.Spec.SharedCounters = []resourcev1.CounterSet{{Name: name, Counters: map[string]resourcev1.Counter{
		"slots": {Value: *resource.NewQuantity(int64(b.pick(1, 2, 3)), resource.DecimalSI)}}}}
	return s
}

// sharedSlice is one that several nodes can reach.
func sharedSlice(b *builder, name string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{TypeMeta: kindOf("resource.k8s.io/v1", "ResourceSlice"), ObjectMeta: b.meta("", name),
		Spec: resourcev1.ResourceSliceSpec{Driver: b.word(gpuDriver, nicDriver), Pool: resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1}}}
	zone := &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{
		Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{b.word("a", "b")}}}}}}
	for j := range b.pick(1, 2, 4) {
		s.Spec.Devices = append(s.Spec.Devices, device(b, fmt.Sprintf("d%d", j)))
	}
	switch b.IntN(3) {
	case 0:
		s.Spec.AllNodes = new(true)
	case 1:
		s.Spec.NodeSelector = zone
	default:
		s.Spec.PerDeviceNodeSelection = new(true)
		for i := range s.Spec.Devices {
			if b.chance(50) {
				s.Spec.Devices[i].NodeSelector = zone
			} else {
				s.Spec.Devices[i].AllNodes = new(true)
			}
		}
	}
	return s
}

func resourceClaim(b *builder, namespace, name string, ask resourcev1.ResourceClaimSpec) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{TypeMeta: kindOf("resource.k8s.io/v1", "ResourceClaim"), ObjectMeta: b.meta(namespace, name)}
	c.Spec = *ask.DeepCopy()
	if b.chance(2) {
		now := metav1.NewTime(epoch)
		c.DeletionTimestamp, c.Finalizers = &now, []string{resourcev1.Finalizer}
	}
	return c
}

// someAsk is what a claim asks for: one request or two, one of several
// alternatives, all that there is, access for administrators, a share.
func someAsk(b *builder) resourcev1.ResourceClaimSpec {
	var spec resourcev1.ResourceClaimSpec
	for i := range b.pick(1, 1, 1, 2) {
		r := resourcev1.DeviceRequest{Name: fmt.Sprintf("r%d", i)}
		if b.chance(30) {
			for j := range b.pick(2, 3) {
				x := exactly(b)
				r.FirstAvailable = append(r.FirstAvailable, resourcev1.DeviceSubRequest{Name: fmt.Sprintf("s%d", j), DeviceClassName: x.DeviceClassName,
					Selectors: x.Selectors, AllocationMode: x.AllocationMode, Count: x.Count, Tolerations: x.Tolerations, Capacity: x.Capacity})
			}
		} else if r.Exactly = exactly(b); b.chance(6) {
			r.Exactly.AdminAccess = new(true)
		}
		spec.Devices.Requests = append(spec.Devices.Requests, r)
	}
	if b.chance(20) {
		attribute := resourcev1.FullyQualifiedName(gpuDriver + "/" + b.word("model", "index", "none"))
		c := resourcev1.DeviceConstraint{MatchAttribute: &attribute}
		if b.chance(30) {
			c = resourcev1.DeviceConstraint{DistinctAttribute: &attribute}
		}
		spec.Devices.Constraints = []resourcev1.DeviceConstraint{c}
	}
	return spec
}

func exactly(b *builder) *resourcev1.ExactDeviceRequest {
	x := &resourcev1.ExactDeviceRequest{DeviceClassName: b.word("gpu", "gpu", "nic", "big", "odd", "any"),
		AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(b.pick(1, 1, 1, 2, 3))}
	switch b.IntN(30) {
	case 0:
		x.DeviceClassName = "missing"
	case 1:
		x.Count = 1 << 40
	case 2, 3, 4:
		x.AllocationMode, x.Count = resourcev1.DeviceAllocationModeAll, 0
	case 5:
		x.Selectors = selector(`device.nonsense ==`) // does not compile
	case 6:
		x.DeviceClassName, x.Selectors = "gpu", selector(`device.attributes["gpu.example.com"].missing == 1`) // fails on any device
	case 7, 8, 9, 10:
		x.Selectors = selector(fmt.Sprintf(`"index" in device.attributes[device.driver] && device.attributes[device.driver].index <= %d`, b.IntN(3)))
	case 11, 12:
		x.Tolerations = []resourcev1.DeviceToleration{{Key: "broken", Operator: resourcev1.DeviceTolerationOpExists}}
	case 13, 14:
		x.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(b.word("5Gi", "15Gi", "30Gi"))}}
	}
	return x
}

func selector(expression string) []resourcev1.DeviceSelector {
	return []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
}

// alterDevices changes, adds or takes away a slice, a class or a claim.
func alterDevices(b *builder, w *World) Change {
	switch b.IntN(8) {
	case 0:
		if s := someObject[*resourcev1.ResourceSlice](b, w); s != nil {
			return Change{Verb: Delete, Other: s}
		}
	case 1, 2:
		if len(b.nodes) > 0 {
			if list := deviceSlices(b, b.nodes[b.IntN(len(b.nodes))].Name); len(list) > 0 {
				s := list[b.IntN(len(list))] // the next generation of its pool, which it may be all of
				s.Spec.Pool.Generation, s.Spec.Pool.ResourceSliceCount = int64(b.clock), int64(b.pick(1, 1, 1, 2))
				b.haveTake(s)
				return Change{Verb: Add, Other: s}
			}
		}
	case 3:
		return Change{Verb: Add, Other: deviceClass(b, b.word(selections...))}
	case 4:
		if c := someObject[*resourcev1.DeviceClass](b, w); c != nil && b.chance(30) {
			return Change{Verb: Delete, Other: c}
		}
	case 5, 6:
		if c := someObject[*resourcev1.ResourceClaim](b, w); c != nil {
			c = c.DeepCopy()
			c.Status = resourcev1.ResourceClaimStatus{}
			return Change{Verb: Update, Other: c}
		}
	default:
		if c := someObject[*resourcev1.ResourceClaim](b, w); c != nil && b.chance(40) {
			return Change{Verb: Delete, Other: c}
		}
	}
	return Change{}
}
