// Package kube is the scheduler's side of the API server: it lists and watches
// pods and nodes and turns them into events for the machine (Watcher), and it
// carries the machine's effects out as API calls and reports what came of them
// (Executor). Everything that waits here is bounded, and what only informs
// (events, conditions) never holds up a binding.
package kube
