// Package records keeps what happened to pods in the scheduler: every attempt and
// every move in the queue. Recorder writes, from the loop's goroutine alone; others
// read at the same time and never hold it up. The records are bytes in a log of a
// bounded size, the oldest of which go first, except for the last attempt of each pod
// that waits. Handler serves them under /berth/v1/.
package records
