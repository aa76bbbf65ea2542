package table

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// volumeCounts follows claims, PersistentVolumes, VolumeAttachments and CSINodes, so
// that nobody has to look behind the claims of all pods on a node to know what is
// attached there. A change of what concerns one node dirties the node's row.
type volumeCounts struct {
	// pods are, by volume, the rows of placed pods that have it; attachments those
	// of nodes that a VolumeAttachment attaches it to.
	pods, attachments map[object.VolumeSource]rowCounts
	disks             map[diskName]rowCounts  // rows of placed pods with such a disk
	attached          [][]driverVolumes       // by row
	csiNodes          []*object.CSINode       // by row
	attachedTo        [][]object.VolumeSource // by row, what VolumeAttachments attach

	// claimants are the claims that name a PersistentVolume, and attachedNodes the
	// nodes that VolumeAttachments of it name.
	claimants     map[string]map[objectName]struct{}
	attachedNodes map[string]map[string]int

	tracked trackedVolumes

	columns map[string]*DriverColumns // by driver
}

// driverVolumes is how many volumes a driver attaches, each counted once.
type driverVolumes struct {
	driver  string
	volumes int
}

func newVolumes() volumeCounts {
	return volumeCounts{
		pods: map[object.VolumeSource]rowCounts{}, attachments: map[object.VolumeSource]rowCounts{}, disks: map[diskName]rowCounts{},
		claimants: map[string]map[objectName]struct{}{}, attachedNodes: map[string]map[string]int{},
		tracked: trackedVolumes{claims: map[objectName]object.VolumeSource{}, inline: map[object.VolumeSource]bool{}, volumes: map[object.VolumeSource]int{}},
	}
}

// VolumesOf lists the volumes that CSI drivers attach for the pod, each once. An
// in-tree volume that a driver may serve is the driver's. What cannot be found out
// of a volume leaves it out, as in v1.36.
func (t *Table) VolumesOf(p *object.Pod) (list []object.VolumeSource) {
	for i := range p.Volumes {
		v := &p.Volumes[i]
		var source object.VolumeSource
		if v.Claimed {
			if c := Lookup[*object.PersistentVolumeClaim](t, object.PersistentVolumeClaims, p.Namespace, v.Claim); c != nil && (!v.Ephemeral || c.Owner == p.UID) {
				source = t.volumeOf(c)
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

// volumeOf returns the volume that the claim has, or will be given.
func (t *Table) volumeOf(c *object.PersistentVolumeClaim) object.VolumeSource {
	v := Lookup[*object.PersistentVolume](t, object.PersistentVolumes, "", c.VolumeName)
	switch {
	case c.VolumeName == "" || v == nil:
		return t.volumeToProvision(c)
	case v.Migrated != nil:
		return v.Migrated.Source
	}
	return v.Source
}

// volumeToProvision returns the volume that the claim's class will give it. Its handle,
// which no driver has chosen yet, is like no other.
func (t *Table) volumeToProvision(c *object.PersistentVolumeClaim) object.VolumeSource {
	class := Lookup[*object.StorageClass](t, object.StorageClasses, "", c.Class)
	if c.Class == "" || class == nil {
		return object.VolumeSource{}
	}
	return object.VolumeSource{Driver: cmp.Or(class.MigratedTo, class.Provisioner), Handle: "\x00" + c.Key()}
}

// CSINode returns what is known of the CSI drivers on the row's node, nil for nothing.
func (t *Table) CSINode(r Row) *object.CSINode { return t.volumes.csiNodes[r] }

// AttachedVolumes returns how many volumes the driver attaches to the row's node: those
// of the pods there and those of VolumeAttachments, each counted once.
func (t *Table) AttachedVolumes(r Row, driver string) int {
	for i := range t.volumes.attached[r] {
		if a := &t.volumes.attached[r][i]; a.driver == driver {
			return a.volumes
		}
	}
	return 0
}

// PodsHaveVolume reports whether a pod on the row has the volume.
func (t *Table) PodsHaveVolume(r Row, v object.VolumeSource) bool { return t.volumes.pods[v].of(r) > 0 }

// RowsWithVolume calls visit with each row on which pods have the volume, until it
// returns false.
func (t *Table) RowsWithVolume(v object.VolumeSource, visit func(Row) bool) {
	for _, c := range t.volumes.pods[v] {
		if !visit(c.Row) {
			return
		}
	}
}

// countVolumes counts the volumes of a placed pod (sign 1) or takes them off (-1).
func (t *Table) countVolumes(pl *Placed, sign int32) {
	for _, source := range pl.volumes {
		t.volumes.count(t.volumes.pods, t.volumes.attachments, source, pl.Row, sign)
	}
}

// count adds sign to the users of the volume in one of the maps. The volume stays
// attached if the other map has users of it.
func (v *volumeCounts) count(in, other map[object.VolumeSource]rowCounts, s object.VolumeSource, r Row, sign int32) {
	before, list := in[s].add(r, sign)
	if len(list) > 0 {
		in[s] = list
	} else {
		delete(in, s)
	}
	if (before == 0 || before+sign == 0) && other[s].of(r) == 0 {
		v.countDriver(r, s.Driver, int(sign))
	}
}

func (v *volumeCounts) countDriver(r Row, driver string, n int) {
	list := v.attached[r]
	i := slices.IndexFunc(list, func(d driverVolumes) bool { return d.driver == driver })
	if i < 0 {
		i, list = len(list), append(list, driverVolumes{driver: driver})
	}
	list[i].volumes += n
	if c := v.columns[driver]; c != nil {
		c.Attached[r] = int32(list[i].volumes) // #nosec G115 -- of pods and attachments
	}
	if list[i].volumes == 0 {
		list = slices.Delete(list, i, i+1)
	}
	v.attached[r] = list
}

// grow adds a row to all columns.
func (v *volumeCounts) grow() {
	v.attached, v.csiNodes, v.attachedTo = append(v.attached, nil), append(v.csiNodes, nil), append(v.attachedTo, nil)
	for _, c := range v.columns { // any order: each by itself
		c.Attached, c.Limits = append(c.Attached, 0), append(c.Limits, math.MaxInt32)
	}
}

// nameRow sets the volumes of the node that the row stands for from now on: its CSINode
// and its attachments.
func (t *Table) nameRow(r Row) {
	t.volumes.setCSINode(r, Lookup[*object.CSINode](t, object.CSINodes, "", t.names[r]))
	t.reattach(r)
}

// unnameRow ends that.
func (t *Table) unnameRow(r Row) {
	t.volumes.setCSINode(r, nil)
	t.detachAll(r)
}

// followVolume updates the volume counts for an object that changed from was to is; nil
// for none.
func (t *Table) followVolume(was, is object.Object) {
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
		for at := range t.volumes.claimants[name] { // any order: each by itself
			t.resolve(at)
		}
		for node := range t.volumes.attachedNodes[name] { // any order: each by itself
			t.reattachNode(node)
		}
	case *object.PersistentVolumeClaim:
		t.followVolumeClaim(was, is)
	case *object.StorageClass:
		for at := range t.volumes.tracked.claims { // any order: each by itself
			t.resolveTracked(at)
		}
		for _, r := range t.all {
			t.resolveVolumesOf(r)
		}
	case *object.CSINode:
		if r, ok := t.rowOf[name]; ok {
			c, _ := is.(*object.CSINode)
			t.volumes.setCSINode(r, c)
			t.touch(r)
		}
	case *object.VolumeAttachment:
		t.volumes.countAttachment(was, -1)
		t.volumes.countAttachment(is, 1)
		for _, o := range []object.Object{was, is} {
			if a, ok := o.(*object.VolumeAttachment); ok {
				t.reattachNode(a.Node)
			}
		}
	}
}

// sameVolumes reports whether two states of an object are the same for the volume counts.
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

func (t *Table) followVolumeClaim(was, is object.Object) {
	for _, o := range []object.Object{was, is} {
		c, ok := o.(*object.PersistentVolumeClaim)
		if !ok {
			continue
		}
		t.volumes.nameClaim(c, o == is)
		if pl := t.placed[c.Owner]; pl != nil {
			t.resolveVolumesOf(pl.Row)
		}
	}
	if is == nil {
		is = was
	}
	t.resolve(objectName{is.Head().Namespace, is.Head().Name})
}

// nameClaim adds the claim to those that name its volume, or removes it if listed is
// false.
func (v *volumeCounts) nameClaim(c *object.PersistentVolumeClaim, listed bool) {
	if c.VolumeName == "" {
		return
	}
	at, list := objectName{c.Namespace, c.Name}, v.claimants[c.VolumeName]
	switch {
	case listed && list == nil:
		v.claimants[c.VolumeName] = map[objectName]struct{}{at: {}}
	case listed:
		list[at] = struct{}{}
	default:
		if delete(list, at); len(list) == 0 {
			delete(v.claimants, c.VolumeName)
		}
	}
}

// resolve updates the volume of the claim, for tracked and placed pods that use it.
func (t *Table) resolve(at objectName) {
	t.resolveTracked(at)
	for r := range t.claims[at] { // any order: each by itself
		t.resolveVolumesOf(r)
	}
	c := Lookup[*object.PersistentVolumeClaim](t, object.PersistentVolumeClaims, at.namespace, at.name)
	if c == nil {
		return
	}
	if pl := t.placed[c.Owner]; pl != nil { // the volume is an ephemeral one
		t.resolveVolumesOf(pl.Row)
	}
}

// resolveVolumesOf updates the volumes of the pods on the row whose claims may have
// changed.
func (t *Table) resolveVolumesOf(r Row) {
	changed := false
	for _, pl := range t.pods[r] {
		if len(pl.Pod.Volumes) == 0 {
			continue
		}
		if now := t.VolumesOf(pl.Pod); !slices.Equal(now, pl.volumes) {
			t.countVolumes(pl, -1)
			pl.volumes, changed = now, true
			t.countVolumes(pl, 1)
		}
	}
	if changed {
		t.touch(r)
	}
}

// countAttachment counts the node that a VolumeAttachment of a PersistentVolume names.
func (v *volumeCounts) countAttachment(o object.Object, sign int) {
	a, ok := o.(*object.VolumeAttachment)
	if !ok || a.Volume == "" {
		return
	}
	nodes := v.attachedNodes[a.Volume]
	if nodes == nil {
		nodes = map[string]int{}
		v.attachedNodes[a.Volume] = nodes
	}
	if nodes[a.Node] += sign; nodes[a.Node] == 0 {
		if delete(nodes, a.Node); len(nodes) == 0 {
			delete(v.attachedNodes, a.Volume)
		}
	}
}

func (t *Table) reattachNode(name string) {
	if r, ok := t.rowOf[name]; ok {
		t.reattach(r)
		t.touch(r)
	}
}

// reattach counts the volumes of the VolumeAttachments of the row's node anew.
func (t *Table) reattach(r Row) {
	t.detachAll(r)
	v := &t.volumes
	v.attachedTo[r] = t.appendAttached(v.attachedTo[r][:0], t.names[r])
	for _, s := range v.attachedTo[r] {
		v.count(v.attachments, v.pods, s, r, 1)
	}
}

func (t *Table) detachAll(r Row) {
	v := &t.volumes
	for _, s := range v.attachedTo[r] {
		v.count(v.attachments, v.pods, s, r, -1)
	}
	v.attachedTo[r] = nil
}

// appendAttached lists what VolumeAttachments attach to the node.
func (t *Table) appendAttached(list []object.VolumeSource, node string) []object.VolumeSource {
	for o := range t.Objects().ByIndex(object.VolumeAttachments, node) {
		a := o.(*object.VolumeAttachment)
		pv := Lookup[*object.PersistentVolume](t, object.PersistentVolumes, "", a.Volume)
		if a.Attacher != "" && pv != nil && pv.Source.Driver != "" {
			list = append(list, object.VolumeSource{Driver: a.Attacher, Handle: pv.Source.Handle})
		}
	}
	return list
}

// recountVolumes counts again all volumes that objects name. Pods are counted when they
// are put back on their rows.
func (t *Table) recountVolumes() {
	tracked := t.volumes.tracked
	t.volumes = newVolumes()
	for range t.nodes {
		t.volumes.grow()
	}
	for _, o := range t.Objects().List(object.PersistentVolumeClaims) {
		t.volumes.nameClaim(o.(*object.PersistentVolumeClaim), true)
	}
	for _, o := range t.Objects().List(object.VolumeAttachments) {
		t.volumes.countAttachment(o, 1)
	}
	for v := range tracked.inline { // any order: sums
		t.volumes.tracked.inline[v] = true
		t.volumes.tracked.add(v, 1)
	}
	for at := range tracked.claims { // any order: each by itself
		t.volumes.tracked.claims[at] = object.VolumeSource{}
		t.resolveTracked(at)
	}
	for _, r := range t.rowOf { // any order: each by itself
		t.nameRow(r)
	}
}

// checkVolumes compares what is counted of volumes with a recount.
func (t *Table) checkVolumes() error {
	users := 0
	for name, r := range t.rowOf { // any order: an error is an error
		pods, attached, drivers := map[object.VolumeSource]int32{}, map[object.VolumeSource]int32{}, map[string]int{}
		for _, pl := range t.pods[r] {
			for _, s := range t.VolumesOf(pl.Pod) {
				pods[s]++
			}
		}
		for _, s := range t.appendAttached(nil, name) {
			attached[s]++
		}
		all := maps.Clone(pods)
		maps.Copy(all, attached)
		for s := range all { // any order: an error is an error
			drivers[s.Driver]++
			if t.volumes.pods[s].of(r) != pods[s] || t.volumes.attachments[s].of(r) != attached[s] {
				return fmt.Errorf("table: node %q: volume %v counts %d and %d times, recounted %d and %d", name, s,
					t.volumes.pods[s].of(r), t.volumes.attachments[s].of(r), pods[s], attached[s])
			}
		}
		for driver, n := range drivers { // any order: an error is an error
			if got := t.AttachedVolumes(r, driver); got != n || len(t.volumes.attached[r]) != len(drivers) {
				return fmt.Errorf("table: node %q: driver %s attaches %d volumes (%v), recounted %d", name, driver, got, t.volumes.attached[r], n)
			}
		}
		if want := Lookup[*object.CSINode](t, object.CSINodes, "", name); t.volumes.csiNodes[r] != want {
			return fmt.Errorf("table: node %q: its CSINode is another", name)
		}
		users += len(pods)
	}
	for s, rows := range t.volumes.pods { // any order: an error is an error
		if users -= len(rows); users < 0 {
			return fmt.Errorf("table: volume %v is on rows that no pod has it on", s)
		}
	}
	if err := t.checkDisks(); err != nil {
		return err
	}
	if err := t.checkDriverColumns(); err != nil {
		return err
	}
	return t.checkTracked()
}
