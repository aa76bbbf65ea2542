package volumes

import (
	"math"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// followNode updates the CSINode and attachments of the row for a node that was added or
// removed; nil stands for no node. A new row gets its columns. A node that only changed has no
// effect.
func (x *Index) followNode(r table.Row, was, is *object.Node) {
	for len(x.attached) <= int(r) {
		x.attached, x.csiNodes, x.attachedTo = append(x.attached, nil), append(x.csiNodes, nil), append(x.attachedTo, nil)
		for _, c := range x.columns { // any order: each by itself
			c.Attached, c.Limits = append(c.Attached, 0), append(c.Limits, math.MaxInt32)
		}
	}
	switch {
	case was == nil && is != nil:
		x.setCSINode(r, table.Lookup[*object.CSINode](x.table, object.CSINodes, "", is.Name))
		x.reattach(r)
	case was != nil && is == nil:
		x.setCSINode(r, nil)
		x.detachAll(r)
	}
}

// follow updates the counts for an object that changed from was to is, and marks the rows
// concerned as changed; nil stands for none.
func (x *Index) follow(was, is object.Object) {
	either := is
	if either == nil {
		either = was
	}
	if was != nil && is != nil && sameVolumes(was, is) {
		return
	}
	name := either.Head().Name
	switch either.(type) {
	case *object.PersistentVolume:
		for at := range x.claimants[name] { // any order: each by itself
			x.resolve(at)
		}
		for node := range x.attachedNodes[name] { // any order: each by itself
			x.reattachNode(node)
		}
	case *object.PersistentVolumeClaim:
		x.followClaim(was, is)
	case *object.StorageClass:
		for at := range x.tracked.claims { // any order: each by itself
			x.resolveTracked(at)
		}
		for _, r := range x.table.All() {
			x.resolveRow(r)
		}
	case *object.CSINode:
		if r, ok := x.table.Find(name); ok {
			c, _ := is.(*object.CSINode)
			x.setCSINode(r, c)
			x.table.Touch(r)
		}
	case *object.VolumeAttachment:
		x.countAttachment(was, -1)
		x.countAttachment(is, 1)
		for _, o := range []object.Object{was, is} {
			if a, ok := o.(*object.VolumeAttachment); ok {
				x.reattachNode(a.Node)
			}
		}
	}
}

// sameVolumes reports whether two states of an object are equal in all that the volume counts
// depend on. It is false for a CSINode and for kinds that do not matter.
func sameVolumes(was, is object.Object) bool {
	switch o := is.(type) {
	case *object.PersistentVolume:
		p := was.(*object.PersistentVolume)
		return o.Source == p.Source && (o.Migrated == nil) == (p.Migrated == nil) && (o.Migrated == nil || o.Migrated.Source == p.Migrated.Source)
	case *object.PersistentVolumeClaim:
		p := was.(*object.PersistentVolumeClaim)
		return o.VolumeName == p.VolumeName && o.Class == p.Class && o.Owner == p.Owner
	case *object.StorageClass:
		p := was.(*object.StorageClass)
		return o.Provisioner == p.Provisioner && o.MigratedTo == p.MigratedTo
	case *object.VolumeAttachment:
		p := was.(*object.VolumeAttachment)
		return o.Attacher == p.Attacher && o.Node == p.Node && o.Volume == p.Volume
	}
	return false
}

// followClaim updates the counts for a PersistentVolumeClaim that changed from was to is;
// nil stands for none.
func (x *Index) followClaim(was, is object.Object) {
	for _, o := range []object.Object{was, is} {
		c, ok := o.(*object.PersistentVolumeClaim)
		if !ok {
			continue
		}
		x.nameClaim(c, o == is)
		if pl := x.table.Pod(c.Owner); pl != nil {
			x.resolveRow(pl.Row)
		}
	}
	if is == nil {
		is = was
	}
	x.resolve(claimName{is.Head().Namespace, is.Head().Name})
}

// nameClaim adds the claim to those of the PersistentVolume that it names. If add is false
// it removes the claim. A claim without a volume changes nothing.
func (x *Index) nameClaim(c *object.PersistentVolumeClaim, add bool) {
	if c.VolumeName == "" {
		return
	}
	at, list := claimName{c.Namespace, c.Name}, x.claimants[c.VolumeName]
	switch {
	case add && list == nil:
		x.claimants[c.VolumeName] = map[claimName]struct{}{at: {}}
	case add:
		list[at] = struct{}{}
	default:
		if delete(list, at); len(list) == 0 {
			delete(x.claimants, c.VolumeName)
		}
	}
}

// resolve finds anew which volume the claim is bound to, after the claim or its volume
// changed, and corrects the counts of tracked and placed pods that use it.
func (x *Index) resolve(at claimName) {
	x.resolveTracked(at)
	for _, c := range x.claims[at] {
		x.resolveRow(c.Row)
	}
	c := table.Lookup[*object.PersistentVolumeClaim](x.table, object.PersistentVolumeClaims, at.namespace, at.name)
	if c == nil {
		return
	}
	if pl := x.table.Pod(c.Owner); pl != nil { // the volume is an ephemeral one
		x.resolveRow(pl.Row)
	}
}

// resolveRow finds anew which volumes drivers attach for the pods on the row. If they
// differ it corrects the counts and marks the row as changed.
func (x *Index) resolveRow(r table.Row) {
	changed := false
	for _, pl := range x.table.Pods(r) {
		if len(pl.Pod.Volumes) == 0 {
			continue
		}
		if now := x.OfPod(pl.Pod); !slices.Equal(now, x.ofPod[pl]) {
			x.attach(pl, now)
			changed = true
		}
	}
	if changed {
		x.table.Touch(r)
	}
}

// countAttachment adds sign to the number of VolumeAttachments of a PersistentVolume to the
// node. o may be nil or another object.
func (x *Index) countAttachment(o object.Object, sign int) {
	a, ok := o.(*object.VolumeAttachment)
	if !ok || a.Volume == "" {
		return
	}
	nodes := x.attachedNodes[a.Volume]
	if nodes == nil {
		nodes = map[string]int{}
		x.attachedNodes[a.Volume] = nodes
	}
	if nodes[a.Node] += sign; nodes[a.Node] == 0 {
		if delete(nodes, a.Node); len(nodes) == 0 {
			delete(x.attachedNodes, a.Volume)
		}
	}
}

// reattachNode counts the volumes of the named node's VolumeAttachments again, after one
// of them changed, and marks its row as changed. It does nothing if there is no such node.
func (x *Index) reattachNode(name string) {
	if r, ok := x.table.Find(name); ok {
		x.reattach(r)
		x.table.Touch(r)
	}
}

// reattach counts the volumes of the VolumeAttachments of the row's node again.
func (x *Index) reattach(r table.Row) {
	x.detachAll(r)
	x.attachedTo[r] = x.appendAttached(x.attachedTo[r][:0], x.table.Name(r))
	for _, s := range x.attachedTo[r] {
		x.count(x.attachments, x.pods, s, r, 1)
	}
}

// detachAll subtracts the volumes of VolumeAttachments from the row's counts.
func (x *Index) detachAll(r table.Row) {
	for _, s := range x.attachedTo[r] {
		x.count(x.attachments, x.pods, s, r, -1)
	}
	x.attachedTo[r] = nil
}

// appendAttached appends the volumes that VolumeAttachments attach to the named node. Only
// those of CSI PersistentVolumes that exist are known.
func (x *Index) appendAttached(list []object.VolumeSource, node string) []object.VolumeSource {
	for o := range x.table.Objects().ByIndex(object.VolumeAttachments, node) {
		a := o.(*object.VolumeAttachment)
		pv := table.Lookup[*object.PersistentVolume](x.table, object.PersistentVolumes, "", a.Volume)
		if a.Attacher != "" && pv != nil && pv.Source.Driver != "" {
			list = append(list, object.VolumeSource{Driver: a.Attacher, Handle: pv.Source.Handle})
		}
	}
	return list
}
