package engine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
)

// rejectWhole asks RejectPod of the profile's plugins and sets pre.rejected and Rejected if one
// rejects the pod. It does nothing if a PreFilter plugin has rejected the pod for good.
func (d *decider) rejectWhole(nominated Nominator) {
	if d.Rejected != nil && d.Rejected.Code != decision.Unschedulable {
		return
	}
	if s := d.rejection(nominated); s != nil {
		d.pre.rejected, d.Rejected = s, s
		d.keepWithin() // for PostFilter
	}
}

// rejection returns the status with which the first RejectPod rejects the pod, with the
// table as it is now; nil if none does.
func (x *feasibility) rejection(nominated Nominator) *decision.Status {
	for _, pl := range x.view.keys.Profile.RejectPod {
		if s, _ := pl.RejectPod(x.engine.table, x.pod, x.allNominated(nominated)); s != nil {
			s.Plugin = pl.Name
			return s
		}
	}
	return nil
}

// depends reports whether what a RejectPod says of the pod depends on other pods.
func (x *feasibility) depends() bool {
	return slices.ContainsFunc(x.view.keys.Profile.RejectPod, func(pl *framework.Plugin) bool {
		_, depends := pl.RejectPod(x.engine.table, x.pod, x.allNominated(nil))
		return depends
	})
}

// allNominated returns the pods that are nominated to nodes, with the revision of what the list
// depends on; the zero value if nominated is nil.
func (x *feasibility) allNominated(nominated Nominator) quota.Nominated {
	if nominated == nil {
		return quota.Nominated{}
	}
	_, now, _ := nominated.Renominated(0)
	return quota.Nominated{Revision: quota.Revision{Nominations: now, Nodes: x.engine.table.NodeRevision()}, All: func(yield func(*object.Pod) bool) {
		for _, n := range x.engine.nominated.Follow(x.engine.table, nominated) {
			for _, p := range n.Pods {
				if !yield(p) {
					return
				}
			}
		}
	}}
}
