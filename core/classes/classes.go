package classes

import (
	"maps"

	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// Class is an equivalence class: the pods that none of a profile's plugins can tell apart.
type Class[V any] struct {
	Signature string // what the plugins read of each of the pods, as bytes
	Hash      uint64 // of the signature
	Kept      *V     // what the user of the class keeps for it; nil: nothing
}

// mostBytes bounds the signatures in a Set. When they take more, classes with nil Kept are
// forgotten.
const mostBytes = 4 << 20

// Set finds the class of a pod by its signature. It remembers classes that were asked for
// recently, or for which the user keeps something (Kept).
type Set[V any] struct {
	table       *table.Table
	keys        map[*profile.Profile]*Keys // made so far, by profile
	bySignature map[string]*Class[V]
	bytes       int    // about the length of all signatures
	buffer      []byte // scratch of Of
}

// New returns an empty Set for pods that are decided on over the table.
func New[V any](t *table.Table) Set[V] {
	return Set[V]{table: t, keys: map[*profile.Profile]*Keys{}, bySignature: map[string]*Class[V]{}}
}

// Pod caches the class of one pod under one profile, so that a pod that is tried again
// need not be signed again. The zero value holds none.
type Pod[V any] struct {
	keys     *Keys
	class    *Class[V]
	signedAt uint64 // revision of what the signature depends on, when the class was found
}

// Keys returns the keys of the profile under which Set.Of was called with p, nil before that.
func (p *Pod[V]) Keys() *Keys { return p.keys }

// Of returns the class of the pod under the profile. The class is that in known if it still
// holds; otherwise it is found anew, because an object that the signature depends on has
// changed, and stored in known.
func (s *Set[V]) Of(p *profile.Profile, pod *object.Pod, known *Pod[V]) *Class[V] {
	if known.keys == nil {
		known.keys = s.Keys(p)
	}
	k := known.keys
	at, lasting := k.signedAt(s.table, pod)
	if known.class != nil && lasting && known.signedAt == at {
		return known.class
	}
	s.buffer = k.AppendSignature(s.buffer[:0], s.table, pod)
	known.class, known.signedAt = s.With(s.buffer), at
	return known.class
}

// Keys returns the profile's Keys, made at the first call and kept until ForgetProfiles.
func (s *Set[V]) Keys(p *profile.Profile) *Keys {
	k := s.keys[p]
	if k == nil {
		k = KeysOf(p)
		s.keys[p] = k
	}
	return k
}

// With returns the class with the signature, a new one if there is none. If a new one makes the
// signatures exceed mostBytes, other classes with nil Kept are forgotten.
func (s *Set[V]) With(signature []byte) *Class[V] {
	if c := s.bySignature[string(signature)]; c != nil {
		return c
	}
	c := &Class[V]{Signature: string(signature)}
	c.Hash = draw.Hash(c.Signature)
	if s.bytes += len(signature); s.bytes > mostBytes {
		maps.DeleteFunc(s.bySignature, func(_ string, c *Class[V]) bool { return c.Kept == nil })
		s.bytes = len(signature)
	}
	s.bySignature[c.Signature] = c
	return c
}

// Forget removes all classes. Those that callers hold stay valid, but are no longer found.
func (s *Set[V]) Forget() {
	clear(s.bySignature)
	s.bytes = 0
}

// ForgetProfiles removes the Keys of all profiles. Neither these profiles, nor a Pod that caches
// its class under one, may be used again.
func (s *Set[V]) ForgetProfiles() { clear(s.keys) }
