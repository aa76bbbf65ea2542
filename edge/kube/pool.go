package kube

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/berth-scheduler/berth/core/recovered"
)

// job is a piece of work. It must return soon after its context ends.
type job func(ctx context.Context)

// pool runs queued jobs in order, at most places of them at a time. A job whose request
// takes longer than slowAfter stops counting, so that slow requests do not hold up those
// behind them.
type pool struct {
	ctx       context.Context // of all jobs; holds the pool for placesTransport
	cancel    context.CancelFunc
	wg        sync.WaitGroup
	places    int           // jobs at a time, without those whose request is slow
	limit     int           // longest queue, 0: no limit
	slowAfter time.Duration // how long a request keeps its place, 0: to its end

	mu     sync.Mutex
	queue  []job
	taken  int  // places in use; more than places after slow requests have returned
	closed bool // submit takes no more
}

// poolKey is the context key of the pool that runs a request's job. placesTransport reads
// it, to give up the job's place in the pool while the request is slow.
type poolKey struct{}

// newPool returns a pool that runs up to places jobs at a time and works until it is
// closed. limit is the longest queue (0: any); slowAfter is how long a request keeps
// its job's place (0: to its end).
func newPool(places, limit int, slowAfter time.Duration) *pool {
	p := &pool{places: places, limit: limit, slowAfter: slowAfter}
	p.ctx, p.cancel = context.WithCancel(context.WithValue(context.Background(), poolKey{}, p))
	return p
}

// submit queues a job, or returns false if the queue is full or closed. It never waits.
func (p *pool) submit(j job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.limit > 0 && len(p.queue) >= p.limit {
		return false
	}
	p.queue = append(p.queue, j)
	p.start()
	return true
}

// start starts a worker if a place is free and a job waits. The caller holds mu.
func (p *pool) start() {
	if p.taken < p.places && len(p.queue) > 0 {
		p.taken++
		p.wg.Go(p.run)
	}
}

// run is a worker: it runs jobs until next returns none.
func (p *pool) run() {
	for {
		j := p.next()
		if j == nil {
			return
		}
		j(p.ctx)
	}
}

// next removes the first job from the queue. It returns nil, and frees the worker's place,
// if none is left or more places are taken than there are.
func (p *pool) next() job {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 || p.taken > p.places {
		p.taken--
		return nil
	}
	j := p.queue[0]
	p.queue[0] = nil
	p.queue = p.queue[1:]
	return j
}

// giveUpPlace starts a timer that frees the caller's place for another worker when a
// request takes longer than slowAfter. Call back when the request has ended: it stops the
// timer, or takes a place again without waiting, even if none is free.
func (p *pool) giveUpPlace() (back func()) {
	if p.slowAfter == 0 {
		return func() {}
	}
	given, over := false, false
	timer := time.AfterFunc(p.slowAfter, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !over {
			given = true
			p.taken--
			p.start()
		}
	})
	return func() {
		timer.Stop()
		p.mu.Lock()
		defer p.mu.Unlock()
		over = true
		if given {
			p.taken++
		}
	}
}

// placesTransport frees the place of a job in its pool while the server takes long to
// answer the job's request. The wait for the rate limiter, which comes before, does not
// count: other jobs would only wait there, too.
type placesTransport struct{ http.RoundTripper }

// RoundTrip sends the request and waits for the head of the answer.
func (t placesTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if p, ok := r.Context().Value(poolKey{}).(*pool); ok {
		defer p.giveUpPlace()()
	}
	return t.RoundTripper.RoundTrip(r)
}

// WrappedRoundTripper returns the transport inside. client-go calls it to find the
// connections.
func (t placesTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// contained runs f, which carries out an effect or a part of it, and returns its error. what
// names the effect. A panic of f is returned as an error, which leaves open what became of
// the request.
func contained(what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = recovered.From(what, r).WithStack()
		}
	}()
	return f()
}

// waiting returns the length of the queue: jobs that no worker has begun.
func (p *pool) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue)
}

// nearlyFull reports whether the queue is at nine tenths of its limit, or closed.
func (p *pool) nearlyFull() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed || p.limit > 0 && len(p.queue) >= p.limit-p.limit/10
}

// close makes submit reject jobs. With drop, the queue is emptied too; jobs that run are
// not disturbed.
func (p *pool) close(drop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if drop {
		p.queue = nil
	}
}

// wait waits until a closed pool has run all its jobs, or until ctx ends. Then it drops the jobs
// that are still queued, cancels those that run, and waits for them to return.
func (p *pool) wait(ctx context.Context) {
	done := make(chan struct{})
	go func() { p.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
	p.close(true)
	p.cancel()
	<-done
}
