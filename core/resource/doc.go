// Package resource counts what pods request and what nodes offer, as vectors of
// int64 in fixed units (milli-CPU, bytes, pieces). It holds the one formula for
// the requests of a pod. All arithmetic saturates: an absurd quantity stays
// absurd and never wraps around.
package resource
