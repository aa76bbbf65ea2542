// Package queue holds the pods that wait to be scheduled and decides which is
// next. A pod is in exactly one place: active (ready, in QueueSort's order),
// backoff (waits its turn after a failure), unschedulable (waits for a change
// that may help it), gated (a PreEnqueue plugin keeps it out) or in flight
// (handed out, outcome not known yet). The plugins' queueing hints decide which
// change calls which pod. The queue also keeps the nominations. Time is an
// argument; nothing here reads a clock.
package queue
