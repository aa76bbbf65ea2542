// Package lease keeps one scheduler at work among several: it holds a Lease in
// the API server, says whether the lease is still safely held, and gives it up
// when the scheduler stops.
package lease
