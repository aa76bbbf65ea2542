// Package faults shows faults of kube-scheduler on a live control
// plane, and that Berth does not have them (docs/deviations.md, R1 to R5). Each
// fault is a story: the story creates objects, something happens, and the
// scheduler reacts rightly or wrongly. Both schedulers get the same story
// behind the same proxy.
//
// A story does not just wait a while to say that a pod is left waiting. A pod
// that was created after the event has been placed, the scheduler's own metrics
// show no active pod and none in backoff, and a twin of the waiting pod is
// placed at once.
package faults
