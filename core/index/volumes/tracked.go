package volumes

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// tracked holds the volumes of pods that were passed to Track: pods that are not placed,
// but may be tried on a node.
type tracked struct {
	claims  map[claimName]object.VolumeSource // volume behind each claim; zero: unknown
	inline  map[object.VolumeSource]bool      // volumes of pods without a claim
	volumes map[object.VolumeSource]int       // number of entries of claims and inline by volume
	swept   uint64                            // how often all were dropped
}

// trackedKept is the most claims and inline volumes that are tracked; with more, all are
// dropped (see Swept).
const trackedKept = 1 << 14

// TrackedCount returns the number of tracked claims and inline volumes.
func (x *Index) TrackedCount() int { return len(x.tracked.claims) + len(x.tracked.inline) }

// IsTracked reports whether a pod that was passed to Track uses the volume.
func (x *Index) IsTracked(v object.VolumeSource) bool { return x.tracked.volumes[v] > 0 }

// Swept returns a number that changes whenever all tracked volumes were dropped, so that
// pods are to be tracked again.
func (x *Index) Swept() uint64 { return x.tracked.swept }

// Track records the volumes of a pod that is not placed but may be tried on a node, so that the
// signatures of other pods include them. If there are too many, it first drops all that are
// tracked (see Swept).
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

// add adds n, which may be negative, to the number of tracked claims and inline volumes
// that stand for the volume s. A zero s, the volume of a claim that is not bound, is
// ignored.
func (v *tracked) add(s object.VolumeSource, n int) {
	if s == (object.VolumeSource{}) {
		return
	}
	if v.volumes[s] += n; v.volumes[s] == 0 {
		delete(v.volumes, s)
	}
}

// resolveTracked looks up the volume behind the claim again, if the claim is tracked.
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

// volumeOfTracked returns the volume behind the claim, zero if it is unknown.
func (x *Index) volumeOfTracked(at claimName) object.VolumeSource {
	if c := table.Lookup[*object.PersistentVolumeClaim](x.table, object.PersistentVolumeClaims, at.namespace, at.name); c != nil {
		return x.volumeOf(c)
	}
	return object.VolumeSource{}
}

// checkTracked returns an error if a tracked claim is recorded with another volume than is
// behind it now.
func (x *Index) checkTracked() error {
	for at, is := range x.tracked.claims { // any order: an error is an error
		if want := x.volumeOfTracked(at); is != want || want != (object.VolumeSource{}) && !x.IsTracked(want) {
			return fmt.Errorf("claim %s/%s is tracked with volume %v, looked up %v", at.namespace, at.name, is, want)
		}
	}
	return nil
}
