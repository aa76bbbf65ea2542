package kube

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/berth-scheduler/berth/core/recovered"
)

// job is a piece of work; it ends soon when its context does.
type job func(ctx context.Context)

// pool is a queue of jobs and workers that take them in order, a place for each.
// A worker whose request takes long gives its place to another, so that slow
// requests do not hold up those behind them. How long the queue gets is up to
// who submits.
type pool struct {
	ctx       context.Context // says to requests which pool they belong to
	cancel    context.CancelFunc
	wg        sync.WaitGroup
	places    int
	limit     int           // longest queue, 0: no limit
	slowAfter time.Duration // how long a request keeps a place, 0: to its end

	mu     sync.Mutex
	queue  []job
	taken  int // places; more than there are when some that were given away come back
	closed bool
}

type poolKey struct{}

func newPool(places, limit int, slowAfter time.Duration) *pool {
	p := &pool{places: places, limit: limit, slowAfter: slowAfter}
	p.ctx, p.cancel = context.WithCancel(context.WithValue(context.Background(), poolKey{}, p))
	return p
}

// submit queues a job. It reports false when the queue is full or closed.
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

// start starts a worker if there is a place and work for it.
func (p *pool) start() {
	if p.taken < p.places && len(p.queue) > 0 {
		p.taken++
		p.wg.Go(p.run)
	}
}

func (p *pool) run() {
	for {
		j := p.next()
		if j == nil {
			return
		}
		j(p.ctx)
	}
}

// next takes a job. With none left, or no place for this worker, it is nil and
// the worker ends.
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

// giveUpPlace frees the caller's place for another worker once the request is slow. back
// takes it again.
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

// placesTransport gives away the place of the worker who sends a request
// while the server takes its time. What the request waited for the rate limiter
// does not count: those behind it would only wait there, too.
type placesTransport struct{ http.RoundTripper }

func (t placesTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if p, ok := r.Context().Value(poolKey{}).(*pool); ok {
		defer p.giveUpPlace()()
	}
	return t.RoundTripper.RoundTrip(r)
}

// WrappedRoundTripper returns how client-go finds the connections.
func (t placesTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// contained runs f, a part of what an effect asks for. A panic of it is an error that
// says nothing of what became of the request.
func contained(what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = recovered.From(what, r).WithStack()
		}
	}()
	return f()
}

// waiting returns how many jobs no worker has taken.
func (p *pool) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue)
}

// nearlyFull reports whether the queue is nearly full, or closed.
func (p *pool) nearlyFull() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed || p.limit > 0 && len(p.queue) >= p.limit-p.limit/10
}

// close takes no more jobs; with drop, those that nobody has started on are
// forgotten.
func (p *pool) close(drop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if drop {
		p.queue = nil
	}
}

// wait waits until a closed pool has nothing left or ctx ends, then cancels what still
// runs and waits for it.
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
