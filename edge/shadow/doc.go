// Package shadow runs Berth beside the scheduler that is in charge and changes
// nothing. It follows the cluster, and each time that the live scheduler binds a pod it
// compares that node with the one that Berth would have chosen just before. It counts
// the outcomes, and reports the differences with their cause.
//
// The Shadow stands between the loop and the machine. It lets no effect of the machine
// through, and has no pod scheduled.
//
// # Out of order
//
// The live scheduler decides on one pod after the other, and sends the bindings
// concurrently. So the watch may show a pod bound before another one that was decided
// on earlier. A difference is therefore kept for a moment (held.go). The cluster is
// then put together as it was in the order of decisions: by priority, then by arrival.
// If the live scheduler's node is among the best there, the difference is "stale".
package shadow
