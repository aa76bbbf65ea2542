// Package domain says in which topology domains nodes are, for plugins that count pods by
// domain. A Topology numbers the domains of one label of nodes, a Layout the sets of domains
// that nodes are in. Numbers are dense. A number is used again after the last node of its
// domain has left. Classes of pods that ask for the same labels share both. Each class counts
// for itself, in columns by domain.
package domain
