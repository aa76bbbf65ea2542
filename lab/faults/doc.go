// Package faults shows faults of kube-scheduler v1.36.3 on a live control
// plane, and that Berth does not have them (docs/deviations.md, R1 to R5). Each
// is a story: objects are created, something happens, and a scheduler either
// does what it should or does not. Both schedulers get the same story, behind
// the same proxy. That a pod was left waiting is never concluded from a time
// that passed: a pod that was created after the event has been placed, the
// scheduler's own metrics say that nobody is about to be tried, and a twin of
// the pod that waits is placed at once.
package faults
