package volumes

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// tracked holds the volumes of pods that were passed to Track.
type tracked struct {
	claims  map[claimName]object.VolumeSource // what is behind them
	inline  map[object.VolumeSource]bool
	volumes map[object.VolumeSource]int // how many of the claims and of inline are of each
	swept   uint64
}

// trackedKept bounds the claims and volumes of Track.
const trackedKept = 1 << 14

// TrackedCount returns how many volumes the tracked pods may bring to a node.
func (x *Index) TrackedCount() int { return len(x.tracked.claims) + len(x.tracked.inline) }

// IsTracked reports whether a tracked pod may bring the volume to a node.
func (x *Index) IsTracked(v object.VolumeSource) bool { return x.tracked.volumes[v] > 0 }

// Swept changes whenever tracked volumes are forgotten: pods are to be tracked again then.
func (x *Index) Swept() uint64 { return x.tracked.swept }

// Track records the volumes that a pod, which is not placed yet, may bring to a node. If
// there are too many, it forgets those of other pods.
func (x *Index) Track(p *object.Pod) {
	if len(p.Volumes) == 0 {
		return
	}
	v := &x.tracked
	if x.TrackedCount() >= trackedKept {
		clear(v.claims)
		clear(v.inline)
		clear(v.volumes)
		v.swept++
	}
	for i := range p.Volumes {
		switch o := &p.Volumes[i]; {
		case o.Claimed:
			at := claimName{p.Namespace, o.Claim}
			if _, known := v.claims[at]; !known {
				v.claims[at] = object.VolumeSource{}
				x.resolveTracked(at)
			}
		case o.Migrated != nil && !v.inline[o.Migrated.Source]:
			v.inline[o.Migrated.Source] = true
			v.add(o.Migrated.Source, 1)
		}
	}
}

func (v *tracked) add(s object.VolumeSource, n int) {
	if s == (object.VolumeSource{}) {
		return
	}
	if v.volumes[s] += n; v.volumes[s] == 0 {
		delete(v.volumes, s)
	}
}

// resolveTracked updates the volume of the claim, if it is tracked.
func (x *Index) resolveTracked(at claimName) {
	v := &x.tracked
	was, known := v.claims[at]
	if !known {
		return
	}
	is := x.volumeOfTracked(at)
	v.add(was, -1)
	v.add(is, 1)
	v.claims[at] = is
}

func (x *Index) volumeOfTracked(at claimName) object.VolumeSource {
	if c := table.Lookup[*object.PersistentVolumeClaim](x.table, object.PersistentVolumeClaims, at.namespace, at.name); c != nil {
		return x.volumeOf(c)
	}
	return object.VolumeSource{}
}

// checkTracked compares what is behind tracked claims with a fresh look.
func (x *Index) checkTracked() error {
	for at, is := range x.tracked.claims { // any order: an error is an error
		if want := x.volumeOfTracked(at); is != want || want != (object.VolumeSource{}) && !x.IsTracked(want) {
			return fmt.Errorf("claim %s/%s is tracked with volume %v, looked up %v", at.namespace, at.name, is, want)
		}
	}
	return nil
}
