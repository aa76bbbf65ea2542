// Package upstream reads, in the source of a version of Kubernetes, what Berth states
// after it: feature gates, metrics, log lines, events, the default plugins with their
// extension points and wake-ups, the configuration with its defaults, flags, rights and
// the plugin contract. Each list is sorted lines of facts, so that the difference
// between two versions is the work list of a move. Nothing is compiled: a version is
// read before Berth builds with it.
package upstream
