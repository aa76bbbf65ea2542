package volumebinding

import (
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Kept implements framework.Keeper, for snapshots of the machine. It returns the pod's
// plan: each volume followed by its claim, then the claims for which volumes are
// provisioned; nil for none.
func (b *binder) Kept(p *object.Pod) *framework.Kept {
	plan := b.plans[p.UID]
	if plan == nil {
		return nil
	}
	k := &framework.Kept{Done: plan.written}
	for _, bound := range plan.bound {
		k.Objects = append(k.Objects, framework.KeptObject{Object: bound.volume, Changed: bound.changed}, framework.KeptObject{Object: bound.claim})
	}
	for _, made := range plan.made {
		k.Objects = append(k.Objects, framework.KeptObject{Object: made.claim, Changed: made.changed, Driver: made.driver})
	}
	return k
}

// Keep implements framework.Keeper: it restores a plan that Kept returned.
func (b *binder) Keep(t *table.Table, p *object.Pod, k *framework.Kept) {
	plan := &plan{table: t, written: k.Done}
	for left := k.Objects; len(left) > 0; left = left[1:] {
		switch o := left[0].Object.(type) {
		case *object.PersistentVolume:
			plan.bound = append(plan.bound, binding{o, left[1].Object.(*object.PersistentVolumeClaim), left[0].Changed})
			left = left[1:]
		case *object.PersistentVolumeClaim:
			plan.made = append(plan.made, provision{claim: o, driver: left[0].Driver, changed: left[0].Changed})
		}
	}
	b.plans[p.UID] = plan
}
