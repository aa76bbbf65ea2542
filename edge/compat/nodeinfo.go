package compat

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	ndf "k8s.io/component-helpers/nodedeclaredfeatures"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// nodeInfo is the fwk.NodeInfo of a node and its pods. Those of a snapshot are shared
// and must not be changed; if a plugin changes one all the same, it is made anew at the
// next cycle.
type nodeInfo struct {
	node         *v1.Node
	pods         []fwk.PodInfo
	affinity     []fwk.PodInfo // of pods, those with pod affinity or anti-affinity
	antiAffinity []fwk.PodInfo // of pods, those with required anti-affinity
	requested    *amounts
	nonZero      *amounts // CPU and memory with the defaults for pods that request none
	allocatable  *amounts
	images       map[string]*fwk.ImageStateSummary // by image name
	features     ndf.FeatureSet
	generation   int64
	changed      func() // called before a change, so that the snapshot makes it anew; nil: a plugin's own copy

	object        *object.Node // core's node of which a snapshot made it
	imageRevision uint64       // of the index of images, when images was made

	once  sync.Once // for ports and pvcs
	ports fwk.HostPortInfo
	pvcs  map[string]int // pods that use the claim, by namespace/name
}

// Node returns the node.
func (n *nodeInfo) Node() *v1.Node { return n.node }

// GetPods returns the pods on the node. The slice is shared.
func (n *nodeInfo) GetPods() []fwk.PodInfo { return n.pods }

// GetPodsWithAffinity returns the pods with pod affinity or anti-affinity.
func (n *nodeInfo) GetPodsWithAffinity() []fwk.PodInfo { return n.affinity }

// GetPodsWithRequiredAntiAffinity returns the pods with required anti-affinity.
func (n *nodeInfo) GetPodsWithRequiredAntiAffinity() []fwk.PodInfo { return n.antiAffinity }

// GetPodsWithRequiredNonHostScopedAntiAffinity returns nil, as in kube-scheduler without the
// feature gate InterPodAffinityHostnameFastPath.
func (n *nodeInfo) GetPodsWithRequiredNonHostScopedAntiAffinity() []fwk.PodInfo { return nil }

// GetRequested returns the sum of the pods' requests.
func (n *nodeInfo) GetRequested() fwk.Resource { return n.requested }

// GetNonZeroRequested returns the sum of the pods' CPU and memory, with kube-scheduler's defaults
// for pods that request none.
func (n *nodeInfo) GetNonZeroRequested() fwk.Resource { return n.nonZero }

// GetAllocatable returns the node's allocatable resources.
func (n *nodeInfo) GetAllocatable() fwk.Resource { return n.allocatable }

// GetImageStates returns the node's images by name.
func (n *nodeInfo) GetImageStates() map[string]*fwk.ImageStateSummary { return n.images }

// GetGeneration returns a number that grows with each change.
func (n *nodeInfo) GetGeneration() int64 { return n.generation }

// GetNodeDeclaredFeatures returns the features in the node's status.
func (n *nodeInfo) GetNodeDeclaredFeatures() ndf.FeatureSet { return n.features }

// GetUsedPorts returns the host ports in use.
func (n *nodeInfo) GetUsedPorts() fwk.HostPortInfo { n.count(); return n.ports }

// GetPVCRefCounts returns the number of pods that use a claim, by namespace/name.
func (n *nodeInfo) GetPVCRefCounts() map[string]int { n.count(); return n.pvcs }

// String returns the text of kube-scheduler's NodeInfo, for logs.
func (n *nodeInfo) String() string {
	names := make([]string, len(n.pods))
	for i, p := range n.pods {
		names[i] = p.GetPod().Name
	}
	return fmt.Sprintf("&NodeInfo{Pods:%v, RequestedResource:%#v, NonZeroRequest: %#v, UsedPort: %#v, AllocatableResource:%#v}",
		names, n.requested, n.nonZero, n.GetUsedPorts(), n.allocatable)
}

// count computes ports and pvcs, at its first call.
func (n *nodeInfo) count() {
	n.once.Do(func() {
		n.ports, n.pvcs = fwk.HostPortInfo{}, map[string]int{}
		for _, p := range n.pods {
			n.use(p.GetPod(), true)
		}
	})
}

// use adds the pod to ports and pvcs, or removes it from them.
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

// runningContainers yields the pod's containers, after its restartable init containers
// (sidecars).
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

// copy returns a copy that a plugin may change without effect on the snapshot.
func (n *nodeInfo) copy() *nodeInfo {
	return &nodeInfo{
		node: n.node, pods: slices.Clone(n.pods), affinity: slices.Clone(n.affinity), antiAffinity: slices.Clone(n.antiAffinity),
		requested: n.requested.clone(), nonZero: n.nonZero.clone(), allocatable: n.allocatable.clone(),
		images: maps.Clone(n.images), features: n.features, generation: n.generation,
	}
}

// edit must be called before a change of the node. It informs the snapshot, makes sure that
// ports and claims are counted, and raises the generation.
func (n *nodeInfo) edit() {
	if n.changed != nil {
		n.changed()
	}
	n.count()
	n.generation++
}

// AddPodInfo adds the pod to the node.
func (n *nodeInfo) AddPodInfo(p fwk.PodInfo) {
	n.edit()
	n.add(p)
	n.use(p.GetPod(), true)
}

// add adds the pod to the lists and requests, not to ports and pvcs.
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

// charge adds the pod's requests to what is requested on the node (sign 1), or subtracts
// them (-1).
func (n *nodeInfo) charge(p fwk.PodInfo, sign int64) {
	r := p.CalculateResource()
	if r.Resource != nil {
		n.requested.add(r.Resource, sign)
	}
	n.nonZero.milliCPU += sign * r.Non0CPU
	n.nonZero.memory += sign * r.Non0Mem
}

// RemovePod removes the pod, found by its UID, from the node. It returns an error if the node does
// not have the pod.
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

// name returns the node's name; "" without a node.
func (n *nodeInfo) name() string {
	if n.node == nil {
		return ""
	}
	return n.node.Name
}

// SetNode replaces the node and its allocatable resources. Its images and features stay.
func (n *nodeInfo) SetNode(node *v1.Node) {
	n.edit()
	n.node = node
	n.allocatable = allocatableOf(node)
}

// allocatableOf returns the node's allocatable resources; zero for nil.
func allocatableOf(node *v1.Node) *amounts {
	if node == nil {
		return &amounts{}
	}
	a := amountsOf(resource.FromList(node.Status.Allocatable))
	pods := node.Status.Allocatable[v1.ResourcePods]
	a.pods = int(resource.Whole(pods))
	return &a
}
