package engine

import (
	"encoding/binary"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// reading is what of a profile tells classes of pods apart, and how long what
// is kept of them stands.
type reading struct {
	profile *profile.Profile
	parts   []*framework.Plugin // that read something of the pod
	epochs  []func(*table.Table) uint64
}

func newReading(p *profile.Profile) *reading {
	r := &reading{profile: p}
	plugins := slices.Concat(p.PreFilter, p.Filter)
	for _, s := range p.Score {
		plugins = append(plugins, s.Plugin)
	}
	for i, pl := range plugins {
		if slices.Contains(plugins[:i], pl) {
			continue
		}
		if pl.Part != nil || pl.PartIn != nil {
			r.parts = append(r.parts, pl)
		}
		if pl.Epoch != nil {
			r.epochs = append(r.epochs, pl.Epoch)
		}
	}
	return r
}

// readingOf is newReading, kept.
func (e *Engine) readingOf(p *profile.Profile) *reading {
	r := e.readings[p]
	if r == nil {
		r = newReading(p)
		e.readings[p] = r
	}
	return r
}

// epoch sums the epochs of the profile's plugins: when any moves, the sum
// does, as each only grows.
func (r *reading) epoch(t *table.Table) uint64 {
	var sum uint64
	for _, epoch := range r.epochs {
		sum += epoch(t)
	}
	return sum
}

// appendKey writes what the profile's plugins can see of the pod: the same for
// pods of one class.
func (r *reading) appendKey(b []byte, t *table.Table, pod *object.Pod) []byte {
	b = append(append(b, r.profile.Name...), 0)
	for _, pl := range r.parts {
		b = appendPart(b, t, pl, pod)
	}
	return b
}

// appendStaticKey is appendKey for the plugins that read node objects alone.
func (r *reading) appendStaticKey(b []byte, t *table.Table, pod *object.Pod) []byte {
	b = append(append(b, r.profile.Name...), 0)
	for _, pl := range r.parts {
		if pl.Locality == framework.NodeOnly {
			b = appendPart(b, t, pl, pod)
		}
	}
	return b
}

// appendPart writes what the plugin reads of the pod, after its length.
func appendPart(b []byte, t *table.Table, pl *framework.Plugin, pod *object.Pod) []byte {
	from := len(b) + 4
	switch {
	case pl.PartIn != nil:
		b = pl.PartIn(append(b, 0, 0, 0, 0), t, pod)
	case pl.Part != nil:
		b = pl.Part(append(b, 0, 0, 0, 0), pod)
	default:
		return b
	}
	binary.LittleEndian.PutUint32(b[from-4:], uint32(len(b)-from))
	return b
}
