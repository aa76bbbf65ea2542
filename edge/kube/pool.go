package kube

import (
	"context"
	"sync"
)

// job is a piece of work; it ends soon when its context does.
type job func(ctx context.Context)

// pool is a queue of jobs and a fixed number of goroutines that take them in
// order. How long the queue gets is up to who submits.
type pool struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	work   sync.Cond
	queue  []job
	limit  int // longest queue, 0: no limit
	closed bool
}

func newPool(workers, limit int) *pool {
	p := &pool{limit: limit}
	p.work.L = &p.mu
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for range workers {
		p.wg.Go(p.run)
	}
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
	p.work.Signal()
	return true
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

// next waits for a job; nil when the pool is closed and nothing is left.
func (p *pool) next() job {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 {
		if p.closed {
			return nil
		}
		p.work.Wait()
	}
	j := p.queue[0]
	p.queue[0] = nil
	p.queue = p.queue[1:]
	return j
}

// crowded tells that the queue is nearly full, or closed.
func (p *pool) crowded() bool {
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
	p.work.Broadcast()
}

// wait lets a closed pool work until it has nothing left or ctx ends, then
// cancels what is still running and waits for it.
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
