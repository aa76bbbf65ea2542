// Package interpodaffinity is the plugin InterPodAffinity: pods require or prefer to be where
// certain other pods are, or where they are not; and placed pods keep others away, or draw them
// near.
//
// A counts holds, for one class of pods, what speaks for and against each domain (the nodes that
// share a value of a label). It follows the table's journals. It begins with what the table knows:
// which pods, by their labels, the class's own terms match. What the terms of placed pods add is
// the same for all classes that the same terms select: these share an existing. Rows in the same
// domains, and alike in what is on the node itself, form a cell. Pods that are nominated to nodes
// close domains for the pod at hand (nominated.go).
package interpodaffinity
