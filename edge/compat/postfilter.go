package compat

import (
	"fmt"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// runPostFilter runs the plugin on the loop's time, within what is left of the
// attempt's.
func (c *cycle) runPostFilter(p *hostedPlugin, call *framework.PostFilterCall) framework.PostFilterResult {
	c.left = c.host.options.Timeout // the filters had their own
	c.postFilter = call
	defer func() { c.postFilter = nil }()
	var result *fwk.PostFilterResult
	var status *fwk.Status
	reader := newNodeStatuses(c, call)
	err := c.call("PostFilter", p.name, func() { result, status = p.postFilter.PostFilter(c.ctx, c.state, c.pod, reader) })
	if err == nil && !status.IsSuccess() && !status.IsRejected() {
		err = errorOf(status)
	}
	if err != nil {
		return framework.PostFilterResult{Failed: true, Message: err.Error()}
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

// nodeStatuses tells plugins how the filters answered, node by node.
type nodeStatuses struct {
	cycle *cycle
	codes map[string]decision.Code
	all   *decision.Status // of a PreFilter plugin; nil: none rejected the pod
	call  *framework.PostFilterCall
}

func newNodeStatuses(c *cycle, call *framework.PostFilterCall) *nodeStatuses {
	s := &nodeStatuses{cycle: c, call: call, all: call.Filters.PreFilter, codes: map[string]decision.Code{}}
	for name, r := range c.snapshot.rows { // any order: fills a map
		s.codes[name] = call.Filters.Code(r)
	}
	return s
}

// Get is how the node was rejected.
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

// blocker is why the row was rejected, while the plugin runs.
func (s *nodeStatuses) blocker(r table.Row) *decision.Blocker {
	if s.cycle.postFilter != s.call {
		return nil
	}
	return s.call.Filters.Run(r)
}

// NodesForStatusCode lists the nodes that were rejected with the code.
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
