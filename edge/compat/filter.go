package compat

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// firstError is where the verdicts of errors begin. Lower ones are rejections.
const firstError framework.Verdict = 1 << 62

// adaptFilter sets the native plugin's PreFilter, Filter, Explain and PostFilter to
// functions that call the hosted plugin, as far as it implements them.
func (h *Host) adaptFilter(native *framework.Plugin, p *hostedPlugin) {
	if p.preFilter != nil {
		native.PreFilter = func(t *table.Table, pod *object.Pod) framework.PreFilterResult {
			return h.cycleOf(pod).preFilter(p)
		}
	}
	if p.filter != nil {
		native.ErrorsFrom = firstError
		native.Filter = func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
			h.cycleOf(in.Pod).filter(p, in.Table, rows, out)
		}
		native.Explain = func(in *framework.Input, _ table.Row, v framework.Verdict) decision.Blocker {
			return h.cycleOf(in.Pod).explain(v)
		}
	}
	if p.postFilter != nil {
		native.PostFilter = func(call *framework.PostFilterCall) framework.PostFilterResult {
			return h.cycleOf(call.Pod).runPostFilter(p, call)
		}
	}
}

// preFilter calls the plugin's PreFilter for the attempt's pod, with all nodes of the snapshot. It
// records a Skip in the CycleState, too. NodeNames is nil if the plugin admits all nodes.
func (c *cycle) preFilter(p *hostedPlugin) framework.PreFilterResult {
	var result *fwk.PreFilterResult
	var status *fwk.Status
	err := c.call("PreFilter", p.name, func() {
		result, status = p.preFilter.PreFilter(c.ctx, c.state, c.pod, slices.Clone(c.snapshot.nodes()))
	})
	switch {
	case err != nil:
		return framework.PreFilterResult{Status: failure(err)}
	case status.IsSkip():
		skipped := sets.New(p.name)
		c.state.SetSkipFilterPlugins(skipped.Union(c.state.GetSkipFilterPlugins()))
		return framework.PreFilterResult{Skip: true}
	}
	out := framework.PreFilterResult{Status: preFilterStatus(status)}
	if !result.AllNodes() {
		out.NodeNames = slices.Sorted(slices.Values(result.NodeNames.UnsortedList()))
		if out.NodeNames == nil {
			out.NodeNames = []string{}
		}
	}
	return out
}

// preFilterStatus converts the status of PreFilter as kube-scheduler does: success is nil,
// Unschedulable and UnschedulableAndUnresolvable stay, all others are errors.
func preFilterStatus(s *fwk.Status) *decision.Status {
	out := statusOf(s)
	if out == nil || out.Code == decision.Unschedulable || out.Code == decision.UnschedulableAndUnresolvable {
		return out
	}
	return &decision.Status{Code: decision.Error, Reasons: out.Reasons, Err: s.AsError()}
}

// filter calls the plugin's Filter for the nodes of the rows, all in one call of a worker, and
// writes a verdict for each row to out. A row without a node fits. If the call fails, all rows get
// the verdict of that error.
func (c *cycle) filter(p *hostedPlugin, t *table.Table, rows []table.Row, out []framework.Verdict) {
	x := c.host.asked.take(len(rows))
	for i, r := range rows {
		if t.Node(r) == nil {
			continue
		}
		var err error
		if x.nodes[i], x.states[i], err = c.at(t, r); err != nil {
			c.failAll(err, out)
			return
		}
	}
	err := c.call("Filter", p.name, func() {
		each(c.host.Hosts, x.nodes, func(i int, n *nodeInfo) {
			x.statuses[i] = p.filter.Filter(c.ctx, x.states[i], c.pod, n)
		})
	})
	if err != nil {
		c.failAll(err, out)
		return
	}
	for i, s := range x.statuses {
		out[i] = c.verdict(s)
	}
	c.host.asked.release(x)
}

// failAll sets all verdicts to that of the error.
func (c *cycle) failAll(err error, out []framework.Verdict) {
	v := c.number("error "+err.Error(), firstError, failure(err))
	for i := range out {
		out[i] = v
	}
}

// verdict returns the verdict for a status of Filter: Fits for a success, else a number
// that equal statuses of the attempt share.
func (c *cycle) verdict(s *fwk.Status) framework.Verdict {
	switch {
	case s.IsSuccess():
		return framework.Fits
	case s.IsRejected():
		if last := c.rejection; last == nil || s.Code() != last.Code() || !slices.Equal(s.Reasons(), last.Reasons()) {
			c.rejection, c.rejectionNumber = s, c.number(s.Code().String()+"\x00"+strings.Join(s.Reasons(), "\x00"), 0, statusOf(s))
		}
		return c.rejectionNumber
	}
	err := s.AsError()
	if err == nil {
		err = fmt.Errorf("%s", s.Code())
	}
	return c.number("error "+err.Error(), firstError, failure(err))
}

// number returns the verdict that stands for the key. A new key gets the next number above from,
// and stands for s. from is 0 for rejections and firstError for errors.
func (c *cycle) number(key string, from framework.Verdict, s *decision.Status) framework.Verdict {
	v, known := c.numbers[key]
	if !known {
		if c.numbers == nil {
			c.numbers = map[string]framework.Verdict{}
		}
		c.statuses = append(c.statuses, s)
		v = from + framework.Verdict(len(c.statuses))
		c.numbers[key] = v
	}
	return v
}

// explain returns the code and reasons of the status that a verdict of filter stands for; an error
// if the attempt does not have the status any more.
func (c *cycle) explain(v framework.Verdict) decision.Blocker {
	if v >= firstError {
		v -= firstError
	}
	if v == 0 || int(v) > len(c.statuses) {
		return decision.Blocker{Code: decision.Error, Reasons: []string{"the plugin's answer is not known any more"}}
	}
	s := c.statuses[v-1]
	return decision.Blocker{Code: s.Code, Reasons: s.Reasons}
}
