package engine

import (
	"encoding/binary"
	"slices"

	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// Request is a pod to be placed, with its profile. It remembers the pod's class.
//
// Make one with For when the pod arrives, keep it in the pod's record, and pass it to
// each call about the pod. Make a new one when the pod's object or the profile changes.
// The engine finds the class at the first call (or at Classify) and finds it anew when an
// object that the signature depends on has changed (a Service, a claim, a namespace, a
// term of pod affinity). A Request belongs to one engine.
//
// A Request holds the signature and nothing of size: the engine may drop what it keeps of
// the class at any time.
type Request struct {
	Profile *profile.Profile
	Pod     *object.Pod

	keys     *keys // of the profile; nil: not asked for so far
	class    *class
	signedAt uint64
}

// For returns the request for a place for the pod.
func For(p *profile.Profile, pod *object.Pod) *Request { return &Request{Profile: p, Pod: pod} }

// class is an equivalence class: the pods of a profile that none of its plugins
// can tell apart.
type class struct {
	signature string
	hash      uint64
	view      *view // kept for the class; nil: none is
}

// Classify finds the request's class, where it is not known.
func (e *Engine) Classify(r *Request) {
	if !e.plain {
		e.classOf(r)
	}
}

func (e *Engine) classOf(r *Request) *class {
	if r.keys == nil {
		r.keys = e.keysOf(r.Profile)
	}
	k := r.keys
	at, lasting := k.signedAt(e.table, r.Pod)
	if r.class != nil && lasting && r.signedAt == at {
		return r.class
	}
	e.keyBuf = k.appendSignature(e.keyBuf[:0], e.table, r.Pod)
	r.class, r.signedAt = e.classWith(e.keyBuf), at
	return r.class
}

// Signature returns the signature of the request's class: what the native plugins read of
// the pod, as bytes.
func (e *Engine) Signature(r *Request) string { return e.classOf(r).signature }

// classBytes bounds the signatures of classes that are known without a view.
const classBytes = 4 << 20

// classWith finds or makes the class with the signature.
func (e *Engine) classWith(signature []byte) *class {
	if c := e.classes[string(signature)]; c != nil {
		return c
	}
	if v := e.views[string(signature)]; v != nil {
		return v.class
	}
	c := &class{signature: string(signature)}
	c.hash = draw.Hash(c.signature)
	if e.classBytes += len(signature); e.classBytes > classBytes {
		clear(e.classes)
		e.classBytes = len(signature)
	}
	e.classes[c.signature] = c
	return c
}

// keys holds what of a profile decides the class of a pod, and until when answers for the
// class stay valid.
type keys struct {
	profile *profile.Profile
	signers []*framework.Plugin // that read something of the pod
	// revisions are the signers' SignRevision.
	revisions []func(*table.Table, *object.Pod) (uint64, bool)
	epochs    []func(*table.Table) uint64
}

func newKeys(p *profile.Profile) *keys {
	k := &keys{profile: p}
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

// keysOf returns the keys of the profile. It makes them once and keeps them.
func (e *Engine) keysOf(p *profile.Profile) *keys {
	k := e.keys[p]
	if k == nil {
		k = newKeys(p)
		e.keys[p] = k
	}
	return k
}

// signedAt returns the sum of the revisions of what the pod's signature depends on
// besides the pod. It returns false if a plugin does not know its revision.
func (k *keys) signedAt(t *table.Table, pod *object.Pod) (sum uint64, known bool) {
	for _, signRevision := range k.revisions {
		revision, known := signRevision(t, pod)
		if !known {
			return 0, false
		}
		sum += revision
	}
	return sum, true
}

// appendSignature appends what the profile's plugins can read of the pod: equal for pods
// of one class.
func (k *keys) appendSignature(b []byte, t *table.Table, pod *object.Pod) []byte {
	b = append(append(b, k.profile.Name...), 0)
	for _, pl := range k.signers {
		b = appendOne(b, t, pl.Sign, pod)
	}
	return b
}

// signFunc is a plugin's Sign.
type signFunc = func([]byte, *table.Table, *object.Pod) []byte

// appendOne writes a plugin's signature of the pod, after its length.
func appendOne(b []byte, t *table.Table, sign signFunc, pod *object.Pod) []byte {
	from := len(b) + 4
	b = sign(append(b, 0, 0, 0, 0), t, pod)
	binary.LittleEndian.PutUint32(b[from-4:], uint32(len(b)-from))
	return b
}
