package daemon

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/berth-scheduler/berth/edge/lease"
)

// markTime is how long the first lists wait until it is known how far they have
// to come.
const markTime = time.Second

// begin watches the cluster. If nobody leads it first finds out what there is to
// know: lists that begin then show it.
func (d *Daemon) begin(ctx context.Context) {
	c, cancel := context.WithTimeout(ctx, markTime)
	if d.lease == nil || delayed(d.config.Load()) || d.lease.Look(c) {
		ready(c, d.marked)
	}
	cancel()
	if ctx.Err() == nil {
		d.watch(ctx)
	}
}

// catchUp waits until this process leads and the machine has been told of all
// that former leaders wrote. Who does not wait for that gives room away that they
// have taken, if its watches lag. A state of the cluster is read when nobody else
// can write, which may be before the lease is won, and the watches have to show it.
// It reports false when the context ended first.
func (d *Daemon) catchUp(ctx context.Context) bool {
	for ctx.Err() == nil {
		if d.lease == nil {
			if d.showAll(ctx) {
				close(d.leads)
				return true
			}
			return false
		}
		v := d.lease.Vacant(ctx)
		if v == nil {
			return false
		}
		if d.showAll(lasting(ctx, v)) && d.won(ctx, v) {
			close(d.leads)
			return true
		}
	}
	return false
}

// lasting is a context that ends with the vacancy.
func lasting(ctx context.Context, v *lease.Vacancy) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-v.Ended():
		case <-ctx.Done():
		}
	}()
	return ctx
}

// showAll waits until the machine knows what is written now.
func (d *Daemon) showAll(ctx context.Context) bool {
	mark, ok := d.watcher.Mark(ctx)
	if !ok {
		return false
	}
	select {
	case <-d.marked:
	default:
		close(d.marked)
	}
	return ready(ctx, d.synced) && d.watcher.Reach(ctx, mark) && d.loop.Inspect(ctx, func() {}) == nil
}

// won waits until the lease is won in this vacancy.
func (d *Daemon) won(ctx context.Context, v *lease.Vacancy) bool {
	select {
	case <-d.lease.Won():
	case <-v.Ended():
		return false
	case <-ctx.Done():
		return false
	}
	select {
	case <-v.Ended():
		return false
	default:
		return true
	}
}

// behind says what keeps a leader from deciding.
func (d *Daemon) behind() error {
	select {
	case <-d.leads:
		return nil
	default:
	}
	if behind := d.watcher.Behind(); len(behind) > 0 && (d.lease == nil || d.lease.Held()) {
		return fmt.Errorf("the watches have not shown yet what the former leader wrote: %s", strings.Join(behind, "; "))
	}
	return nil
}
