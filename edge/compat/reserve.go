package compat

import (
	"context"
	"time"

	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// adaptReserve sets the native plugin's Reserve, Unreserve and Permit to functions that
// call the hosted plugin, as far as it implements them.
func (h *Host) adaptReserve(native *framework.Plugin, p *hostedPlugin) {
	if p.reserve != nil {
		native.Reserve = func(_ *table.Table, pod *object.Pod, node string) *decision.Status {
			return h.cycleOf(pod).reserve(p, node)
		}
		native.Unreserve = func(_ *table.Table, pod *object.Pod, node string) { h.cycleOf(pod).unreserve(p, node) }
	}
	if p.permit != nil {
		native.Permit = func(_ *table.Table, pod *object.Pod, node string) framework.PermitResult {
			return h.cycleOf(pod).permit(p, node)
		}
	}
}

// reserve calls the plugin's Reserve; nil is a success.
func (c *cycle) reserve(p *hostedPlugin, node string) *decision.Status {
	var status *fwk.Status
	pod := c.assumed(node)
	if err := c.call("Reserve", p.name, func() { status = p.reserve.Reserve(c.ctx, c.state, pod, node) }); err != nil {
		return failure(err)
	}
	return verdictOrFailure(status)
}

// verdictOrFailure converts a status: success is nil, a rejection stays, and any other
// code is an error.
func verdictOrFailure(s *fwk.Status) *decision.Status {
	if s.IsSuccess() || s.IsRejected() {
		return statusOf(s)
	}
	return failure(errorOf(s))
}

// leastUnreserve is how long the loop waits for Unreserve even if the step has no time
// left.
const leastUnreserve = 100 * time.Millisecond

// unreserve calls the plugin's Unreserve. The call has time of its own and a context that is not
// cancelled, since it comes after a failure. If the step has less than leastUnreserve left,
// unreserve raises that. Errors are logged.
func (c *cycle) unreserve(p *hostedPlugin, node string) {
	left := c.host.inStep()
	*left = max(*left, leastUnreserve)
	ctx, pod := context.WithoutCancel(c.ctx), c.assumed(node)
	if err := c.host.callOnce("", "Unreserve", p.name, func() { p.reserve.Unreserve(ctx, c.state, pod, node) }); err != nil {
		c.host.options.Logger.Error(err, "Plugin failed", "plugin", p.name, "pod", klog.KObj(pod), "operation", "Unreserve")
	}
}

// permit calls the plugin's Permit. Wait comes with the time for which the plugin may
// hold the pod.
func (c *cycle) permit(p *hostedPlugin, node string) framework.PermitResult {
	var status *fwk.Status
	var timeout time.Duration
	pod := c.assumed(node)
	err := c.call("Permit", p.name, func() { status, timeout = p.permit.Permit(c.ctx, c.state, pod, node) })
	switch {
	case err != nil:
		return framework.PermitResult{Status: failure(err)}
	case status.IsWait():
		return framework.PermitResult{Status: &decision.Status{Code: decision.Wait, Reasons: status.Reasons()}, Timeout: timeout}
	}
	return framework.PermitResult{Status: verdictOrFailure(status)}
}
