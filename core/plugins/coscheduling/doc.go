// Package coscheduling is the plugin Coscheduling of sigs.k8s.io/scheduler-plugins: pods that
// labels put into a group, one with a PodGroup of scheduling.x-k8s.io or one without an object,
// are placed together or not at all. The machine decides on them in one cycle, as on those of
// a PodGroup of scheduling.k8s.io, so none waits in Permit for the others.
// docs/design/0014-coscheduling.md says where the two differ.
package coscheduling
