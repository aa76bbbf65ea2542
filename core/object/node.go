package object

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/resource"
)

// Node is what the scheduler reads of one node. Immutable.
type Node struct {
	UID           types.UID
	Name          string
	Labels        map[string]string
	Annotations   map[string]string // only compared: a change may wake pods
	Unschedulable bool
	Taints        []v1.Taint
	Conditions    []NodeCondition // sorted by type; only compared
	// PreemptionPolicy is spec.podPreemptionPolicy; only compared: a change may wake pods.
	PreemptionPolicy *v1.NodePodPreemptionPolicy

	Allocatable resource.Vector
	AllowedPods int64 // status.allocatable.pods

	Images []Image
	// Features are status.declaredFeatures, as the API has them: sorted.
	Features []string

	// API is the object from which the node was decoded. It is nil unless an extender or
	// hosted plugin needs it.
	API *v1.Node
	// Recorded is the API object in the form in which a record of the scheduler's inputs
	// holds it (edge/recording); "" unless a record is kept.
	Recorded string
}

// NodeCondition is the type and status of one node condition. Conditions decide nothing: a
// change of one is an event (UpdateNodeCondition) that may wake pods.
type NodeCondition struct {
	Type   v1.NodeConditionType
	Status v1.ConditionStatus
}

// Image is a container image that the node has.
type Image struct {
	Names []string // as the node reports them
	Bytes int64    // size
}

// EqualForScheduling reports whether filters and scores see no difference between the two
// states. Annotations, conditions, the preemption policy and the times of taints do not
// count. If the node keeps its API object, every new object counts as a difference, since
// hosted plugins and extenders may read all of it.
func (n *Node) EqualForScheduling(o *Node) bool {
	return n.UID == o.UID && n.Name == o.Name && n.Unschedulable == o.Unschedulable &&
		n.Allocatable.Equal(o.Allocatable) && n.AllowedPods == o.AllowedPods &&
		maps.Equal(n.Labels, o.Labels) && slices.EqualFunc(n.Taints, o.Taints, SameTaint) &&
		slices.EqualFunc(n.Images, o.Images, sameImage) && slices.Equal(n.Features, o.Features) &&
		n.API == o.API
}

// SameTaint reports whether two taints are equal but for the time when they were added.
func SameTaint(a, b v1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

// sameImage reports whether two images have the same size and names.
func sameImage(a, b Image) bool { return a.Bytes == b.Bytes && slices.Equal(a.Names, b.Names) }

// Subject returns the node's name and labels, which node selectors read.
func (n *Node) Subject() match.Subject { return match.Subject{Name: n.Name, Labels: n.Labels} }

// Declares reports whether the node declares all of the features, which are sorted. As
// kube-scheduler it walks both lists once: if the node's list is out of order, a feature that
// comes too late counts as not declared.
func (n *Node) Declares(features []string) bool {
	at := 0
	for _, f := range features {
		for at < len(n.Features) && n.Features[at] < f {
			at++
		}
		if at == len(n.Features) || n.Features[at] != f {
			return false
		}
	}
	return true
}
