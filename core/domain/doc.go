// Package domain numbers topology domains, and the sets of domains that nodes
// are in. Ids are dense. An id is used again after the last node of its domain
// has left. A domain holds what is counted for it.
package domain
