// Package extender asks HTTP extenders: it carries out the machine's CallExtender and
// BindByExtender effects, with the wire types of k8s.io/kube-scheduler/extender/v1. It
// trusts no reply: each is bounded in size and time and checked against what
// was asked, and what is wrong with it becomes an error that names the
// extender and the reason.
//
// Hosted shows the same extenders to plugins that are written for kube-scheduler.
package extender
