// Package up is the command `berth-lab up`: it starts a cluster with a
// scheduler, shows how the sample workload is placed, and stays until it is
// interrupted, or ends by itself with a verdict (--once).
package up
