package object

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/resource"
)

// Node is what the scheduler knows of one node. Immutable.
type Node struct {
	UID           types.UID
	Name          string
	Labels        map[string]string
	Annotations   map[string]string // only compared: a change is an event
	Unschedulable bool
	Taints        []v1.Taint
	Conditions    []NodeCondition // sorted by type; only compared

	Allocatable resource.Vector
	AllowedPods int64

	Images []Image
}

// NodeCondition is the type and status of one node condition.
type NodeCondition struct {
	Type   v1.NodeConditionType
	Status v1.ConditionStatus
}

// Image is a container image that the node has.
type Image struct {
	Names []string // as the node reports them
	Bytes int64
}

// Subject is the node as selectors see it.
func (n *Node) Subject() match.Subject { return match.Subject{Name: n.Name, Labels: n.Labels} }
