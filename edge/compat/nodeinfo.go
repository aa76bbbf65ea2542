package compat

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	ndf "k8s.io/component-helpers/nodedeclaredfeatures"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// nodeInfo is a node and the pods on it. One of a snapshot is not changed; a plugin
// that changes it all the same changes its own view until the end of the cycle.
type nodeInfo struct {
	node         *v1.Node
	pods         []fwk.PodInfo
	affinity     []fwk.PodInfo
	antiAffinity []fwk.PodInfo
	requested    *amounts
	nonZero      *amounts
	allocatable  *amounts
	images       map[string]*fwk.ImageStateSummary
	features     ndf.FeatureSet
	generation   int64
	changed      func() // informs the snapshot of a change; nil for a plugin's own copy

	object        *object.Node // what a snapshot made it of
	imageRevision uint64       // of the table, by which the images are

	once  sync.Once // for what follows
	ports fwk.HostPortInfo
	pvcs  map[string]int
}

func (n *nodeInfo) Node() *v1.Node                                    { return n.node }
func (n *nodeInfo) GetPods() []fwk.PodInfo                            { return n.pods }
func (n *nodeInfo) GetPodsWithAffinity() []fwk.PodInfo                { return n.affinity }
func (n *nodeInfo) GetPodsWithRequiredAntiAffinity() []fwk.PodInfo    { return n.antiAffinity }
func (n *nodeInfo) GetRequested() fwk.Resource                        { return n.requested }
func (n *nodeInfo) GetNonZeroRequested() fwk.Resource                 { return n.nonZero }
func (n *nodeInfo) GetAllocatable() fwk.Resource                      { return n.allocatable }
func (n *nodeInfo) GetImageStates() map[string]*fwk.ImageStateSummary { return n.images }
func (n *nodeInfo) GetGeneration() int64                              { return n.generation }
func (n *nodeInfo) GetNodeDeclaredFeatures() ndf.FeatureSet           { return n.features }
func (n *nodeInfo) GetUsedPorts() fwk.HostPortInfo                    { n.count(); return n.ports }
func (n *nodeInfo) GetPVCRefCounts() map[string]int                   { n.count(); return n.pvcs }

// GetNodeAllocatableDRAClaimState is, by claim, which pods have devices of it that
// take of the node's resources.
func (n *nodeInfo) GetNodeAllocatableDRAClaimState() map[types.NamespacedName]*fwk.NodeAllocatableDRAClaimState {
	states := map[types.NamespacedName]*fwk.NodeAllocatableDRAClaimState{}
	for _, p := range n.pods {
		pod := p.GetPod()
		for i := range pod.Status.NodeAllocatableResourceClaimStatuses {
			claim := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Status.NodeAllocatableResourceClaimStatuses[i].ResourceClaimName}
			if states[claim] == nil {
				states[claim] = &fwk.NodeAllocatableDRAClaimState{ConsumerPods: sets.New[types.UID]()}
			}
			states[claim].ConsumerPods.Insert(pod.UID)
		}
	}
	return states
}

// String is for logs.
func (n *nodeInfo) String() string {
	names := make([]string, len(n.pods))
	for i, p := range n.pods {
		names[i] = p.GetPod().Name
	}
	return fmt.Sprintf("&NodeInfo{Pods:%v, RequestedResource:%#v, NonZeroRequest: %#v, UsedPort: %#v, AllocatableResource:%#v}",
		names, n.requested, n.nonZero, n.GetUsedPorts(), n.allocatable)
}

// count finds the ports and claims in use.
func (n *nodeInfo) count() {
	n.once.Do(func() {
		n.ports, n.pvcs = fwk.HostPortInfo{}, map[string]int{}
		for _, p := range n.pods {
			n.use(p.GetPod(), true)
		}
	})
}

// use adds the pod's ports and claims, or takes them away.
func (n *nodeInfo) use(p *v1.Pod, add bool) {
	for c := range runningContainers(p) {
		for i := range c.Ports {
			port := &c.Ports[i]
			if add {
				n.ports.Add(port.HostIP, string(port.Protocol), port.HostPort)
			} else {
				n.ports.Remove(port.HostIP, string(port.Protocol), port.HostPort)
			}
		}
	}
	for i := range p.Spec.Volumes {
		if claim := p.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			key := p.Namespace + "/" + claim.ClaimName
			switch {
			case add:
				n.pvcs[key]++
			case n.pvcs[key] > 1:
				n.pvcs[key]--
			default:
				delete(n.pvcs, key)
			}
		}
	}
}

// runningContainers yields those that run as long as the pod does.
func runningContainers(p *v1.Pod) func(func(*v1.Container) bool) {
	return func(yield func(*v1.Container) bool) {
		for i := range p.Spec.InitContainers {
			c := &p.Spec.InitContainers[i]
			if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways && !yield(c) {
				return
			}
		}
		for i := range p.Spec.Containers {
			if !yield(&p.Spec.Containers[i]) {
				return
			}
		}
	}
}

// Snapshot returns a copy that the plugin may change.
func (n *nodeInfo) Snapshot() fwk.NodeInfo { return n.copy() }

func (n *nodeInfo) copy() *nodeInfo {
	return &nodeInfo{
		node: n.node, pods: slices.Clone(n.pods), affinity: slices.Clone(n.affinity), antiAffinity: slices.Clone(n.antiAffinity),
		requested: n.requested.clone(), nonZero: n.nonZero.clone(), allocatable: n.allocatable.clone(),
		images: maps.Clone(n.images), features: n.features, generation: n.generation,
	}
}

// edit comes before a change.
func (n *nodeInfo) edit() {
	if n.changed != nil {
		n.changed()
	}
	n.count()
	n.generation++
}

// AddPodInfo places the pod on the node.
func (n *nodeInfo) AddPodInfo(p fwk.PodInfo) {
	n.edit()
	n.add(p)
	n.use(p.GetPod(), true)
}

func (n *nodeInfo) add(p fwk.PodInfo) {
	n.pods = append(n.pods, p)
	if hasAffinity(p.GetPod()) {
		n.affinity = append(n.affinity, p)
		if hasRequiredAntiAffinity(p.GetPod()) {
			n.antiAffinity = append(n.antiAffinity, p)
		}
	}
	n.charge(p, 1)
}

func (n *nodeInfo) charge(p fwk.PodInfo, sign int64) {
	r := p.CalculateResource()
	if r.Resource != nil {
		n.requested.add(r.Resource, sign)
	}
	n.nonZero.milliCPU += sign * r.Non0CPU
	n.nonZero.memory += sign * r.Non0Mem
}

// RemovePod takes the pod off the node.
func (n *nodeInfo) RemovePod(_ klog.Logger, pod *v1.Pod) error {
	same := func(p fwk.PodInfo) bool { return p.GetPod().UID == pod.UID }
	at := slices.IndexFunc(n.pods, same)
	if at < 0 {
		return fmt.Errorf("no corresponding pod %s in pods of node %s", pod.Name, n.name())
	}
	n.edit()
	n.charge(n.pods[at], -1)
	n.use(n.pods[at].GetPod(), false)
	n.pods = slices.Delete(n.pods, at, at+1)
	n.affinity, n.antiAffinity = slices.DeleteFunc(n.affinity, same), slices.DeleteFunc(n.antiAffinity, same)
	return nil
}

func (n *nodeInfo) name() string {
	if n.node == nil {
		return ""
	}
	return n.node.Name
}

// SetNode replaces the node.
func (n *nodeInfo) SetNode(node *v1.Node) {
	n.edit()
	n.node = node
	n.allocatable = allocatableOf(node)
}

func allocatableOf(node *v1.Node) *amounts {
	if node == nil {
		return &amounts{}
	}
	a := amountsOf(resource.FromList(node.Status.Allocatable))
	pods := node.Status.Allocatable[v1.ResourcePods]
	a.pods = int(resource.Whole(pods))
	return &a
}
