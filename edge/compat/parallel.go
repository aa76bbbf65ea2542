package compat

import (
	"sync"
	"sync/atomic"
)

// leastShare is how many nodes are worth a goroutine.
const leastShare = 64

// each runs f for 0..n-1, several at a time where they are many. A panic ends all, on
// the goroutine of the caller.
func (h *Hosts) each(n int, f func(int)) {
	h.share(n, leastShare, f)
}

// inParallel is each for pieces that are worth a goroutine one by one.
func (h *Hosts) inParallel(n int, f func(int)) { h.share(n, 1, f) }

func (h *Hosts) share(n, least int, f func(int)) {
	workers := min(h.options.Parallelism, n/least)
	if workers < 2 {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	var group sync.WaitGroup
	var failed atomic.Pointer[error]
	for range workers {
		group.Go(func() {
			err := errExited // until proven otherwise: f may end the goroutine
			defer func() {
				if err != nil {
					failed.Store(&err)
				}
			}()
			err = contain(func() {
				for failed.Load() == nil {
					from := int(next.Add(int64(least))) - least
					for i := from; i < min(from+least, n); i++ {
						f(i)
					}
					if from >= n {
						return
					}
				}
			})
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		panic(*err)
	}
}
