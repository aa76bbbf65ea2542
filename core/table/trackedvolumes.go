package table

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/object"
)

// trackedVolumes holds the volumes of pods that were passed to Track.
type trackedVolumes struct {
	claims  map[objectName]object.VolumeSource // what is behind them
	inline  map[object.VolumeSource]bool
	volumes map[object.VolumeSource]int // how many of the claims and of inline are of each
}

// trackedKept bounds the claims and volumes of Track.
const trackedKept = 1 << 14

// TrackedVolumes returns how many volumes the tracked pods may bring to a node.
func (t *Table) TrackedVolumes() int {
	return len(t.volumes.tracked.claims) + len(t.volumes.tracked.inline)
}

// TrackedVolume reports whether a tracked pod may bring the volume to a node.
func (t *Table) TrackedVolume(v object.VolumeSource) bool { return t.volumes.tracked.volumes[v] > 0 }

// TrackVolumes records the volumes that a pod, which is not placed yet, may bring to a
// node. If there are too many, it forgets those of other pods, which are to be tracked again.
func (t *Table) TrackVolumes(p *object.Pod) {
	v := &t.volumes.tracked
	if len(p.Volumes) > 0 && t.TrackedVolumes() >= trackedKept {
		clear(v.claims)
		clear(v.inline)
		clear(v.volumes)
		t.terms.swept++
	}
	for i := range p.Volumes {
		switch o := &p.Volumes[i]; {
		case o.Claimed:
			at := objectName{p.Namespace, o.Claim}
			if _, known := v.claims[at]; !known {
				v.claims[at] = object.VolumeSource{}
				t.resolveTracked(at)
			}
		case o.Migrated != nil && !v.inline[o.Migrated.Source]:
			v.inline[o.Migrated.Source] = true
			v.add(o.Migrated.Source, 1)
		}
	}
}

func (v *trackedVolumes) add(s object.VolumeSource, n int) {
	if s == (object.VolumeSource{}) {
		return
	}
	if v.volumes[s] += n; v.volumes[s] == 0 {
		delete(v.volumes, s)
	}
}

// resolveTracked updates the volume of the claim, if it is tracked.
func (t *Table) resolveTracked(at objectName) {
	v := &t.volumes.tracked
	was, known := v.claims[at]
	if !known {
		return
	}
	is := t.volumeOfTracked(at)
	v.add(was, -1)
	v.add(is, 1)
	v.claims[at] = is
}

func (t *Table) volumeOfTracked(at objectName) object.VolumeSource {
	if c := Lookup[*object.PersistentVolumeClaim](t, object.PersistentVolumeClaims, at.namespace, at.name); c != nil {
		return t.volumeOf(c)
	}
	return object.VolumeSource{}
}

// checkTracked compares what is behind tracked claims with a fresh look.
func (t *Table) checkTracked() error {
	for at, is := range t.volumes.tracked.claims { // any order: an error is an error
		if want := t.volumeOfTracked(at); is != want || want != (object.VolumeSource{}) && !t.TrackedVolume(want) {
			return fmt.Errorf("table: claim %s/%s is tracked with volume %v, looked up %v", at.namespace, at.name, is, want)
		}
	}
	return nil
}
