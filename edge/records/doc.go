// Package records keeps what happened to pods in the scheduler: every attempt and
// every move in the queue. The loop's goroutine notes it; another one writes it down;
// any may read, and sees all that was noted. The records are bytes in a log of a
// bounded size, the oldest of which go first, but for the last attempt of each pod
// that waits. Handler serves them under /berth/v1/.
package records
