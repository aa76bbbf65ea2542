package oracle

import (
	"cmp"
	"reflect"
	"slices"
	"sync"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// ExtendedClaim stands in Grants for the claim for extended resources, which has
// no name yet.
const ExtendedClaim = "<extended-resources>"

// Made is a claim for extended resources: what it asks for, what it gets and
// which containers use what of it.
type Made struct {
	Claim      *resourcev1.ResourceClaim
	Allocation *resourcev1.AllocationResult
	Uses       []v1.ContainerExtendedResourceRequest
}

// Text is the claim line by line.
func (m *Made) Text() []string {
	lines := []string{"asks for " + text(m.Claim.Spec), "annotated " + text(m.Claim.Annotations), "owned by " + text(m.Claim.OwnerReferences), "used " + text(m.Uses)}
	if m.Allocation == nil {
		return append(lines, "gets nothing")
	}
	return append(lines, Devices(m.Allocation)...)
}

// madeOn is the claim that kube-scheduler would make for the pod on the node, nil
// for none, and for one that asks for nothing. What Filter noted of it is
// private to the plugin.
func madeOn(state fwk.CycleState, node string) *Made {
	data, err := state.Read(names.DynamicResources)
	if err != nil {
		return nil
	}
	noted := reflect.ValueOf(data).Elem().FieldByName("nodeAllocations").MapIndex(reflect.ValueOf(node))
	if !noted.IsValid() {
		return nil
	}
	m := &Made{Claim: (*resourcev1.ResourceClaim)(noted.FieldByName("extendedResourceClaim").UnsafePointer())}
	if m.Claim == nil || len(m.Claim.Spec.Devices.Requests) == 0 {
		return nil
	}
	if uses := noted.FieldByName("containerResourceRequestMappings"); uses.Len() > 0 {
		m.Uses = unsafe.Slice((*v1.ContainerExtendedResourceRequest)(uses.UnsafePointer()), uses.Len())
	}
	if results := noted.FieldByName("allocationResults"); results.Len() > 0 { // the claim is the last
		m.Allocation = &unsafe.Slice((*resourcev1.AllocationResult)(results.UnsafePointer()), results.Len())[results.Len()-1]
	}
	return m
}

// recountDevices has kube-scheduler know again which device class stands for
// which extended resource, and how many devices of a class a node has. kube-scheduler
// keeps both as it found them first, so that what it would answer after changes
// depends on the past, and comparing it would say nothing. No pod may wait.
func (s *Scheduler) recountDevices() {
	var classes []*resourcev1.DeviceClass
	for _, o := range s.factory.Resource().V1().DeviceClasses().Informer().GetIndexer().List() {
		classes = append(classes, o.(*resourcev1.DeviceClass))
	}
	slices.SortFunc(classes, func(a, b *resourcev1.DeviceClass) int { // who stands for it comes last
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(b.Name, a.Name))
	})
	for _, f := range s.profiles {
		if cache, ok := f.SharedDRAManager().DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache); ok && cache != nil {
			known := reflect.ValueOf(cache).Elem().FieldByName("resourceName2class")
			clear(*(*map[v1.ResourceName]*resourcev1.DeviceClass)(unsafe.Pointer(known.UnsafeAddr())))
			for _, c := range classes {
				cache.OnAdd(c, true)
			}
		}
		forgetMatches(f)
	}
}

// forgetMatches empties what the profile's plugins for resources remember of
// devices and nodes.
func forgetMatches(f framework.Framework) {
	scorers := reflect.ValueOf(f).Elem().FieldByName("scorePlugins")
	for _, plugin := range *(*[]fwk.ScorePlugin)(unsafe.Pointer(scorers.UnsafeAddr())) {
		if plugin.Name() != names.NodeResourcesFit && plugin.Name() != names.NodeResourcesBalancedAllocation {
			continue
		}
		// The framework measures the plugin with another around it.
		caches := reflect.ValueOf(plugin).Elem().FieldByName("ScorePlugin").Elem().Elem().FieldByName("DRACaches")
		for _, name := range []string{"deviceMatchCache", "nodeMatchCache"} {
			(*sync.Map)(unsafe.Pointer(caches.FieldByName(name).UnsafeAddr())).Clear()
		}
	}
}
