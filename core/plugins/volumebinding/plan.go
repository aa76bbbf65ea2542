package volumebinding

import (
	"cmp"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// binder holds the plan of each pod from Reserve to the end of its binding.
type binder struct {
	timeout time.Duration       // bindTimeoutSeconds
	plans   map[types.UID]*plan // by pod
}

// plan is the volumes to bind and to provision for a pod on its node. They are assumed at Reserve,
// in the table, and written at PreBind.
type plan struct {
	table   *table.Table
	bound   []binding
	made    []provision
	written bool // the reply to the writes has come: forget no longer undoes what is assumed
}

// binding is a volume to be bound to a claim, with its claimRef as it is to be written. changed is
// set if the API's claimRef does not have the claim's UID yet.
type binding struct {
	volume  *object.PersistentVolume
	claim   *object.PersistentVolumeClaim
	changed bool
}

// provision is a claim for which the CSI driver, or provisioner, is to provision a volume on the
// node that the claim has selected. changed is set if the API's claim has not selected it yet.
type provision struct {
	claim   *object.PersistentVolumeClaim
	driver  string
	changed bool
}

// bind adds to the plan that claim c is bound to volume v. It changes a copy of v.
func (p *plan) bind(v *object.PersistentVolume, c *object.PersistentVolumeClaim) {
	ours := *v
	ours.ByController = v.ByController || !v.Keeps(c)
	ours.Claim = &object.ClaimReference{Namespace: c.Namespace, Name: c.Name, UID: c.UID}
	p.bound = append(p.bound, binding{&ours, c, v.Claim == nil || v.Claim.UID != c.UID})
}

// provision adds to the plan that a volume is provisioned for the claim on the node. It changes a
// copy of the claim.
func (p *plan) provision(c *claim, node string) {
	ours := *c.PersistentVolumeClaim
	ours.SelectedNode = node
	driver := cmp.Or(c.class.MigratedTo, c.class.Provisioner)
	p.made = append(p.made, provision{&ours, driver, c.SelectedNode != node})
}

// reserve chooses volumes for the pod on the node and assumes them, so that no other pod gets them.
// It records the choice as the pod's plan. It does nothing for a pod whose claims are all bound,
// and fails if the node does not suit the pod's claims any more.
func (b *binder) reserve(t *table.Table, p *object.Pod, node string) *decision.Status {
	if !p.HasPVCs(true) {
		return nil
	}
	pc, s := podClaimsOf(t, p)
	if s != nil {
		return s
	}
	if len(pc.toProvision) == 0 && len(pc.toMatch) == 0 {
		return nil
	}
	row, ok := t.Find(node)
	if !ok {
		return failed(fmt.Errorf("node %q is gone", node))
	}
	var chosen choice
	if v := pc.on(t, row, t.Node(row), &chosen); v != framework.Fits {
		return failed(fmt.Errorf("the volumes of pod %s do not suit node %q any more", p.Key(), node))
	}
	plan := &plan{table: t}
	for _, b := range chosen.bound {
		plan.bind(b.volume, b.claim)
	}
	for _, m := range chosen.made {
		plan.provision(m.claim, node)
	}
	for _, bound := range plan.bound {
		t.Objects().Assume(bound.volume)
	}
	for _, made := range plan.made {
		t.Objects().Assume(made.claim)
	}
	b.plans[p.UID] = plan
	return nil
}

// unreserve drops the pod's plan, and what the plan assumed and did not write.
func (b *binder) unreserve(_ *table.Table, p *object.Pod, _ string) { b.forget(p.UID) }

// postBind drops the plan of a pod that was bound.
func (b *binder) postBind(p *object.Pod, _ string) { b.forget(p.UID) }

// forget removes the pod's plan. Assumptions that were not written end; what was written
// stays assumed until the API shows it.
func (b *binder) forget(pod types.UID) {
	plan := b.plans[pod]
	delete(b.plans, pod)
	if plan == nil || plan.written {
		return
	}
	for _, bound := range plan.bound {
		plan.table.Objects().Restore(&bound.volume.Meta)
	}
	for _, made := range plan.made {
		plan.table.Objects().Restore(&made.claim.Meta)
	}
}

// preBind returns the writes of the pod's plan, none without a plan. As in kube-scheduler they
// include what the API has already: a failure shows that it has changed.
func (b *binder) preBind(t *table.Table, p *object.Pod, _ string) ([]framework.Write, *decision.Status) {
	plan := b.plans[p.UID]
	if plan == nil {
		return nil, nil
	}
	var writes []framework.Write
	for _, bound := range plan.bound {
		writes = append(writes, bound.write())
	}
	for _, made := range plan.made {
		writes = append(writes, made.write(t))
	}
	return writes, nil
}

// write returns the write that reserves the volume for the claim (claimRef). The volume
// controller then binds them.
func (b *binding) write() framework.Write {
	c := b.claim
	patch := map[string]any{"spec": map[string]any{"claimRef": map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": c.Namespace, "name": c.Name,
		"uid": c.UID, "resourceVersion": c.Version,
	}}}
	if b.volume.ByController {
		patch["metadata"] = map[string]any{"annotations": map[string]any{"pv.kubernetes.io/bound-by-controller": "yes"}}
	}
	v := *b.volume
	v.Available = false
	v.Version = later(v.Version)
	return framework.Write{Object: b.volume.Meta, Patch: patch, Result: []object.Object{&v, completed(c, v.Name)}}
}

// write returns the write that sets the claim's selected-node annotation. The driver
// then provisions a volume, and the volume controller binds it.
func (m *provision) write(t *table.Table) framework.Write {
	c := m.claim
	v := &object.PersistentVolume{
		Meta:  object.Meta{Kind: object.PersistentVolumes, Name: "pvc-" + string(c.UID), UID: c.UID, Version: "1"},
		Class: c.Class, Bytes: c.Bytes, Modes: c.Modes, VolumeMode: c.VolumeMode, Attributes: c.Attributes, ByController: true,
		Claim:  &object.ClaimReference{Namespace: c.Namespace, Name: c.Name, UID: c.UID},
		Source: object.VolumeSource{Driver: m.driver, Handle: "pvc-" + string(c.UID)},
	}
	if same := reach(t, c.SelectedNode, m.driver); len(same) > 0 {
		v.Nodes = match.NewNodeSelector(nil, &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: same}}})
		v.Pin = &object.LabelPin{Key: same[0].Key, Values: same[0].Values}
	}
	return framework.Write{Object: c.Meta,
		Patch: map[string]any{"metadata": map[string]any{"annotations": map[string]any{
			"volume.kubernetes.io/selected-node": c.SelectedNode}}},
		Result: []object.Object{v, completed(c, v.Name)}}
}

// reach returns requirements for the nodes that reach a volume which the driver
// provisions on the node: equal values of the driver's topology keys, as far as the
// node has these labels. An empty list means all nodes.
func reach(t *table.Table, node, driver string) (same []v1.NodeSelectorRequirement) {
	on := table.Lookup[*object.CSINode](t, object.CSINodes, "", node)
	row, ok := t.Find(node)
	if on == nil || !ok {
		return nil
	}
	for _, key := range on.TopologyKeys(driver) {
		if value, ok := t.Node(row).Labels[key]; ok {
			same = append(same, v1.NodeSelectorRequirement{Key: key, Operator: v1.NodeSelectorOpIn, Values: []string{value}})
		}
	}
	return same
}

// completed returns a copy of the claim as the volume controller leaves it: bound to
// the volume. The simulation uses it.
func completed(c *object.PersistentVolumeClaim, volume string) object.Object {
	done := *c
	done.VolumeName, done.BindCompleted = volume, true
	done.Version = later(c.Version)
	return &done
}

// later returns a version that differs from the given one.
func later(version string) string { return version + "+" }
