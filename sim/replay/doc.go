// Package replay drives a machine with a record of another one's inputs
// (edge/recording). Exact takes the very steps of the record and compares what comes of
// each. Run takes only what came from outside, the pods, nodes and other objects,
// and lets a virtual cluster carry out what the machine asks for, so that another
// configuration may decide otherwise. Compare does so twice.
package replay
