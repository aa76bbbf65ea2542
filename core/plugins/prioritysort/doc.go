// Package prioritysort orders the queue: pods of higher priority first, among
// equals the one that entered the queue first.
package prioritysort
