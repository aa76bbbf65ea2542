// Package decode turns API objects into the objects of core. Whatever the API
// server accepts can be decoded. A part that makes no sense, such as an
// affinity term that does not parse, becomes a part that matches nothing, as in
// kube-scheduler.
//
// Objects from files also get the API server's defaults and checks here.
package decode
