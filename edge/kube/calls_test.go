package kube

import (
	"context"
	"runtime"
	"testing"
)

// TestCallsBeginWhileTheirEndIsAwaited: what one call found out may begin the next, as
// when a pod's PreBind has returned and it is to be bound, while the scheduler stops.
func TestCallsBeginWhileTheirEndIsAwaited(t *testing.T) {
	for i := range 5_000 {
		c := newCalls()
		begun := make(chan struct{})
		go func() {
			defer close(begun)
			for j := range 6 {
				c.start(func(context.Context) {
					for range (i + j) % 7 {
						runtime.Gosched()
					}
				})
				for range i % 5 {
					runtime.Gosched()
				}
			}
		}()
		c.start(func(context.Context) {})
		c.wait(t.Context())
		<-begun
		if c.n != 0 {
			t.Fatalf("%d calls are left", c.n)
		}
	}
}
