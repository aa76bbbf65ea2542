package table

import "github.com/berth-scheduler/berth/core/object"

// volumeNames knows which volumes a single claim may bring to a node.
type volumeNames struct {
	// namers counts who names a volume: PersistentVolumes, and pods on nodes that
	// have it without a claim.
	namers map[object.VolumeSource]int
	// claimants counts the claims that name a PersistentVolume.
	claimants map[string]int
	// heardClaims and heardVolumes are those of pods that trackVolumes was told of.
	heardClaims  map[objectName]bool
	heardVolumes map[object.VolumeSource]bool
}

// heardKept bounds the claims and volumes of trackVolumes.
const heardKept = 1 << 14

func newVolumes() volumeNames {
	return volumeNames{namers: map[object.VolumeSource]int{}, claimants: map[string]int{}, heardClaims: map[objectName]bool{}, heardVolumes: map[object.VolumeSource]bool{}}
}

// OwnVolume tells whether the volume that the claim is bound to can come to a node
// by this claim alone, and no placed pod uses the claim. A pod that may be tried
// somewhere (trackVolumes) counts as placed.
func (t *Table) OwnVolume(c *object.PersistentVolumeClaim, pv *object.PersistentVolume) bool {
	at, v := objectName{c.Namespace, c.Name}, &t.volumes
	return len(t.claims[at]) == 0 && !v.heardClaims[at] && v.claimants[pv.Name] == 1 &&
		v.alone(pv.Source) && (pv.Migrated == nil || v.alone(pv.Migrated.Source))
}

// alone tells whether nobody else names the volume.
func (v *volumeNames) alone(s object.VolumeSource) bool {
	return s == (object.VolumeSource{}) || v.namers[s] == 1 && !v.heardVolumes[s]
}

func (v *volumeNames) name(s object.VolumeSource, sign int) {
	if s == (object.VolumeSource{}) {
		return
	}
	if v.namers[s] += sign; v.namers[s] == 0 {
		delete(v.namers, s)
	}
}

// followVolume counts a PersistentVolume, or a claim of one, that became another.
func (v *volumeNames) followVolume(was, is object.Object) {
	v.nameAll(was, -1)
	v.nameAll(is, 1)
}

func (v *volumeNames) nameAll(o object.Object, sign int) {
	switch o := o.(type) {
	case *object.PersistentVolume:
		v.name(o.Source, sign)
		if m := o.Migrated; m != nil && m.Source != o.Source {
			v.name(m.Source, sign)
		}
	case *object.PersistentVolumeClaim:
		if v.claimants[o.VolumeName] += sign; v.claimants[o.VolumeName] == 0 {
			delete(v.claimants, o.VolumeName)
		}
	}
}

// nameInline counts the volumes that a placed pod has without a claim.
func (v *volumeNames) nameInline(p *object.Pod, sign int) {
	for i := range p.Volumes {
		if m := p.Volumes[i].Migrated; m != nil {
			v.name(m.Source, sign)
		}
	}
}

// trackVolumes hears of what a pod that is not placed yet may bring to a node. It
// returns false where it forgot earlier ones.
func (v *volumeNames) trackVolumes(p *object.Pod) bool {
	whole := len(v.heardClaims)+len(v.heardVolumes) < heardKept
	if !whole {
		clear(v.heardClaims)
		clear(v.heardVolumes)
	}
	for i := range p.Volumes {
		switch o := &p.Volumes[i]; {
		case o.Claimed:
			v.heardClaims[objectName{p.Namespace, o.Claim}] = true
		case o.Migrated != nil:
			v.heardVolumes[o.Migrated.Source] = true
		}
	}
	return whole
}
