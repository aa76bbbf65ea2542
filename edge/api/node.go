package api

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/snapshot"
)

// Node is the answer of node: one node, the pods on it, and what happened there last.
type Node struct {
	Head
	Time      time.Time                     `json:"time"`
	Name      string                        `json:"name"`
	Ready     bool                          `json:"ready"`
	Cordoned  bool                          `json:"cordoned"`
	Labels    map[string]string             `json:"labels,omitempty"`
	Taints    []v1.Taint                    `json:"taints,omitempty"`
	Resources map[v1.ResourceName]OneAmount `json:"resources"` // in the units of NodeTable
	// Pods are those with the highest priority first, and of these the largest first.
	Pods []NodePod `json:"pods"`
	// Nominated are the pods that wait and are to come here.
	Nominated []string         `json:"nominated,omitempty"`
	Records   []records.Record `json:"records"` // the last ones, the oldest first
}

// OneAmount is how much of a resource a node offers, and what its pods request.
type OneAmount struct {
	Allocatable int64 `json:"allocatable"`
	Requested   int64 `json:"requested"`
}

// NodePod is a pod on a node.
type NodePod struct {
	Pod      string    `json:"pod"`
	UID      types.UID `json:"uid"`
	Priority int32     `json:"priority"`
	// Requested is what the pod takes of the node, Share the largest part of any resource of the
	// node that this comes to.
	Requested map[v1.ResourceName]int64 `json:"requested"`
	Share     float64                   `json:"share"`
	Created   *time.Time                `json:"created,omitempty"`
	// Assumed is set if the API does not show the pod there yet.
	Assumed     bool `json:"assumed,omitempty"`
	Terminating bool `json:"terminating,omitempty"`
}

// mostNodeRecords bounds the records of a node in an answer.
const mostNodeRecords = 50

func (h *handler) node(r *http.Request) (any, error) {
	p := paramsOf(r, "name")
	name := p.values.Get("name")
	if name == "" {
		p.fail("name", "is needed")
	}
	if p.err != nil {
		return nil, p.err
	}
	var node *object.Node
	var pods []*object.Pod
	var nominated []*object.Pod
	err := h.look(r.Context(), func(m *machine.Machine) {
		t := m.Table()
		row, ok := t.Find(name)
		if !ok {
			return
		}
		node, nominated = t.Node(row), m.NominatedTo(name)
		for _, pl := range t.Pods(row) {
			pods = append(pods, pl.Pod)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case node == nil:
		return nil, problem(http.StatusNotFound, NotFound, "node %s: there is no such node", name)
	}
	n := nodeOf(node, pods)
	n.Time = h.Now().UTC()
	for _, p := range nominated {
		n.Nominated = append(n.Nominated, p.Key())
	}
	slices.Sort(n.Nominated)
	found := h.Recorder.Find(records.Query{Node: name, Most: mostNodeRecords})
	defer found.End()
	n.Records = slices.AppendSeq([]records.Record{}, found.All())
	return n, nil
}

// nodeOf returns a node with its pods.
func nodeOf(node *object.Node, pods []*object.Pod) *Node {
	n := &Node{Head: head("Node"), Name: node.Name, Ready: snapshot.IsReady(node), Cordoned: node.Unschedulable,
		Labels: node.Labels, Taints: node.Taints, Resources: map[v1.ResourceName]OneAmount{}, Pods: []NodePod{}}
	for name, amount := range named(node.Allocatable) { // any order: each by itself
		n.Resources[name] = OneAmount{Allocatable: amount}
	}
	n.Resources[v1.ResourcePods] = OneAmount{node.AllowedPods, int64(len(pods))}
	for _, p := range pods {
		of := NodePod{Pod: p.Key(), UID: p.UID, Priority: p.Priority, Requested: named(p.Demand.Usage), Created: utc(p.Created),
			Assumed: p.NodeName == "", Terminating: p.Terminating}
		for name, amount := range of.Requested { // any order: each by itself
			sum := n.Resources[name]
			sum.Requested = resource.Add(sum.Requested, amount)
			n.Resources[name] = sum
			if sum.Allocatable > 0 {
				of.Share = max(of.Share, float64(amount)/float64(sum.Allocatable))
			}
		}
		n.Pods = append(n.Pods, of)
	}
	slices.SortFunc(n.Pods, func(a, b NodePod) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(b.Share, a.Share), cmp.Compare(a.Pod, b.Pod))
	})
	return n
}

// named returns the amounts of a vector that are not 0.
func named(v resource.Vector) map[v1.ResourceName]int64 {
	all := map[v1.ResourceName]int64{}
	set := func(name v1.ResourceName, amount int64) {
		if amount != 0 {
			all[name] = amount
		}
	}
	set(v1.ResourceCPU, v.MilliCPU)
	set(v1.ResourceMemory, v.Memory)
	set(v1.ResourceEphemeralStorage, v.EphemeralStorage)
	for _, s := range v.Scalars {
		set(s.Name, s.Value)
	}
	return all
}
