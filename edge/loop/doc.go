// Package loop is the goroutine that owns the machine. What happens outside
// comes in through one inbox; the loop hands it to the machine event by event,
// lets the machine decide on a pod whenever the inbox is empty, and passes on
// the effects. It sleeps when there is nothing to do, and it outlives a panic
// of a single step, whose event it gives again later.
package loop
