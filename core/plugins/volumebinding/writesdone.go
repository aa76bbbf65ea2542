package volumebinding

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// writesDone returns nil if the API shows all claims of the pod's plan bound, or if it has no plan.
// It returns Wait if some are not bound yet, and an Error if the node is gone or another writer has
// undone what was written. The first call records that the plan was written.
func (b *binder) writesDone(t *table.Table, p *object.Pod, node string) *decision.Status {
	plan := b.plans[p.UID]
	if plan == nil {
		return nil
	}
	if !plan.written {
		plan.markWritten(t)
	}
	row, ok := t.Find(node)
	if !ok {
		return failed(fmt.Errorf("binding volumes: failed to get node %q: it is gone", node))
	}
	done := true
	for i := range plan.bound {
		bound, err := plan.bound[i].done(t, t.Node(row))
		if err != nil {
			return failed(fmt.Errorf("binding volumes: %w", err))
		}
		done = done && bound
	}
	for i := range plan.made {
		made, err := plan.made[i].done(t, t.Node(row))
		if err != nil {
			return failed(fmt.Errorf("binding volumes: %w", err))
		}
		done = done && made
	}
	if !done {
		return &decision.Status{Code: decision.Wait}
	}
	return nil
}

// markWritten records that the reply to the plan's writes has come. What the plan assumes then
// lasts until the API shows it.
func (p *plan) markWritten(t *table.Table) {
	p.written = true
	for i := range p.bound {
		t.Objects().Written(&p.bound[i].volume.Meta)
	}
	for i := range p.made {
		t.Objects().Written(&p.made[i].claim.Meta)
	}
}

// done reports whether the API shows the claim bound. It returns an error if the claim cannot be
// bound to the volume any more, or node n does not reach the volume.
func (b *binding) done(t *table.Table, n *object.Node) (bool, error) {
	v, _ := t.Objects().Shown(object.PersistentVolumes, "", b.volume.Name).(*object.PersistentVolume)
	if v == nil {
		return false, fmt.Errorf("failed to check binding: persistentvolume %q not found", b.volume.Name)
	}
	c, _ := t.Objects().Shown(object.PersistentVolumeClaims, b.claim.Namespace, b.claim.Name).(*object.PersistentVolumeClaim)
	switch {
	case c == nil:
		return false, fmt.Errorf("failed to check binding: persistentvolumeclaim %q not found", b.claim.Name)
	case b.changed && v.Version == b.volume.Version:
		return false, nil // what was written has not come back yet
	case !accessible(table.Lookup[*object.CSINode](t, object.CSINodes, "", n.Name), v, n):
		return false, fmt.Errorf("pv %q node affinity doesn't match node %q: no matching NodeSelectorTerms", v.Name, n.Name)
	case v.Claim == nil || v.Claim.UID == "":
		return false, fmt.Errorf("ClaimRef got reset for pv %q", v.Name)
	}
	return c.Bound(), nil
}

// done reports whether the API shows the claim bound to a volume that node n reaches. It returns an
// error if the claim is gone, has selected another node, or got a volume that n does not reach.
func (m *provision) done(t *table.Table, n *object.Node) (bool, error) {
	c, _ := t.Objects().Shown(object.PersistentVolumeClaims, m.claim.Namespace, m.claim.Name).(*object.PersistentVolumeClaim)
	switch {
	case c == nil:
		return false, fmt.Errorf("failed to check provisioning pvc: persistentvolumeclaim %q not found", m.claim.Name)
	case m.changed && c.Version == m.claim.Version:
		return false, nil
	case c.SelectedNode != n.Name:
		return false, fmt.Errorf("provisioning failed for PVC %q", c.Name)
	case c.VolumeName == "":
		return false, nil
	}
	v, _ := t.Objects().Shown(object.PersistentVolumes, "", c.VolumeName).(*object.PersistentVolume)
	switch {
	case v == nil: // on its way, or the claim will lose it
		return false, nil
	case !accessible(table.Lookup[*object.CSINode](t, object.CSINodes, "", n.Name), v, n):
		return false, fmt.Errorf("pv %q node affinity doesn't match node %q: no matching NodeSelectorTerms", v.Name, n.Name)
	}
	return c.Bound(), nil
}
