package classes

import (
	"maps"

	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// Class is an equivalence class: the pods of a profile that none of its plugins can tell
// apart.
type Class[V any] struct {
	Signature string
	Hash      uint64 // of the signature
	Kept      *V     // what is kept for the class; nil: nothing is
}

// mostBytes bounds the signatures of classes for which nothing is kept.
const mostBytes = 4 << 20

// Set holds the classes that came by of late.
type Set[V any] struct {
	table       *table.Table
	keys        map[*profile.Profile]*Keys
	bySignature map[string]*Class[V]
	bytes       int // of their signatures
	buffer      []byte
}

// New returns a new Set of the pods of a table.
func New[V any](t *table.Table) Set[V] {
	return Set[V]{table: t, keys: map[*profile.Profile]*Keys{}, bySignature: map[string]*Class[V]{}}
}

// Pod remembers the class of one pod under one profile. The zero value remembers nothing.
type Pod[V any] struct {
	keys     *Keys
	class    *Class[V]
	signedAt uint64
}

// Keys returns the keys of the profile, nil before the class was asked for.
func (p *Pod[V]) Keys() *Keys { return p.keys }

// Of returns the class of the pod. It finds the class anew if known does not have it, or
// if an object that the signature depends on has changed since.
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

// Keys returns the keys of the profile. It makes them once and keeps them.
func (s *Set[V]) Keys(p *profile.Profile) *Keys {
	k := s.keys[p]
	if k == nil {
		k = KeysOf(p)
		s.keys[p] = k
	}
	return k
}

// With finds or makes the class with the signature.
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

// Forget forgets all classes. What callers keep of them stays valid.
func (s *Set[V]) Forget() {
	clear(s.bySignature)
	s.bytes = 0
}

// ForgetProfiles forgets all profiles, none of which may be used again.
func (s *Set[V]) ForgetProfiles() { clear(s.keys) }
