// Package daemon is the scheduler that runs: the machine with its loop, the
// watches that tell it of the cluster, the executor of its effects and its
// lease, from start to stop. The command in package scheduler makes one of its
// flags and ends it by a signal; the simulation runs several over an API server
// in memory.
package daemon
