package compat

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// trial is a copy of a node on which pods were added or removed, with a copy of the CycleState that
// PreFilterExtensions have updated. Preemption tries one set of pods after the other on a node: the
// trial is changed from each set to the next.
type trial struct {
	row   table.Row
	state fwk.CycleState
	info  *nodeInfo
	pods  map[types.UID]*object.Pod // those on info
	err   error                     // of PreFilterExtensions; the trial is not used again then
}

// at returns the row's node as the table has it now, and the matching state. If the table is being
// tried with other pods (preemption, nominated pods), these are copies, which plugins'
// PreFilterExtensions have updated. It returns an error if PreFilterExtensions fail.
func (c *cycle) at(t *table.Table, r table.Row) (*nodeInfo, fwk.CycleState, error) {
	if !t.Trying() {
		return c.snapshot.at(r), c.state, nil
	}
	if c.tried == nil || c.tried.row != r || c.tried.err != nil {
		c.tried = c.newTrial(r)
	}
	x := c.tried
	var gone []types.UID
	var come []*podInfo
	now := map[types.UID]bool{}
	for _, pl := range t.Pods(r) {
		now[pl.Pod.UID] = true
		if x.pods[pl.Pod.UID] == nil {
			come = append(come, newPodInfo(pl.Pod, t.Name(r)))
		}
	}
	for _, p := range x.info.pods {
		if uid := p.GetPod().UID; !now[uid] {
			gone = append(gone, uid)
		}
	}
	if len(gone)+len(come) > 0 {
		if err := c.call("PreFilterExtensions", c.host.extended(), func() { x.err = c.shift(x, gone, come) }); err != nil {
			c.tried = nil // its goroutine may still be at it
			return nil, nil, err
		}
	}
	return x.info, x.state, x.err
}

// newTrial returns a trial of the row's node as it is in the snapshot. Its state is that of the
// attempt, which shift copies.
func (c *cycle) newTrial(r table.Row) *trial {
	x := &trial{row: r, info: c.snapshot.at(r).copy(), state: c.state, pods: map[types.UID]*object.Pod{}}
	for _, p := range x.info.pods {
		if info, ok := p.(*podInfo); ok {
			x.pods[info.object.UID] = info.object
		}
	}
	return x
}

// shift removes the pods gone from the trial's node, adds come, and calls the plugins'
// PreFilterExtensions for each. It stops at the first failure.
func (c *cycle) shift(x *trial, gone []types.UID, come []*podInfo) error {
	if x.state == c.state {
		x.state = c.state.Clone()
	}
	for _, uid := range gone {
		for _, p := range x.info.pods {
			if p.GetPod().UID != uid {
				continue
			}
			if err := x.info.RemovePod(klog.FromContext(c.ctx), p.GetPod()); err != nil {
				return err
			}
			if s := c.removePod(x.state, p, x.info); !s.IsSuccess() {
				return s.AsError()
			}
			break
		}
		delete(x.pods, uid)
	}
	for _, p := range come {
		x.info.AddPodInfo(p)
		x.pods[p.object.UID] = p.object
		if s := c.addPod(x.state, p, x.info); !s.IsSuccess() {
			return s.AsError()
		}
	}
	return nil
}

// addPod calls AddPod of the hosted PreFilter plugins that did not skip the attempt, for a pod p
// that was added to n.
func (c *cycle) addPod(state fwk.CycleState, p fwk.PodInfo, n fwk.NodeInfo) *fwk.Status {
	return c.extend(state, "AddPod", func(x fwk.PreFilterExtensions) *fwk.Status { return x.AddPod(c.ctx, state, c.pod, p, n) })
}

// removePod calls RemovePod of the hosted PreFilter plugins that did not skip the attempt, for a
// pod p that was removed from n.
func (c *cycle) removePod(state fwk.CycleState, p fwk.PodInfo, n fwk.NodeInfo) *fwk.Status {
	return c.extend(state, "RemovePod", func(x fwk.PreFilterExtensions) *fwk.Status { return x.RemovePod(c.ctx, state, c.pod, p, n) })
}

// extend calls tell for the PreFilterExtensions of each enabled plugin that was not
// skipped. It stops at the first failure; what names the method in its error.
func (c *cycle) extend(state fwk.CycleState, what string, tell func(fwk.PreFilterExtensions) *fwk.Status) *fwk.Status {
	for _, pl := range c.host.at(pointPreFilter) {
		if state.GetSkipFilterPlugins().Has(pl.name) {
			continue
		}
		x := pl.preFilter.PreFilterExtensions()
		if x == nil {
			continue
		}
		if s := tell(x); !s.IsSuccess() {
			err := s.AsError()
			if err == nil {
				err = errors.New(s.Code().String())
			}
			return fwk.AsStatus(fmt.Errorf("running %s on PreFilter plugin %q: %w", what, pl.name, err))
		}
	}
	return nil
}
