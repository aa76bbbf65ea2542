// Package up is the command `berth-lab up`. It starts a cluster with a
// scheduler and shows how the sample workload is placed. Then it runs until it
// is interrupted, or, with --once, ends with an exit status.
package up
