package decode

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// Node decodes a node. The result shares maps and slices with the API object,
// which must not be changed afterwards.
func Node(n *v1.Node) *object.Node {
	pods := n.Status.Allocatable[v1.ResourcePods]
	node := &object.Node{
		UID:           n.UID,
		Name:          n.Name,
		Labels:        n.Labels,
		Annotations:   n.Annotations,
		Unschedulable: n.Spec.Unschedulable,
		Taints:        n.Spec.Taints,
		Allocatable:   resource.FromList(n.Status.Allocatable),
		AllowedPods:   resource.Whole(pods),
		Features:      n.Status.DeclaredFeatures,

		PreemptionPolicy: n.Spec.PodPreemptionPolicy,
	}
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		node.Conditions = append(node.Conditions, object.NodeCondition{Type: c.Type, Status: c.Status})
	}
	slices.SortStableFunc(node.Conditions, func(a, b object.NodeCondition) int {
		return strings.Compare(string(a.Type), string(b.Type))
	})
	for i := range n.Status.Images {
		img := &n.Status.Images[i]
		node.Images = append(node.Images, object.Image{Names: img.Names, Bytes: img.SizeBytes})
	}
	return node
}
