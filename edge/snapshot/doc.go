// Package snapshot copies the scheduler's node table for readers that must not hold up the
// scheduling loop. All readers share one copy. It is brought up to date when somebody asks, and at
// most ten times a second: the loop copies columns of numbers and pointers, and what changed is
// found elsewhere. A Snapshot knows at which revision each node changed, so that a reader who has
// one revision is told the rest.
package snapshot
