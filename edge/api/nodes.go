package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/snapshot"
)

// NodeTable is the answer of nodes: the nodes by name, as columns of one length. In a stream it
// holds the nodes that changed.
type NodeTable struct {
	Head
	// Revision says how new the table is. A stream goes on from it.
	Revision string    `json:"revision"`
	Time     time.Time `json:"time"`
	Names    []string  `json:"names"`
	Ready    []bool    `json:"ready"`
	Cordoned []bool    `json:"cordoned"`
	// CordonedSince is when nodes got the taint of a cordon, by name, as far as the taint says.
	CordonedSince map[string]time.Time `json:"cordonedSince,omitempty"`
	// Zones are the values of the label topology.kubernetes.io/zone.
	Zones  Values[string]  `json:"zones"`
	Taints Values[[]Taint] `json:"taints"`
	// Labels are those that were asked for.
	Labels map[string]*Values[string] `json:"labels,omitempty"`
	// Resources are by name: CPU in thousandths, memory and storage in bytes, "pods" the pods
	// themselves.
	Resources map[v1.ResourceName]Amounts `json:"resources"`

	// In a stream: Whole is set if these are all nodes, and Gone are nodes that are there no more.
	Whole bool     `json:"whole,omitempty"`
	Gone  []string `json:"gone,omitempty"`
}

// Values is a column of values of which many are the same.
type Values[T any] struct {
	// Values are the different ones, Of the index of each node's, -1 for none.
	Values []T   `json:"values"`
	Of     []int `json:"of"`

	index map[string]int
}

// Taint is a taint without the time at which it was added.
type Taint struct {
	Key    string         `json:"key"`
	Value  string         `json:"value,omitempty"`
	Effect v1.TaintEffect `json:"effect"`
}

// Amounts are of one resource.
type Amounts struct {
	Allocatable []int64 `json:"allocatable"`
	// Requested is what the pods on each node request.
	Requested []int64 `json:"requested"`
}

// mostLabels is how many labels a table may have.
const mostLabels = 16

// labels are the keys of labels in a table.
func (p *params) labels() []string {
	value := p.values.Get("labels")
	if value == "" {
		return nil
	}
	keys := strings.Split(value, ",")
	for i, key := range keys {
		switch {
		case len(validation.IsQualifiedName(key)) > 0:
			p.fail("labels", fmt.Sprintf("%q is not the key of a label", key))
		case slices.Contains(keys[:i], key):
			p.fail("labels", fmt.Sprintf("%q is given twice", key))
		}
	}
	if len(keys) > mostLabels {
		p.fail("labels", fmt.Sprintf("must be at most %d", mostLabels))
	}
	return keys
}

func (h *handler) nodes(r *http.Request) (any, error) {
	p := paramsOf(r, "labels")
	labels := p.labels()
	if p.err != nil {
		return nil, p.err
	}
	s, err := h.snapshots.Now(r.Context())
	if err != nil {
		return nil, err
	}
	return h.table(s, s.Rows, labels), nil
}

// table returns some rows of a snapshot.
func (h *handler) table(s *snapshot.Snapshot, rows []table.Row, labels []string) *NodeTable {
	n := len(rows)
	t := &NodeTable{Head: head("NodeTable"), Revision: h.revision(s), Time: h.Now().UTC(),
		Names: make([]string, n), Ready: make([]bool, n), Cordoned: make([]bool, n), Labels: map[string]*Values[string]{}, Resources: amounts(s, rows)}
	t.Zones.of(n)
	t.Taints.of(n)
	for _, key := range labels {
		t.Labels[key] = &Values[string]{}
		t.Labels[key].of(n)
	}
	for i, r := range rows {
		node := s.Nodes[r]
		t.Names[i], t.Ready[i], t.Cordoned[i] = node.Name, snapshot.IsReady(node), node.Unschedulable
		setLabel(&t.Zones, i, node, v1.LabelTopologyZone)
		if since := cordonTime(node); since != nil {
			if t.CordonedSince == nil {
				t.CordonedSince = map[string]time.Time{}
			}
			t.CordonedSince[node.Name] = *since
		}
		if len(node.Taints) > 0 {
			t.Taints.set(i, keyOf(node.Taints), func() []Taint { return taints(node) })
		}
		for _, key := range labels {
			setLabel(t.Labels[key], i, node, key)
		}
	}
	return t
}

// cordonTime returns when a node got the taint of a cordon; nil if it has none, or the taint does not
// say.
func cordonTime(n *object.Node) *time.Time {
	for _, t := range n.Taints {
		if n.Unschedulable && t.Key == v1.TaintNodeUnschedulable && t.TimeAdded != nil {
			return utc(t.TimeAdded.Time)
		}
	}
	return nil
}

// revision returns that of a snapshot in an answer.
func (h *handler) revision(s *snapshot.Snapshot) string {
	return fmt.Sprintf("%s-%d", h.process, s.Revision)
}

// amounts returns the columns of each resource, and of the pods.
func amounts(s *snapshot.Snapshot, rows []table.Row) map[v1.ResourceName]Amounts {
	byName := map[v1.ResourceName]Amounts{}
	add := func(name v1.ResourceName, requested []int64, offered func(*object.Node) int64) {
		a := Amounts{make([]int64, len(rows)), make([]int64, len(rows))}
		for i, r := range rows {
			a.Allocatable[i], a.Requested[i] = offered(s.Nodes[r]), requested[r]
		}
		byName[name] = a
	}
	for _, of := range s.Requested {
		add(of.Name, of.Amount, func(n *object.Node) int64 { return n.Allocatable.Of(of.Name) })
	}
	add(v1.ResourcePods, s.Pods, func(n *object.Node) int64 { return n.AllowedPods })
	return byName
}

// of makes a column of n nodes without a value.
func (v *Values[T]) of(n int) {
	v.Values, v.Of, v.index = []T{}, make([]int, n), map[string]int{}
	for i := range v.Of {
		v.Of[i] = -1
	}
}

// set sets the value of a node, which value returns where the key is a new one.
func (v *Values[T]) set(i int, key string, value func() T) {
	at, known := v.index[key]
	if !known {
		at = len(v.Values)
		v.index[key], v.Values = at, append(v.Values, value())
	}
	v.Of[i] = at
}

// setLabel sets the value of a node to that of its label.
func setLabel(v *Values[string], i int, n *object.Node, key string) {
	if value, is := n.Labels[key]; is {
		v.set(i, value, func() string { return value })
	}
}

func taints(n *object.Node) []Taint {
	list := make([]Taint, len(n.Taints))
	for i, t := range n.Taints {
		list[i] = Taint{t.Key, t.Value, t.Effect}
	}
	return list
}

// keyOf returns a text that is the same for taints that differ in their times alone.
func keyOf(taints []v1.Taint) string {
	var b strings.Builder
	for _, t := range taints {
		fmt.Fprintf(&b, "%q=%q:%q,", t.Key, t.Value, t.Effect)
	}
	return b.String()
}
