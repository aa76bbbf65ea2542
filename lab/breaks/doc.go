// Package breaks tells what a comparison that finds nothing is worth. It knows a
// list of faults (breaks.txt): a line of Berth, what the line says instead, and
// the mixes of generated worlds in which conform has to disagree then. Each
// fault is built by itself, by the go command's overlay, which leaves the tree
// as it is, and conform is run.
package breaks
