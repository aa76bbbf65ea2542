// Package breaks checks that the comparison with kube-scheduler finds faults.
// It holds a list of planted faults (breaks.txt): a line of Berth, the changed
// line, and the mixes of generated worlds in which conform must disagree. The
// go command's overlay builds each fault into a program of its own, which
// leaves the tree as it is. That program runs conform.
package breaks
