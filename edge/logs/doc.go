// Package logs writes the log lines that kube-scheduler writes about pods,
// nodes and attempts: the same messages and keys at the same verbosities, for
// people and tools that search for them. It is told of each step of the machine and
// of each move in the queue. A line whose verbosity is off costs a comparison.
//
// lab/dropin/testdata/log-lines.md lists the lines of kube-scheduler, and what Berth
// does with each.
package logs
