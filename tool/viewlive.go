package tool

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// leaderPause is the least time from one search for the scheduler to the next.
const leaderPause = 2 * time.Second

// finder is the way to the scheduler that leads. It is looked for anew once that gives no answer.
type finder struct {
	flags *daemonFlags
	ctx   context.Context // of the command: the way lasts longer than a question

	mu    sync.Mutex // held while the scheduler is looked for
	way   *daemon    // nil: none is known
	tried time.Time
	err   error // of the last search

	learning sync.Mutex
	outage   *outage // as it was read last; nil: it was not
	learned  time.Time
	reading  bool
}

func newFinder(ctx context.Context, flags *daemonFlags) *finder {
	return &finder{flags: flags, ctx: ctx}
}

// find looks for the scheduler, unless the way to it is known or a search has just failed.
func (l *finder) find() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.way != nil || l.err != nil && time.Since(l.tried) < leaderPause {
		return l.err
	}
	l.way, l.err = l.flags.dial(l.ctx)
	l.tried = time.Now()
	return l.err
}

// forget ends a way that leads nowhere, or to a scheduler that does not lead.
func (l *finder) forget(way *daemon) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.way == way && time.Since(l.tried) >= leaderPause {
		way.close()
		l.way = nil
	}
}

func (l *finder) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.way != nil {
		l.way.close()
		l.way = nil
	}
}

// data is a page.Data: what the scheduler answers.
func (l *finder) data(ctx context.Context, what string, query map[string][]string, header http.Header) (*http.Response, error) {
	if err := l.find(); err != nil {
		return nil, l.explained(err)
	}
	l.mu.Lock()
	way := l.way
	l.mu.Unlock()
	if way == nil {
		return nil, errSilent
	}
	stop, cancel := ctx, context.CancelFunc(func() {})
	if what != "watch" {
		ctx, cancel = context.WithTimeoutCause(ctx, way.patience, errSilent)
	}
	reply, err := way.send(ctx, what, url.Values(query), header)
	if err != nil {
		cancel()
		l.forget(way)
		if stop.Err() != nil { // the browser asks no more
			return nil, err
		}
		return nil, l.explained(err)
	}
	if reply.StatusCode == http.StatusServiceUnavailable {
		l.explainLead(way, reply)
		l.forget(way)
	}
	reply.Body = &ending{reply.Body, cancel}
	return reply, nil
}

// ending calls end when the body is closed.
type ending struct {
	io.ReadCloser
	end func()
}

// Close is for io.Closer.
func (e *ending) Close() error {
	e.end()
	return e.ReadCloser.Close()
}
