package compat

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/table"
)

// mostPostFilters is how many PostFilter calls may run beside the loop. With as many,
// the loop waits for the next one until it returns or is overdue.
const mostPostFilters = 16

// runPostFilter calls the plugin's PostFilter, which may take Options.Timeout. The loop waits for
// PostFilterWait; if the call has not returned then, the result is Pending, and a PostFilterReply
// is sent when it returns. The loop waits to the end if the machine takes no such reply
// (call.Number is 0), or if mostPostFilters calls run already.
func (c *cycle) runPostFilter(p *hostedPlugin, call *framework.PostFilterCall) framework.PostFilterResult {
	c.postFilter = call
	defer func() { c.postFilter = nil }()
	h, uid, limit := c.host, c.object.UID, c.host.options.Timeout
	c.left = limit // the filters had their own
	if err := h.refuse(limit, uid, "PostFilter", p.name); err != nil {
		return c.postFilterFailed(err)
	}
	var result *fwk.PostFilterResult
	var status *fwk.Status
	reader := newNodeStatuses(c, call)
	w := h.workers.take()
	w.jobs <- func() { result, status = p.postFilter.PostFilter(c.ctx, c.state, c.pod, reader) }
	beside := call.Number != 0 && limit > h.options.PostFilterWait && h.loop != nil && h.postFilters.Load() < mostPostFilters
	wait := limit
	if beside {
		wait = h.options.PostFilterWait
	}
	returned, err := h.wait(w, wait)
	switch {
	case returned && err == nil:
		return c.postFilterResult(p, result, status)
	case returned:
		return c.postFilterFailed(err)
	case !beside:
		return c.postFilterFailed(h.overdue(w, uid, "PostFilter", p.name))
	}
	reader.keep()
	h.postFilters.Add(1)
	go func() {
		defer h.postFilters.Add(-1)
		reply := machine.PostFilterReply{UID: uid, Call: call.Number}
		if err := h.waitBeside(w, limit-wait, uid, p.name); err != nil {
			reply.Result = c.postFilterFailed(err)
		} else {
			reply.Result = c.postFilterResult(p, result, status)
		}
		h.loop.Report(reply)
	}()
	return framework.PostFilterResult{Pending: true}
}

// waitBeside waits for the worker's PostFilter call, off the loop. It returns an error if
// that panics or is overdue.
func (h *Hosts) waitBeside(w *worker, limit time.Duration, pod types.UID, plugin string) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-w.done:
		h.workers.put(w, err)
		return err
	case <-timer.C:
		return h.overdue(w, pod, "PostFilter", plugin)
	}
}

// postFilterFailed cancels the attempt's context and returns the result of a plugin that panicked,
// is overdue or could not be called.
func (c *cycle) postFilterFailed(err error) framework.PostFilterResult {
	c.cancel(err)
	return framework.PostFilterResult{Failed: true, Message: err.Error()}
}

// postFilterResult converts what the plugin returned. A nomination to a node that is not in
// the snapshot is a failure.
func (c *cycle) postFilterResult(p *hostedPlugin, result *fwk.PostFilterResult, status *fwk.Status) framework.PostFilterResult {
	if !status.IsSuccess() && !status.IsRejected() {
		return framework.PostFilterResult{Failed: true, Message: errorOf(status).Error()}
	}
	out := framework.PostFilterResult{
		Message:        status.Message(),
		Resolved:       status.IsSuccess() || status.Code() == fwk.UnschedulableAndUnresolvable,
		KeepNomination: result == nil || result.Mode() == fwk.ModeNoop,
	}
	if out.KeepNomination {
		return out
	}
	name := result.NominatedNodeName
	if _, known := c.snapshot.rows[name]; name != "" && !known {
		return framework.PostFilterResult{Failed: true, Message: fmt.Sprintf("plugin %q nominated the pod to node %q, which does not exist", p.name, name)}
	}
	out.NominatedNodeName = name
	return out
}

// nodeStatuses is the fwk.NodeToStatusReader that PostFilter gets: the status by which
// Filter rejected each node.
type nodeStatuses struct {
	cycle *cycle
	codes map[string]decision.Code // by node name
	all   *decision.Status         // of the PreFilter plugin that rejected the pod; nil: none did
	call  *framework.PostFilterCall
	// kept are the rejections by row, copied when the loop goes on without waiting for
	// the plugin; nil: they are read from call.
	kept map[table.Row]*decision.Blocker
}

// newNodeStatuses returns the reader for a PostFilter call. It copies the codes of all nodes now.
// The reader reads reasons when the plugin asks for them: the loop answers while it waits for the
// plugin. Call keep before the loop goes on.
func newNodeStatuses(c *cycle, call *framework.PostFilterCall) *nodeStatuses {
	s := &nodeStatuses{cycle: c, call: call, all: call.Filters.PreFilter, codes: map[string]decision.Code{}}
	for name, r := range c.snapshot.rows { // any order: fills a map
		s.codes[name] = call.Filters.Code(r)
	}
	return s
}

// Get returns the status by which the node was rejected, with its reasons; nil if it was not. If
// PreFilter rejected the pod, that status is every node's. Else an unknown node is
// UnschedulableAndUnresolvable. It is an error if the loop does not answer.
func (s *nodeStatuses) Get(name string) *fwk.Status {
	if s.all != nil {
		return hosted(s.all)
	}
	r, known := s.cycle.snapshot.rows[name]
	if !known {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
	}
	var why *decision.Blocker
	if err := s.cycle.host.ask(func() { why = s.blocker(r) }); err != nil {
		return fwk.AsStatus(err)
	}
	code := s.codes[name]
	if why == nil {
		return hosted(&decision.Status{Code: code})
	}
	return hosted(&decision.Status{Code: code, Plugin: why.Plugin, Reasons: why.Reasons})
}

// keep copies the reasons of all rejected nodes. Call it on the loop before the loop goes on
// without waiting for the plugin, since the table changes then.
func (s *nodeStatuses) keep() {
	s.kept = map[table.Row]*decision.Blocker{}
	if s.all != nil {
		return
	}
	for name, code := range s.codes { // any order: fills a map
		if r := s.cycle.snapshot.rows[name]; code.Rejects() {
			s.kept[r] = s.call.Filters.Run(r)
		}
	}
}

// blocker returns why the node of the row was rejected; nil if keep has not copied that and
// the loop no longer waits for the plugin. It must run on the loop.
func (s *nodeStatuses) blocker(r table.Row) *decision.Blocker {
	if s.kept != nil {
		return s.kept[r]
	}
	if s.cycle.postFilter != s.call {
		return nil
	}
	return s.call.Filters.Run(r)
}

// NodesForStatusCode returns the lister's nodes that were rejected with the code.
func (s *nodeStatuses) NodesForStatusCode(lister fwk.NodeInfoLister, code fwk.Code) ([]fwk.NodeInfo, error) {
	all, err := lister.List()
	if err != nil {
		return nil, err
	}
	var list []fwk.NodeInfo
	for _, n := range all {
		if answer, known := s.codes[n.Node().Name]; known && answer == codes[code] {
			list = append(list, n)
		}
	}
	return list, nil
}
