package compat

import (
	"context"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// newRecorder records events of a profile's plugins. It starts to send them when the
// hosts start.
func newRecorder(h *Hosts, profileName string) events.EventRecorderLogger {
	if h.options.Client == nil || h.fed != nil {
		return &events.FakeRecorder{} // it drops them
	}
	if h.broadcaster == nil {
		h.broadcaster = events.NewBroadcaster(&events.EventSinkImpl{Interface: h.options.Client.EventsV1()})
	}
	return h.broadcaster.NewRecorder(scheme.Scheme, profileName).WithLogger(h.options.Logger)
}

// SharedCSIManager lists CSINodes.
func (h *handle) SharedCSIManager() fwk.CSIManager { return csiManager{h.Hosts} }

type csiManager struct{ *Hosts }

func (m csiManager) CSINodes() fwk.CSINodeLister { return m }

// List lists all CSINodes.
func (m csiManager) List() ([]*storagev1.CSINode, error) {
	return m.factory.Storage().V1().CSINodes().Lister().List(labels.Everything())
}

// Get finds the CSINode of a node.
func (m csiManager) Get(name string) (*storagev1.CSINode, error) {
	return m.factory.Storage().V1().CSINodes().Lister().Get(name)
}

// SharedDRAManager shows claims and devices. A plugin asks for it when it is made.
func (h *handle) SharedDRAManager() fwk.SharedDRAManager {
	h.followSlices()
	return draManager{h.Hosts}
}

// followSlices starts to follow device taint rules, where their feature gate is on and
// the informers are not started yet.
func (h *Hosts) followSlices() {
	if h.factory != nil && h.options.DeviceTaintRules {
		h.slicesOnce.Do(h.startSlices)
	}
}

func (h *Hosts) startSlices() {
	resources := h.factory.Resource()
	h.slices, h.slicesFailed = tracker.StartTracker(klog.NewContext(context.Background(), h.options.Logger), tracker.Options{
		EnableDeviceTaintRules: true, EnableConsumableCapacity: h.options.ConsumableCapacity, KubeClient: h.options.Client,
		SliceInformer: resources.V1().ResourceSlices(), TaintInformer: resources.V1beta2().DeviceTaintRules(), ClassInformer: resources.V1().DeviceClasses(),
	})
}

type draManager struct{ *Hosts }

func (m draManager) ResourceClaims() fwk.ResourceClaimTracker     { return claims(m) }
func (m draManager) ResourceSlices() fwk.ResourceSliceLister      { return slicesOf(m) }
func (m draManager) DeviceClasses() fwk.DeviceClassLister         { return classes(m) }
func (m draManager) DeviceClassResolver() fwk.DeviceClassResolver { return classes(m) }
func (m draManager) PodGroups() fwk.PodGroupLister                { return noPodGroups{} }

type slicesOf struct{ *Hosts }

// ListWithDeviceTaintRules lists the slices, with the taints that rules give their
// devices.
func (s slicesOf) ListWithDeviceTaintRules() ([]*resourcev1.ResourceSlice, error) {
	switch {
	case s.slicesFailed != nil:
		return nil, s.slicesFailed
	case s.slices != nil:
		return s.slices.ListPatchedResourceSlices()
	}
	return s.factory.Resource().V1().ResourceSlices().Lister().List(labels.Everything())
}

type classes struct{ *Hosts }

func (c classes) List() ([]*resourcev1.DeviceClass, error) {
	return c.factory.Resource().V1().DeviceClasses().Lister().List(labels.Everything())
}

func (c classes) Get(name string) (*resourcev1.DeviceClass, error) {
	return c.factory.Resource().V1().DeviceClasses().Lister().Get(name)
}

// GetDeviceClass returns the class that stands for an extended resource, nil for none. Of
// several the youngest counts, as in v1.36.
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

// noPodGroups is what plugins of claims see of pod groups without the gate
// DRAWorkloadResourceClaims, which Berth refuses.
type noPodGroups struct{}

func (noPodGroups) Get(string, string) (*schedulingv1alpha2.PodGroup, error) {
	return nil, apierrors.NewBadRequest("listing podgroups is disabled")
}
