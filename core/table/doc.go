// Package table is the state that decisions read: nodes, and the pods placed on
// them, as columns over dense rows. Every change gives its row the next
// revision and moves the row to the head of a list. So a reader that has seen
// revision R finds each row that changed since exactly once. Placements can be
// tried under a checkpoint and undone.
//
// What only a few readers need is kept by followers (Follower), in packages of their own.
// API objects, namespaces, owners of selectors and terms of pod affinity are stores that a
// table hands out.
//
// A Table has one owner (core/machine). Readers on other goroutines (core/par)
// may read columns while the owner waits for them.
package table
