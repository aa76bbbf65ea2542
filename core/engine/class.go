package engine

import (
	"github.com/berth-scheduler/berth/core/classes"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
)

// Request is a pod to be placed, with its profile. It caches the pod's class.
//
// Make one with For when the pod is added, keep it with the pod, and pass it to each call
// about the pod. Make a new one when the pod's object or the profile changes. The engine
// finds the class at the first call (or at Classify) and finds it anew when an object that
// the signature depends on has changed (a Service, a claim, a namespace, a term of pod
// affinity). A Request belongs to one engine.
//
// A Request holds the signature and nothing larger: the engine may drop what it keeps of
// the class at any time.
type Request struct {
	Profile *profile.Profile
	Pod     *object.Pod

	known classes.Pod[view] // its class
}

// For returns a new Request to place the pod under the profile.
func For(p *profile.Profile, pod *object.Pod) *Request { return &Request{Profile: p, Pod: pod} }

// class is an equivalence class, for which the engine keeps a view.
type class = classes.Class[view]

// Classify finds the request's class if it is not known, so that the first decision does
// not have to. It does nothing on an engine of NewPlain.
func (e *Engine) Classify(r *Request) {
	if !e.plain {
		e.classOf(r)
	}
}

// classOf returns the request's equivalence class. It is found anew if an object that the
// signature depends on has changed.
func (e *Engine) classOf(r *Request) *class { return e.classes.Of(r.Profile, r.Pod, &r.known) }

// Signature returns the signature of the request's class as bytes: all that the profile's
// native plugins read of the pod. Pods with equal signatures are of one class.
func (e *Engine) Signature(r *Request) string { return e.classOf(r).Signature }
