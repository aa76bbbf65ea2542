// Package volumes keeps which volumes are on which rows: claims and disks that pods use
// there, and the volumes that CSI drivers attach there.
package volumes

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Index counts, by row, the volumes that pods and VolumeAttachments attach through CSI
// drivers, the claims that pods use, and their in-tree disks. A change that concerns one
// node touches the node's row in the table.
type Index struct {
	table *table.Table
	// ofPod are the volumes that CSI drivers attach for placed pods; pods without any are
	// left out.
	ofPod map[*table.Placed][]object.VolumeSource
	// pods counts, by volume and row, the placed pods that use the volume, attachments the
	// VolumeAttachments of it.
	pods, attachments users[object.VolumeSource]
	claims            users[claimName]        // pods' volumes by claim and row, ephemeral ones left out
	disks             users[diskName]         // pods' in-tree disks by row
	attached          [][]driverVolumes       // by row: number of volumes for each driver
	csiNodes          []*object.CSINode       // by row, nil without a node
	attachedTo        [][]object.VolumeSource // by row: volumes of VolumeAttachments

	// claimants are the claims that name a PersistentVolume, and attachedNodes the number
	// of its VolumeAttachments by node, both by the volume's name.
	claimants     map[string]map[claimName]struct{}
	attachedNodes map[string]map[string]int

	tracked tracked
	columns map[string]*DriverColumns // by driver
}

// claimName identifies a PersistentVolumeClaim.
type claimName struct{ namespace, name string }

// index registers the Index, so that every table has one.
var index = table.Follow(func(t *table.Table) table.Follower[*Index] {
	x := &Index{
		table: t, ofPod: map[*table.Placed][]object.VolumeSource{},
		pods: users[object.VolumeSource]{}, attachments: users[object.VolumeSource]{}, claims: users[claimName]{}, disks: users[diskName]{},
		claimants: map[string]map[claimName]struct{}{}, attachedNodes: map[string]map[string]int{},
		tracked: tracked{claims: map[claimName]object.VolumeSource{}, inline: map[object.VolumeSource]bool{}, volumes: map[object.VolumeSource]int{}, swept: t.Epoch()},
	}
	return table.Follower[*Index]{Index: x, Came: x.came, Left: x.left, NodeChanged: x.followNode, ObjectChanged: x.follow, Check: x.check}
})

// Of returns the table's index of the volumes that pods and attachments use.
func Of(t *table.Table) *Index { return index.Of(t) }

// driverVolumes is the number of volumes that a CSI driver attaches to one node, each
// counted once however many pods use it, to compare with the driver's limit.
type driverVolumes struct {
	driver  string
	volumes int
}

// OfPod returns the volumes that CSI drivers attach for the pod, each once. An in-tree
// volume that is migrated to a driver counts as the driver's. As in kube-scheduler a volume that
// cannot be determined is left out.
func (x *Index) OfPod(p *object.Pod) (list []object.VolumeSource) {
	for i := range p.Volumes {
		v := &p.Volumes[i]
		var source object.VolumeSource
		if v.Claimed {
			if c := table.Lookup[*object.PersistentVolumeClaim](x.table, object.PersistentVolumeClaims, p.Namespace, v.Claim); c != nil && (!v.Ephemeral || c.Owner == p.UID) {
				source = x.volumeOf(c)
			}
		} else if v.Migrated != nil {
			source = v.Migrated.Source
		}
		if source.Attachable() && !slices.Contains(list, source) {
			list = append(list, source)
		}
	}
	return list
}

// volumeOf returns the volume that the claim is bound to, or the one that is to be
// provisioned for it; zero if neither is known.
func (x *Index) volumeOf(c *object.PersistentVolumeClaim) object.VolumeSource {
	v := table.Lookup[*object.PersistentVolume](x.table, object.PersistentVolumes, "", c.VolumeName)
	switch {
	case c.VolumeName == "" || v == nil:
		return x.volumeToProvision(c)
	case v.Migrated != nil:
		return v.Migrated.Source
	}
	return v.Source
}

// volumeToProvision returns the volume that the claim's storage class will provision, zero
// if there is no class. Its handle, which the driver has not chosen yet, differs from all
// others.
func (x *Index) volumeToProvision(c *object.PersistentVolumeClaim) object.VolumeSource {
	class := table.Lookup[*object.StorageClass](x.table, object.StorageClasses, "", c.Class)
	if c.Class == "" || class == nil {
		return object.VolumeSource{}
	}
	return object.VolumeSource{Driver: cmp.Or(class.MigratedTo, class.Provisioner), Handle: "\x00" + c.Key()}
}

// CSINode returns the CSINode of the row's node, nil for none.
func (x *Index) CSINode(r table.Row) *object.CSINode { return x.csiNodes[r] }

// Attached returns how many volumes the driver attaches to the row's node: those
// of the pods there and those of VolumeAttachments, each counted once.
func (x *Index) Attached(r table.Row, driver string) int {
	for i := range x.attached[r] {
		if a := &x.attached[r][i]; a.driver == driver {
			return a.volumes
		}
	}
	return 0
}

// PodsHave reports whether a pod on the row uses the volume through a CSI driver.
func (x *Index) PodsHave(r table.Row, v object.VolumeSource) bool { return x.pods[v].of(r) > 0 }

// RowsWith calls visit with each row on which pods use the volume, ascending, until visit
// returns false.
func (x *Index) RowsWith(v object.VolumeSource, visit func(table.Row) bool) {
	for _, c := range x.pods[v] {
		if !visit(c.Row) {
			return
		}
	}
}

// ClaimUsers returns how many volumes of pods on existing nodes use the claim. Ephemeral
// volumes do not count, since their claims cannot be shared.
func (x *Index) ClaimUsers(namespace, name string) (n int) {
	for _, c := range x.claims[claimName{namespace, name}] {
		if x.table.Node(c.Row) != nil {
			n += int(c.N)
		}
	}
	return n
}

// came adds the volumes, claims and disks of a pod that was placed. The table calls it.
func (x *Index) came(pl *table.Placed) {
	if len(pl.Pod.Volumes) == 0 {
		return
	}
	x.countClaims(pl, 1)
	x.countDisks(pl, 1)
	x.attach(pl, x.OfPod(pl.Pod))
}

// left subtracts the volumes, claims and disks of a pod that was removed from its row. The
// table calls it.
func (x *Index) left(pl *table.Placed) {
	if len(pl.Pod.Volumes) == 0 {
		return
	}
	x.countClaims(pl, -1)
	x.countDisks(pl, -1)
	x.attach(pl, nil)
}

// countClaims adds the claims of a placed pod to the counts (sign 1) or subtracts them (-1).
// Those of ephemeral volumes are left out.
func (x *Index) countClaims(pl *table.Placed, sign int32) {
	for i := range pl.Pod.Volumes {
		if v := &pl.Pod.Volumes[i]; v.Claimed && !v.Ephemeral {
			x.claims.add(claimName{pl.Pod.Namespace, v.Claim}, pl.Row, sign)
		}
	}
}

// attach replaces the volumes that drivers attach for a placed pod, and updates the counts.
// nil means none.
func (x *Index) attach(pl *table.Placed, list []object.VolumeSource) {
	for _, s := range x.ofPod[pl] {
		x.count(x.pods, x.attachments, s, pl.Row, -1)
	}
	for _, s := range list {
		x.count(x.pods, x.attachments, s, pl.Row, 1)
	}
	if len(list) > 0 {
		x.ofPod[pl] = list
	} else {
		delete(x.ofPod, pl)
	}
}

// count adds sign to the users of volume s on the row in one of x.pods and x.attachments;
// other is the other one. A volume is attached to the node while either has users of it,
// so the number that the driver attaches changes with the first of them and the last.
func (x *Index) count(in, other users[object.VolumeSource], s object.VolumeSource, r table.Row, sign int32) {
	if before := in.add(s, r, sign); (before == 0 || before+sign == 0) && other[s].of(r) == 0 {
		x.countDriver(r, s.Driver, int(sign))
	}
}

// countDriver adds n to the number of volumes that the driver attaches to the row's node.
func (x *Index) countDriver(r table.Row, driver string, n int) {
	list := x.attached[r]
	i := slices.IndexFunc(list, func(d driverVolumes) bool { return d.driver == driver })
	if i < 0 {
		i, list = len(list), append(list, driverVolumes{driver: driver})
	}
	list[i].volumes += n
	if c := x.columns[driver]; c != nil {
		c.Attached[r] = int32(list[i].volumes) // #nosec G115 -- of pods and attachments
	}
	if list[i].volumes == 0 {
		list = slices.Delete(list, i, i+1)
	}
	x.attached[r] = list
}
