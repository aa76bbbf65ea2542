package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/sim/apiserver"
)

const (
	driver         = "sim.example.com" // of devices and volumes
	deviceClass    = "sim"
	resourceClaims = "resourceclaims.resource.k8s.io"
	resourceSlices = "resourceslices.resource.k8s.io"
)

// offerDevices has a node offer that many devices from now on.
func (p *play) offerDevices(words []string) error {
	if len(words) != 2 {
		return errors.New("want a node and a number")
	}
	n, err := strconv.Atoi(words[1])
	if err != nil || n < 0 || n > 99 {
		return errors.New("want a node and a number up to 99")
	}
	devices := []resourcev1.Device{}
	for i := range n {
		devices = append(devices, resourcev1.Device{Name: fmt.Sprint("device-", i)})
	}
	if p.server.Get(resourceSlices, "", words[0]) != nil {
		return p.server.Update(resourceSlices, "", words[0], func(o apiserver.Object) {
			spec := &o.(*resourcev1.ResourceSlice).Spec
			spec.Devices, spec.Pool.Generation = devices, spec.Pool.Generation+1
		})
	}
	return p.server.Create(&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: words[0]}, Spec: resourcev1.ResourceSliceSpec{
		Driver: driver, NodeName: &words[0], Devices: devices, Pool: resourcev1.ResourcePool{Name: words[0], Generation: 1, ResourceSliceCount: 1}}})
}

// claimDevice makes a claim of one device.
func (p *play) claimDevice(words []string) error {
	if len(words) != 1 {
		return errors.New("want a name")
	}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: deviceClass}}
	if err := p.server.Create(class); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return p.server.Create(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceDefault, Name: words[0]},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "one",
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: deviceClass, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}}}})
}

// releaseDevices is the controller of claims: what is reserved for a pod that has
// gone is given back a while later.
func (p *play) releaseDevices(c *apiserver.Change) {
	drawn := mix(p.faults.seed, "devices", c.Resource, c.Object.GetName(), c.Revision)
	later := func(claim string) {
		time.AfterFunc(20*time.Millisecond+time.Duration(drawn%2_000_000_000), func() { p.releaseClaim(claim) })
	}
	switch o := c.Object.(type) {
	case *v1.Pod:
		if c.Type == "DELETED" {
			for _, claim := range deviceClaimsOf(o) {
				later(claim)
			}
		}
	case *resourcev1.ResourceClaim:
		if c.Type != "DELETED" && len(o.Status.ReservedFor) > 0 {
			later(o.Name)
		}
	}
}

func (p *play) releaseClaim(name string) {
	claim, _ := p.server.Get(resourceClaims, v1.NamespaceDefault, name).(*resourcev1.ResourceClaim)
	if claim == nil || len(claim.Status.ReservedFor) == 0 {
		return
	}
	pods := map[types.UID]bool{}
	for _, o := range p.server.List("pods") {
		pods[o.GetUID()] = true
	}
	_ = p.server.Update(resourceClaims, v1.NamespaceDefault, name, func(o apiserver.Object) {
		status := &o.(*resourcev1.ResourceClaim).Status
		status.ReservedFor = slices.DeleteFunc(status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return !pods[r.UID] })
		if len(status.ReservedFor) == 0 {
			status.Allocation = nil
		}
	})
}

// resyncDevices has the controller of claims look at all of them again.
func (p *play) resyncDevices() {
	for _, o := range p.server.List(resourceClaims) {
		p.releaseDevices(&apiserver.Change{Resource: resourceClaims, Object: o, Revision: p.server.Revision()})
	}
}

// deviceClaimsOf names the claims of devices of a pod.
func deviceClaimsOf(p *v1.Pod) (names []string) {
	for i := range p.Spec.ResourceClaims {
		if name := p.Spec.ResourceClaims[i].ResourceClaimName; name != nil {
			names = append(names, *name)
		}
	}
	return names
}

// granted is the device that a claim has; Node "" is none.
type granted struct{ node, device string }

func grantedTo(claim *resourcev1.ResourceClaim) (g granted) {
	if a := claim.Status.Allocation; a != nil && len(a.Devices.Results) == 1 {
		g = granted{a.Devices.Results[0].Pool, a.Devices.Results[0].Device}
	}
	return g
}

func reserved(claim *resourcev1.ResourceClaim, pod types.UID) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod })
}

// deviceClaimChanged looks that a scheduler gives no device to two claims, and takes
// none from a pod that is bound. After a restored backup it may have been told of
// claims that are otherwise now, and while two lead, each may be behind the other.
func (c *check) deviceClaimChanged(claim *resourcev1.ResourceClaim, change *apiserver.Change) {
	before, _ := change.Before.(*resourcev1.ResourceClaim)
	c.deviceClaims[claim.Name] = claim
	c.play.logf("%s has claim %s have %s of node %s, reserved for %d pods", cmp.Or(change.By, "the controller"), claim.Name,
		cmp.Or(grantedTo(claim).device, "nothing"), cmp.Or(grantedTo(claim).node, "none"), len(claim.Status.ReservedFor))
	for _, r := range claim.Status.ReservedFor {
		if before == nil || !reserved(before, r.UID) {
			c.reservedBy[reservation{claim.Name, r.UID}] = change.By
		}
	}
	if change.By == "" || before == nil || c.setBack || time.Now().Before(c.unclear) {
		return
	}
	for _, r := range before.Status.ReservedFor {
		if pod := c.bound[r.UID]; pod != nil && (!reserved(claim, r.UID) || grantedTo(claim) != grantedTo(before)) {
			c.note("%s takes the device of claim %s from pod %s, which is bound", change.By, claim.Name, pod.key)
		}
	}
	g := grantedTo(claim)
	if g.node == "" || g == grantedTo(before) {
		return
	}
	for name, other := range c.deviceClaims { // any order: each breach is one
		if name != claim.Name && grantedTo(other) == g {
			c.note("%s gives %s of node %s to claim %s, and claim %s has it", change.By, g.device, g.node, claim.Name, name)
		}
	}
}

// boundWithDevices looks that a pod which is bound has its devices, on its node.
func (c *check) boundWithDevices(p *v1.Pod, by string) {
	for _, name := range deviceClaimsOf(p) {
		claim := c.deviceClaims[name]
		if !c.setBack && time.Now().After(c.unclear) && (claim == nil || grantedTo(claim).node != p.Spec.NodeName || !reserved(claim, p.UID)) {
			c.note("%s binds pod %s to node %s, whose claim %s has no device for it there", by, p.Name, p.Spec.NodeName, name)
		}
	}
}

// misses tells whether the pod waits for a claim of a device that is not there.
func (s *stored) misses(pod *v1.Pod) bool {
	return slices.ContainsFunc(deviceClaimsOf(pod), func(name string) bool { return s.deviceClaims[name] == nil })
}

// serves tells whether the node has a device for each of the pod's claims: the one
// that the claim has, or one that is free. What a claim has elsewhere can be taken
// from it while no other pod uses it.
func (s *stored) serves(pod *v1.Pod, n *v1.Node) bool {
	needs := 0
	for _, name := range deviceClaimsOf(pod) {
		claim := s.deviceClaims[name]
		if claim == nil {
			return false
		}
		switch g := grantedTo(claim); {
		case g.node == n.Name:
		case slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID != pod.UID }):
			return false
		default:
			needs++
		}
	}
	free := map[string]bool{}
	if slice := s.slices[n.Name]; slice != nil {
		for i := range slice.Spec.Devices {
			free[slice.Spec.Devices[i].Name] = true
		}
	}
	for _, claim := range s.deviceClaims { // any order: a set
		if g := grantedTo(claim); g.node == n.Name {
			delete(free, g.device)
		}
	}
	return needs <= len(free)
}

// elsewhere tells whether a claim of the pod has a device of another node. As with
// kube-scheduler that is taken from it where the node has room for the pod, and not
// where pods would have to go first: the try of a preemption fails by the claim.
func (s *stored) elsewhere(pod *v1.Pod, n *v1.Node) bool {
	return slices.ContainsFunc(deviceClaimsOf(pod), func(name string) bool {
		at := grantedTo(s.deviceClaims[name]).node
		return at != "" && at != n.Name
	})
}

// leftover names a claim that the leader has reserved for a pod which waits; "" if
// none is. What a leader had reserved that ended stays the pod's, as with
// kube-scheduler.
func (c *check) leftover(pods []*v1.Pod, leader string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range pods {
		for _, name := range deviceClaimsOf(p) {
			claim := c.deviceClaims[name]
			if p.Spec.NodeName == "" && claim != nil && reserved(claim, p.UID) && c.reservedBy[reservation{name, p.UID}] == leader {
				return name
			}
		}
	}
	return ""
}

// reservation is a claim of a device, and who may use it.
type reservation struct {
	claim string
	pod   types.UID
}
