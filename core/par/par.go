package par

import (
	"sync"
	"sync/atomic"

	"github.com/berth-scheduler/berth/core/recovered"
)

// Range is the half-open interval [From, To) of rows.
type Range struct{ From, To int }

// Rows calls f with disjoint ranges that cover [0, n), in parallel on at most workers
// goroutines, each range about grain rows long or longer. It returns when all calls are done.
// With one worker it calls f itself, once unless n is 0. A panic in f is raised again in the
// caller: as a *recovered.Panic if there is more than one worker.
func Rows(n, workers, grain int, f func(Range)) {
	workers = min(workers, n/max(grain, 1))
	if workers <= 1 {
		if n > 0 {
			f(Range{0, n})
		}
		return
	}
	each(workers, workers, func(w int) { f(Range{n * w / workers, n * (w + 1) / workers}) })
}

// Each calls f for each i in [0, n), in parallel on at most workers goroutines, and returns
// when all calls are done. A goroutine takes the next i when it is done with one, so that a
// slow core delays nothing. f must not depend on which other calls are done. A panic in f is
// raised again in the caller: as a *recovered.Panic if there is more than one worker.
func Each(n, workers int, f func(i int)) {
	if workers = min(workers, n); workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	each(n, workers, f)
}

// each calls f for each i in [0, n) on that many workers, of which the caller is one. If calls
// panic, it does all others, then panics with the *recovered.Panic of the lowest i.
func each(n, workers int, f func(i int)) {
	var wg sync.WaitGroup
	var taken atomic.Int64
	raised := make([]*recovered.Panic, n)
	run := func(i int) {
		defer func() {
			if value := recover(); value != nil {
				raised[i] = recovered.From("", value).WithStack()
			}
		}()
		f(i)
	}
	work := func() {
		for i := int(taken.Add(1)) - 1; i < n; i = int(taken.Add(1)) - 1 {
			run(i)
		}
	}
	for range workers - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	for _, p := range raised {
		if p != nil {
			panic(p)
		}
	}
}
