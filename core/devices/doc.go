// Package devices answers what devices a node can see, what is taken of them,
// and how many of them a device class selects there. The table follows slices
// and claims; this puts together what concerns one node, in the shapes that
// Kubernetes' own libraries read.
package devices
