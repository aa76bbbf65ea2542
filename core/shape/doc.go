// Package shape is how a profile says what a share of something that is taken
// is worth: points of utilization and score, and straight lines between them.
package shape
