package compat

import (
	"context"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// newRecorder returns a recorder of Events by the profile's plugins. Start starts to send
// them. Without an API server it drops them.
func newRecorder(h *Hosts, profileName string) events.EventRecorderLogger {
	if h.options.Client == nil || h.fed != nil {
		return &events.FakeRecorder{} // it drops them
	}
	if h.broadcaster == nil {
		h.broadcaster = events.NewBroadcaster(&events.EventSinkImpl{Interface: h.options.Client.EventsV1()})
	}
	return h.broadcaster.NewRecorder(scheme.Scheme, profileName).WithLogger(h.options.Logger)
}

// SharedCSIManager returns a lister of CSINodes. It reads their informer, not the snapshot of an
// attempt. The informer runs if a plugin calls SharedCSIManager in its factory.
func (h *handle) SharedCSIManager() fwk.CSIManager {
	if h.factory != nil {
		h.factory.Storage().V1().CSINodes().Informer()
	}
	return csiManager{h.Hosts}
}

// csiManager is a fwk.CSIManager and its lister. It reads the informers.
type csiManager struct{ *Hosts }

// CSINodes returns m.
func (m csiManager) CSINodes() fwk.CSINodeLister { return m }

// List returns all CSINodes.
func (m csiManager) List() ([]*storagev1.CSINode, error) {
	return m.factory.Storage().V1().CSINodes().Lister().List(labels.Everything())
}

// Get returns the CSINode of the node.
func (m csiManager) Get(name string) (*storagev1.CSINode, error) {
	return m.factory.Storage().V1().CSINodes().Lister().Get(name)
}

// SharedDRAManager returns the ResourceClaims, ResourceSlices and DeviceClasses as plugins see them,
// by their informers. A plugin must call it in its factory to see the taints of DeviceTaintRules.
// It must register for events of a kind, or list it once in its factory: else the informer of that
// kind does not run.
func (h *handle) SharedDRAManager() fwk.SharedDRAManager {
	h.followSlices()
	return draManager{h.Hosts}
}

// followSlices starts the tracker of DeviceTaintRules, once, if their feature gate is
// on and Start was not called yet.
func (h *Hosts) followSlices() {
	if h.factory != nil && h.options.DeviceTaintRules {
		h.slicesOnce.Do(h.startSlices)
	}
}

// startSlices starts the tracker that adds the taints of DeviceTaintRules to ResourceSlices. It
// sets slices, or slicesFailed if that fails.
func (h *Hosts) startSlices() {
	resources := h.factory.Resource()
	h.slices, h.slicesFailed = tracker.StartTracker(klog.NewContext(context.Background(), h.options.Logger), tracker.Options{
		EnableDeviceTaintRules: true, EnableConsumableCapacity: h.options.ConsumableCapacity, KubeClient: h.options.Client,
		SliceInformer: resources.V1().ResourceSlices(), TaintInformer: resources.V1().DeviceTaintRules(),
	})
}

// draManager is a fwk.SharedDRAManager.
type draManager struct{ *Hosts }

// ResourceClaims returns the claims, with allocations that are assumed.
func (m draManager) ResourceClaims() fwk.ResourceClaimTracker { return claims(m) }

// ResourceSlices returns the lister of slices.
func (m draManager) ResourceSlices() fwk.ResourceSliceLister { return slicesOf(m) }

// DeviceClasses returns the lister of classes.
func (m draManager) DeviceClasses() fwk.DeviceClassLister { return classes(m) }

// DeviceClassResolver returns what finds the class of an extended resource.
func (m draManager) DeviceClassResolver() fwk.DeviceClassResolver { return classes(m) }

// slicesOf is the fwk.ResourceSliceLister that plugins get: the informer's ResourceSlices.
type slicesOf struct{ *Hosts }

// ListWithDeviceTaintRules returns all slices. The taints of DeviceTaintRules are added if the
// feature gate is on and a plugin has called SharedDRAManager in its factory.
func (s slicesOf) ListWithDeviceTaintRules() ([]*resourcev1.ResourceSlice, error) {
	switch {
	case s.slicesFailed != nil:
		return nil, s.slicesFailed
	case s.slices != nil:
		return s.slices.ListPatchedResourceSlices()
	}
	return s.factory.Resource().V1().ResourceSlices().Lister().List(labels.Everything())
}

// classes is a fwk.DeviceClassLister and a fwk.DeviceClassResolver. It reads the informer.
type classes struct{ *Hosts }

// List returns all classes.
func (c classes) List() ([]*resourcev1.DeviceClass, error) {
	return c.factory.Resource().V1().DeviceClasses().Lister().List(labels.Everything())
}

// Get returns the class of that name.
func (c classes) Get(name string) (*resourcev1.DeviceClass, error) {
	return c.factory.Resource().V1().DeviceClasses().Lister().Get(name)
}

// GetDeviceClass returns the class for an extended resource, named by it or implied by its name;
// nil if there is none. Of several it is the youngest, then the first by name, as in
// kube-scheduler.
func (c classes) GetDeviceClass(name v1.ResourceName) *resourcev1.DeviceClass {
	list, _ := c.List()
	var found *resourcev1.DeviceClass
	for _, class := range list {
		named := class.Spec.ExtendedResourceName != nil && *class.Spec.ExtendedResourceName == string(name)
		implied := string(name) == resourcev1.ResourceDeviceClassPrefix+class.Name
		if !named && !implied {
			continue
		}
		if found == nil || found.CreationTimestamp.Before(&class.CreationTimestamp) ||
			found.CreationTimestamp.Equal(&class.CreationTimestamp) && class.Name < found.Name {
			found = class
		}
	}
	return found
}
