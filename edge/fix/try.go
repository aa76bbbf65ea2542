package fix

import (
	"encoding/json"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/manifest"
)

// search is the search for fixes of one pod.
type search struct {
	machine *machine.Machine
	table   *table.Table
	set     *manifest.Set
	nodes   map[string]*v1.Node

	written *v1.Pod // as it was written
	doc     any     // the same, in JSON
	spec    *v1.PodSpec
	// selectorKeys are those of the node selector, sorted.
	selectorKeys []string
	api          *v1.Pod // with defaults
	pod          *object.Pod
	apis         map[types.UID]*v1.Pod // the pods of the set; nil: not asked for yet

	// base is what every candidate begins with: without it nothing helps.
	base []edit
	// evicting: a fix may preempt.
	evicting bool
	// chosen: the pod's own node selector and affinity allow some node.
	chosen bool
	// anyLabel: labels that describe where a node is may be changed, too.
	anyLabel bool

	budget
	size  int // of the pod, in units of work
	found []candidate
	known map[string]bool
}

// creation is an object that is to come.
type creation struct {
	target
	object any      // of k8s.io/api
	node   *NewNode // nil for other objects
	read   object.Object
}

func newCreation(apiVersion, kind string, o metav1.Object) *creation {
	c := &creation{target: target{apiVersion, kind, o.GetNamespace(), o.GetName()}, object: o}
	c.read = decode.Object(o)
	return c
}

// podWith returns the pod with its own edits applied, nil where the API server would not admit
// that. Edits of other objects do not count.
func (s *search) podWith(edits []edit) *object.Pod {
	var ops []Op
	for i := range edits {
		if edits[i].target == (target{}) {
			ops = append(ops, edits[i].ops...)
		}
	}
	if len(ops) == 0 {
		return s.pod
	}
	if s.pod.Controller.Replacement == object.SameNode && slices.ContainsFunc(ops, ofDaemonSet) {
		return nil
	}
	api := s.written.DeepCopy()
	if patch(api, ops) != nil || s.set.AdmitPod(api) != nil {
		return nil
	}
	return s.set.DecodePod(api)
}

// ofDaemonSet reports whether the operation changes what the controller sets on each pod
// of a DaemonSet, whatever the template says.
func ofDaemonSet(op Op) bool {
	path := "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"
	return strings.HasPrefix(op.Path, path) || strings.HasPrefix(path, op.Path)
}

// with applies the edits to the copy of the cluster, calls f with the edited pod, and undoes
// them. It returns false, without a call, if an edit cannot be applied.
func (s *search) with(edits []edit, f func(*object.Pod)) bool {
	p := s.podWith(edits)
	if p == nil {
		return false
	}
	var undo []func()
	defer func() {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
	}()
	for t, ops := range s.targets(edits) { // any order: each object by itself
		back := s.change(t, ops)
		if back == nil {
			return false
		}
		undo = append(undo, back)
	}
	for i := range edits {
		if c := edits[i].create; c != nil {
			undo = append(undo, s.make(c))
		}
	}
	undo = append(undo, s.removals(edits))
	f(p)
	return true
}

// targets are the operations on objects other than the pod.
func (s *search) targets(edits []edit) map[target][]Op {
	all := map[target][]Op{}
	for i := range edits {
		if t := edits[i].target; t != (target{}) {
			all[t] = append(all[t], edits[i].ops...)
		}
	}
	return all
}

// change applies the operations to a node, a pod that runs, or an object as it was written.
// It returns what undoes that; nil if they cannot be applied.
func (s *search) change(t target, ops []Op) func() {
	if t.kind == "Node" {
		row, ok := s.table.Find(t.name)
		if !ok || s.nodes[t.name] == nil {
			return nil
		}
		n := s.nodes[t.name].DeepCopy()
		if patch(n, ops) != nil || manifest.Check(n, t.kind) != nil {
			return nil
		}
		before := s.table.Node(row)
		s.table.SetNode(s.set.DecodeNode(n))
		return func() { s.table.SetNode(before) }
	}
	if t.kind == "Pod" {
		return s.changePod(t, ops)
	}
	kind, ok := object.KindOf(t.kind)
	if !ok || s.table.Objects().Named(kind, t.namespace, t.name) == nil {
		return nil
	}
	known, changed := s.table.Objects().Named(kind, t.namespace, t.name).Head(), decode.Empty(kind)
	if json.Unmarshal(s.writtenOf(t), changed) != nil || patch(changed, ops) != nil || manifest.Check(changed, t.kind) != nil {
		return nil
	}
	changed.SetNamespace(known.Namespace)
	changed.SetUID(known.UID) // which a file may leave out
	before := s.table.Objects().Set(decode.Object(changed))
	return func() { s.table.Objects().Set(before) }
}

// writtenOf is the object in JSON.
func (s *search) writtenOf(t target) []byte {
	var known any
	switch t.kind {
	case "Node":
		known = s.nodes[t.name]
	case "Pod":
		known = s.runningPod(t.namespace, t.name)
	default:
		return s.set.Written(t.kind, t.namespace, t.name)
	}
	data, err := json.Marshal(known)
	if err != nil {
		return nil
	}
	return data
}

func parse(data []byte) (doc any) {
	if json.Unmarshal(data, &doc) != nil {
		return nil
	}
	return doc
}

// make adds an object to the copy of the cluster, and returns what undoes that.
func (s *search) make(c *creation) func() {
	if c.node != nil {
		c.node.Join(s.table)
		return func() { c.node.Leave(s.table) }
	}
	head := c.read.Head()
	if before := s.table.Objects().Set(c.read); before != nil {
		return func() { s.table.Objects().Set(before) }
	}
	return func() { s.table.Objects().Remove(head.Kind, head.Namespace, head.Name) }
}

// removals removes pods and nominations, and returns what undoes that. It is no try of the
// table's: what the engine keeps about nominated pods does not count those.
func (s *search) removals(edits []edit) func() {
	var undo []func()
	for i := range edits {
		p := edits[i].remove
		if p == nil {
			continue
		}
		if pl := s.table.Pod(p.UID); pl != nil {
			p, node := pl.Pod, s.table.Name(pl.Row)
			s.table.RemovePod(p.UID)
			undo = append(undo, func() { s.table.AddPod(p, node) })
			continue
		}
		if e := s.machine.Entry(p.UID); e.NominatedNode() != "" {
			node := e.NominatedNode()
			s.machine.Queue().Nominate(e, "")
			undo = append(undo, func() { s.machine.Queue().Nominate(e, node) })
		}
	}
	return func() {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
	}
}

// trial is the result of the next decision on the pod.
type trial struct {
	ok     bool
	node   string
	evicts []string
}

// try applies the edits and decides.
func (s *search) try(edits []edit) (o trial) {
	if !s.spend(s.tryWork(edits)) {
		return o
	}
	s.with(edits, func(p *object.Pod) {
		if o.node, o.ok = s.machine.Admits(p); o.ok || !s.evicting {
			return
		}
		if d := s.machine.AssessBriefly(p); d.Result == decision.ResultPreempting && len(d.Victims) > 0 {
			o.ok, o.node = !s.inVain(s.pod, d.Victims, d.NominatedNode), d.NominatedNode
			for _, v := range d.Victims {
				o.evicts = append(o.evicts, v.String())
			}
		}
	})
	return o
}

// blockers is what blocks the pod on a row once the edits are made.
func (s *search) blockers(edits []edit, row table.Row) (blockers []decision.Blocker, ok bool) {
	ok = s.spend(s.rowWork(edits)) && s.with(edits, func(p *object.Pod) { blockers = s.machine.Blockers(p, row) })
	return blockers, ok
}

// lifts reports whether the plugin no longer blocks the row once the edits are made.
func (s *search) lifts(edits []edit, row table.Row, plugin string) bool {
	blockers, ok := s.blockers(join(s.base, edits), row)
	if !ok {
		return false
	}
	for i := range blockers {
		if blockers[i].Plugin == plugin {
			return false
		}
	}
	return true
}

// join is two lists of edits in one of its own.
func join(a, b []edit) []edit { return append(append([]edit(nil), a...), b...) }
