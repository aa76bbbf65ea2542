package classes

import (
	"encoding/binary"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// Keys holds what decides the class of a pod, and for how long answers about the class hold:
// functions of those plugins of a profile that have a Sign, a SignRevision or an Epoch.
type Keys struct {
	Profile *profile.Profile

	signers []*framework.Plugin // the plugins that have a Sign
	// revisions are the SignRevision functions of the signers that have one.
	revisions []func(*table.Table, *object.Pod) (uint64, bool)
	epochs    []func(*table.Table) uint64 // the plugins' Epoch functions
}

// KeysOf returns new keys for the profile's PreFilter, Filter and Score plugins.
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

// Epoch returns a number that changes whenever the plugins' answers may have changed even
// on rows that did not, so that all kept answers are void: the sum of the plugins' epochs,
// which only grow.
func (k *Keys) Epoch(t *table.Table) uint64 {
	var sum uint64
	for _, epoch := range k.epochs {
		sum += epoch(t)
	}
	return sum
}

// signedAt returns a number that changes whenever the pod's signature may, other than by the pod
// itself: the sum of the plugins' SignRevisions. known is false if a plugin does not know its
// revision.
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

// AppendSignature appends the signature of the pod to b: the profile's name and what its
// plugins can read of the pod. Pods of one class, and only they, have equal signatures.
func (k *Keys) AppendSignature(b []byte, t *table.Table, pod *object.Pod) []byte {
	b = append(append(b, k.Profile.Name...), 0)
	for _, pl := range k.signers {
		from := len(b) + 4 // each after its length
		b = pl.Sign(append(b, 0, 0, 0, 0), t, pod)
		binary.LittleEndian.PutUint32(b[from-4:], uint32(len(b)-from)) // #nosec G115 -- bounded by the pod
	}
	return b
}
