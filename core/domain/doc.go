// Package domain numbers topology domains, and the places that nodes have in
// several of them at once: dense ids, which are used again once the last node
// has left, with what is counted for each.
package domain
