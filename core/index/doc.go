// Package index has a package for each index of a table that only a few readers need. Each
// registers a follower (table.Follower), which keeps the index; its Of returns the index of a
// table.
//
// The test here changes a table at random and checks all these indexes, and those of plugins.
package index
