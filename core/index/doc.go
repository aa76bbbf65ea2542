// Package index has a package for each index of a table that only a few readers ask: a
// follower (table.Follower) with what it keeps. Its Of returns that of a table.
//
// A test here follows a table through any history with all of them, and those of plugins.
package index
