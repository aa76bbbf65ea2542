// Package failover measures how long a cluster is without a scheduler: from a
// scheduler's start to its first binding, from a SIGTERM to the first binding of
// the standby, and from a kill -9 to that. Each figure is from a pod that is
// created when the former scheduler is gone. Both schedulers do the same on one
// control plane.
package failover
