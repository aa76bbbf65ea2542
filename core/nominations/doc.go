// Package nominations lists by row the pods that are nominated to nodes, and says which of
// them count against another pod.
//
// A nominated pod waits for room on its node, mostly for its victims to leave. A pod of its
// priority or a lower one is decided on as if the nominated pod ran there already. Say that
// two pods are nominated to node n1:
//
//	pod   priority
//	a     10
//	b     5
//
// Against a pod of priority 7 counts a, against one of priority 1 count both, against one
// of priority 20 none. Against a itself none counts: b gives way to it, and a does not
// stand in its own way.
package nominations
