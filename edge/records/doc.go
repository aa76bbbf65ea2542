// Package records keeps what happened to pods in the scheduler: every attempt and
// every move in the queue. Recorder writes, from the loop's goroutine alone; others
// read at the same time and never hold it up. The records are bytes in a log of a
// bounded size, the oldest of which go first, except for the last attempt of each pod
// that waits. A History counts them, sample by sample. Package api serves both under /berth/v1/.
package records
