package compat

import (
	"context"
	"errors"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// A PodGroupPostFilter plugin removes pods from the snapshot, tries the group, and puts pods
// back. It does so on the table itself, so that all plugins, native ones too, decide on what it
// changed. When the call ends the table is as it was.

// groupPostFilter is the name of the extension point.
const groupPostFilter = "PodGroupPostFilter"

// adaptGroupPostFilter sets the native plugin's PodGroup.PostFilter to a function that calls
// the hosted plugin, if it implements that.
func (h *Host) adaptGroupPostFilter(native *framework.Plugin, p *hostedPlugin) {
	if p.groupPostFilter == nil {
		return
	}
	_ = h.podGroupObjects() // GetPodGroup wants them
	if native.PodGroup == nil {
		native.PodGroup = &framework.PodGroupPlugin{}
	}
	native.PodGroup.PostFilter = func(c *framework.PodGroupPostFilterCall) framework.PodGroupPostFilterResult {
		return h.runGroupPostFilter(p, c)
	}
}

// runGroupPostFilter calls the plugin's PodGroupPostFilter, which may take Options.Timeout, and
// undoes what it changed. The plugin evicts by itself, so the result names no victims. The result
// is an error if the plugin fails, nominates a pod to a node that does not exist, or an earlier
// call of any such plugin is overdue; without groupGate it is Unschedulable. A panic in a try of
// the group is raised again.
func (h *Host) runGroupPostFilter(p *hostedPlugin, c *framework.PodGroupPostFilterCall) (out framework.PodGroupPostFilterResult) {
	if !h.options.PodGroups {
		out.Status = &decision.Status{Code: decision.Unschedulable}
		return out
	}
	if err := h.hangs.refuseAt(groupPostFilter); err != nil {
		out.Status = failure(err)
		return out
	}
	x := &groupTrial{host: h, call: c}
	h.groupTrial.Store(x)
	defer x.end()
	group := &framework.PlacementCall{Table: c.Table, Group: c.Group.GroupKey(), Pods: c.Pods}
	var result *fwk.PodGroupPostFilterResult // not results of this function: the plugin may write them late
	var status *fwk.Status
	err := h.callForGroup(groupPostFilter, p, group, func(ctx context.Context, state fwk.PodGroupCycleState, g fwk.PodGroupInfo) {
		result, status = p.groupPostFilter.PodGroupPostFilter(ctx, state, g, x.tryGroup)
	})
	switch {
	case x.panicked != nil:
		panic(x.panicked)
	case err != nil:
		out.Status = failure(err)
	case status.IsSuccess():
		if err := nominate(&out, c, result); err != nil {
			return framework.PodGroupPostFilterResult{Status: failure(fmt.Errorf("plugin %q: %w", p.name, err))}
		}
		out.Status = &decision.Status{}
		if status != nil {
			out.Status.Reasons = status.Reasons()
		}
	case status.Code() == fwk.Unschedulable, status.Code() == fwk.UnschedulableAndUnresolvable:
		out.Status = statusOf(status)
	default:
		out.Status = failure(errorOf(status))
	}
	return out
}

// nominate sets the nominations in out to those of the plugin's result, which may be nil. Pods that
// result does not name keep theirs. A nomination to an unknown node is an error.
func nominate(out *framework.PodGroupPostFilterResult, c *framework.PodGroupPostFilterCall, result *fwk.PodGroupPostFilterResult) error {
	if result == nil {
		return nil
	}
	for _, pod := range c.Pods {
		info := result.NominatingInfos[pod.NamespacedName()]
		if info.Mode() == fwk.ModeNoop {
			continue
		}
		if info.NominatedNodeName == "" {
			out.Unnominated = append(out.Unnominated, pod)
			continue
		}
		row, known := c.Table.Find(info.NominatedNodeName)
		if !known {
			return fmt.Errorf("it nominated pod %s to node %q, which does not exist", pod.NamespacedName(), info.NominatedNodeName)
		}
		out.Assignments = append(out.Assignments, framework.Assignment{Pod: pod, Row: row})
	}
	return nil
}

// groupTrial is what a PodGroupPostFilter plugin changes during one call. Only the loop may use
// it.
type groupTrial struct {
	host     *Host
	call     *framework.PodGroupPostFilterCall
	started  bool               // StartMutations was called, and EndMutations was not
	trying   bool               // the group is being tried
	before   []formerPlace      // of the pods that were added or removed, each once
	known    map[types.UID]bool // pods in before
	panicked any                // in a try of the group; nil: none
}

// formerPlace is where a pod was placed before a trial.
type formerPlace struct {
	uid types.UID
	pod *object.Pod // nil: it was not placed
	row table.Row
}

// Errors of plugins that want to change the snapshot.
var (
	errUnchangeable = errors.New("only PodGroupPostFilter plugins may change the snapshot, while they are called")
	errStarted      = errors.New("the snapshot is being changed already: EndMutations was not called")
	errNotStarted   = errors.New("StartMutations was not called")
	errTrying       = errors.New("the pod group is being tried")
)

// inTrial runs f on the loop with the trial of the PodGroupPostFilter call under way, and returns
// its error. It returns an error of its own if there is no such call, the group is being tried, or
// the loop does not answer.
func (h *Hosts) inTrial(f func(*groupTrial) error) (err error) {
	if h.groupTrial.Load() == nil {
		return errUnchangeable
	}
	unanswered := h.ask(func() {
		switch x := h.groupTrial.Load(); {
		case x == nil:
			err = errUnchangeable
		case x.trying:
			err = errTrying
		default:
			err = f(x)
		}
	})
	if unanswered != nil {
		return unanswered
	}
	return err
}

// start begins a series of changes. Plugins then see copies of the nodes, which follow the changes.
// It returns an error if a series has begun and not ended.
func (x *groupTrial) start() error {
	if x.started {
		return errStarted
	}
	x.started, x.before, x.known = true, nil, map[types.UID]bool{}
	x.host.trialNodes.Store(&trialNodes{snapshot: x.host.snapshots.refresh(x.call.Table), copies: map[table.Row]*nodeInfo{}})
	return nil
}

// finish undoes all changes since start. Plugins then see the nodes of the snapshot again. It
// returns an error if no series of changes has begun.
func (x *groupTrial) finish() error {
	if !x.started {
		return errNotStarted
	}
	x.started = false
	x.host.trialNodes.Store(nil)
	for _, was := range x.before {
		if x.call.Table.Pod(was.uid) != nil {
			x.call.Table.RemovePod(was.uid)
		}
		if was.pod != nil {
			x.call.Table.Place(was.pod, was.row)
		}
	}
	x.host.snapshots.refresh(x.call.Table)
	return nil
}

// end ends the trial when the call is over, and undoes changes that the plugin has left. What the
// plugin still asks for is refused.
func (x *groupTrial) end() {
	x.host.groupTrial.Store(nil)
	if x.started {
		_ = x.finish() // it was started
	}
}

// remember records where the pod is, unless it did so since start.
func (x *groupTrial) remember(uid types.UID) {
	if x.known[uid] {
		return
	}
	x.known[uid] = true
	was := formerPlace{uid: uid}
	if pl := x.call.Table.Pod(uid); pl != nil {
		was.pod, was.row = pl.Pod, pl.Row
	}
	x.before = append(x.before, was)
}

// add places the pod on the node, in the table and, as info, in the nodes that plugins see. It
// returns an error before start, for an unknown node, and for a pod that is placed already.
func (x *groupTrial) add(info fwk.PodInfo, pod *object.Pod, node string) error {
	row, known := x.call.Table.Find(node)
	switch {
	case !x.started:
		return errNotStarted
	case !known:
		return fmt.Errorf("there is no node %q", node)
	case x.call.Table.Pod(pod.UID) != nil:
		return fmt.Errorf("pod %s is placed already", pod.NamespacedName())
	}
	x.remember(pod.UID)
	x.call.Table.Place(pod, row)
	x.host.trialNodes.Load().at(row).AddPodInfo(info)
	return nil
}

// remove takes the pod off the node, in the table and in the nodes that plugins see. It returns an
// error before start, and if the pod is not on that node.
func (x *groupTrial) remove(p *v1.Pod, node string) error {
	row, known := x.call.Table.Find(node)
	pl := x.call.Table.Pod(p.UID)
	switch {
	case !x.started:
		return errNotStarted
	case !known:
		return fmt.Errorf("there is no node %q", node)
	case pl == nil || pl.Row != row:
		return fmt.Errorf("pod %s/%s is not on node %q", p.Namespace, p.Name, node)
	}
	if err := x.host.trialNodes.Load().at(row).RemovePod(x.host.options.Logger, p); err != nil {
		return err // the plugin has changed the node by itself
	}
	x.remember(p.UID)
	x.call.Table.RemovePod(p.UID)
	return nil
}

// tryGroup is the fwk.PodGroupSchedulingFunc of the call: it tries the group on the table as it is
// now. If the group fits, each pod that fits has an assignment; else the status says why not.
func (x *groupTrial) tryGroup(ctx context.Context) (*fwk.PodGroupAssignments, *fwk.Status) {
	if ctx.Err() != nil {
		return nil, fwk.AsStatus(context.Cause(ctx))
	}
	found := &fwk.PodGroupAssignments{}
	var status *fwk.Status
	err := x.host.inTrial(func(now *groupTrial) error {
		if now != x {
			return errUnchangeable
		}
		found.ProposedAssignments, status = x.try()
		return nil
	})
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	return found, status
}

// try tries the group, on the loop, for tryGroup. During the try plugins see the last snapshot, in
// which pods of the group are assumed, instead of the trial's nodes. A panic becomes the status and
// is kept in panicked, which runGroupPostFilter raises again.
func (x *groupTrial) try() (list []fwk.ProposedAssignment, status *fwk.Status) {
	x.trying = true
	nodes := x.host.trialNodes.Swap(nil)
	defer func() {
		x.trying = false
		x.host.trialNodes.Store(nodes)
		if r := recover(); r != nil {
			x.panicked = r
			x.call.Table.Rollback()
			list, status = nil, fwk.AsStatus(fmt.Errorf("the try of the pod group panicked: %v", r))
		}
	}()
	assignments, failed := x.call.Try()
	if failed != nil {
		plain := *failed
		if plain.Code.Rejects() {
			plain.Err = nil
		}
		if status = hosted(&plain); plain.Err != failed.Err {
			status = status.WithError(failed.Err)
		}
		return nil, status
	}
	states := x.host.groupTry().pods
	for _, a := range assignments {
		state := states[a.Pod.UID]
		if state == nil { // no hosted plugin filters
			state = newCycleState(x.host.options.PodsToActivate())
		}
		list = append(list, proposed{newPodInfo(a.Pod, ""), x.call.Table.Name(a.Row), state})
	}
	return list, nil
}

// trialNodes are the nodes that plugins see while a PodGroupPostFilter plugin changes the
// snapshot: a copy of each, which follows the changes.
type trialNodes struct {
	snapshot *snapshot // of the start

	mu     sync.Mutex
	copies map[table.Row]*nodeInfo
	list   []fwk.NodeInfo // made by all
}

// at returns the trial's copy of the row's node; nil if the row had no node.
func (n *trialNodes) at(r table.Row) *nodeInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.copyOf(r)
}

// copyOf returns the trial's copy of the row's node, which it makes at the first call; nil if the
// row had no node. The caller holds the lock.
func (n *trialNodes) copyOf(r table.Row) *nodeInfo {
	if n.copies[r] == nil && n.snapshot.at(r) != nil {
		n.copies[r] = n.snapshot.at(r).copy()
	}
	return n.copies[r]
}

// all returns the trial's copies of all nodes, in the order of their rows. The slice is shared.
func (n *trialNodes) all() []fwk.NodeInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.list == nil {
		for c, chunk := range n.snapshot.chunks {
			for i, node := range chunk {
				if node != nil {
					n.list = append(n.list, n.copyOf(table.Row(c*chunkRows+i)))
				}
			}
		}
	}
	return n.list
}

// shownNodes returns the nodes that plugins see now: those of the last snapshot, unless a
// PodGroupPostFilter plugin changes it. The slice is shared.
func (h *Hosts) shownNodes() []fwk.NodeInfo {
	if n := h.trialNodes.Load(); n != nil {
		return n.all()
	}
	return h.snapshots.last().nodes()
}

// shownNode returns the node of that name as plugins see it now: that of the last snapshot, unless
// a PodGroupPostFilter plugin changes it. It returns nil if there is none.
func (h *Hosts) shownNode(name string) fwk.NodeInfo {
	s, n := h.snapshots.last(), h.trialNodes.Load()
	if n != nil {
		s = n.snapshot
	}
	r, known := s.rows[name]
	switch {
	case !known:
		return nil
	case n != nil:
		return n.at(r)
	}
	return s.at(r)
}
