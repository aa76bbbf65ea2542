package classes

import (
	"encoding/binary"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// Keys holds what of a profile decides the class of a pod, and until when answers for the
// class stay valid.
type Keys struct {
	Profile *profile.Profile

	signers []*framework.Plugin // that read something of the pod
	// revisions are the signers' SignRevision.
	revisions []func(*table.Table, *object.Pod) (uint64, bool)
	epochs    []func(*table.Table) uint64
}

// KeysOf returns the keys of the profile.
func KeysOf(p *profile.Profile) *Keys {
	k := &Keys{Profile: p}
	plugins := slices.Concat(p.PreFilter, p.Filter)
	for _, s := range p.Score {
		plugins = append(plugins, s.Plugin)
	}
	for i, pl := range plugins {
		if slices.Contains(plugins[:i], pl) {
			continue
		}
		if pl.Sign != nil {
			k.signers = append(k.signers, pl)
			if pl.SignRevision != nil {
				k.revisions = append(k.revisions, pl.SignRevision)
			}
		}
		if pl.Epoch != nil {
			k.epochs = append(k.epochs, pl.Epoch)
		}
	}
	return k
}

// Epoch returns a number that changes whenever answers of the profile's plugins may change
// on rows that did not: the sum of their epochs, as each only grows.
func (k *Keys) Epoch(t *table.Table) uint64 {
	var sum uint64
	for _, epoch := range k.epochs {
		sum += epoch(t)
	}
	return sum
}

// signedAt returns the sum of the revisions of what the pod's signature depends on
// besides the pod. It returns false if a plugin does not know its revision.
func (k *Keys) signedAt(t *table.Table, pod *object.Pod) (sum uint64, known bool) {
	for _, signRevision := range k.revisions {
		revision, known := signRevision(t, pod)
		if !known {
			return 0, false
		}
		sum += revision
	}
	return sum, true
}

// AppendSignature appends what the profile's plugins can read of the pod: equal for pods
// of one class.
func (k *Keys) AppendSignature(b []byte, t *table.Table, pod *object.Pod) []byte {
	b = append(append(b, k.Profile.Name...), 0)
	for _, pl := range k.signers {
		from := len(b) + 4 // each after its length
		b = pl.Sign(append(b, 0, 0, 0, 0), t, pod)
		binary.LittleEndian.PutUint32(b[from-4:], uint32(len(b)-from)) // #nosec G115 -- bounded by the pod
	}
	return b
}
