// Package machine is the whole scheduler as one value: Step takes the time
// and an event and returns effects. It owns the table, the queue and every
// assumption; it does no I/O, reads no clock and starts no goroutine. The
// same machine runs in the daemon (edge/loop feeds it) and in the simulation
// (sim feeds it with a virtual clock).
package machine
