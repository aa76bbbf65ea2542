package par

import (
	"sync"

	"github.com/berth-scheduler/berth/core/recovered"
)

// Range is the half-open interval [From, To) of rows.
type Range struct{ From, To int }

// Len is the number of rows in the range.
func (r Range) Len() int { return r.To - r.From }

// Rows calls f on disjoint ranges that cover [0, n), on at most workers
// goroutines, none of which gets fewer than grain rows (except for the last
// remainder). It returns when all are done. A panic in f is raised again in
// the caller: as a *recovered.Panic, if there is more than one worker.
func Rows(n, workers, grain int, f func(Range)) {
	workers = min(workers, n/max(grain, 1))
	if workers <= 1 {
		if n > 0 {
			f(Range{0, n})
		}
		return
	}
	each(workers, func(w int) { f(Range{n * w / workers, n * (w + 1) / workers}) })
}

// Each calls f(0) .. f(n-1), each on a goroutine of its own when workers
// allows more than one, and returns when all are done.
func Each(n, workers int, f func(int)) {
	if workers <= 1 || n <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	each(n, f)
}

func each(n int, f func(int)) {
	var wg sync.WaitGroup
	raised := make([]*recovered.Panic, n)
	run := func(i int) {
		defer func() {
			if value := recover(); value != nil {
				raised[i] = recovered.From("", value).WithStack()
			}
		}()
		f(i)
	}
	for i := 1; i < n; i++ {
		wg.Go(func() { run(i) })
	}
	run(0)
	wg.Wait()
	for _, p := range raised {
		if p != nil {
			panic(p)
		}
	}
}
