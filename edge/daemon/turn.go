package daemon

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/berth-scheduler/berth/edge/kube"
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
// that former leaders wrote. A leader that did not wait would give away room that they
// have taken, if its watches lag. A state of the cluster is read when nobody else
// can write, which may be before the lease is won, and the watches have to show it.
// It reports false when the context ended first.
func (d *Daemon) catchUp(ctx context.Context) bool {
	for ctx.Err() == nil {
		if d.lease == nil {
			return d.showAll(ctx, nil) && d.settle(func() { close(d.leads) })
		}
		v := d.lease.Vacant(ctx)
		if v == nil {
			return false
		}
		if d.showAll(lasting(ctx, v), v.Shown) && d.won(ctx, v) {
			return d.settle(func() { close(d.leads) })
		}
	}
	return false
}

// settle does what decides, once, whether this process decides or leaves the lease. It
// reports false if that was decided before.
func (d *Daemon) settle(as func()) bool {
	first := d.settled.CompareAndSwap(false, true)
	if first {
		as()
	}
	return first
}

// unreadableLimit is how long a leader tries to read what it has to know.
const unreadableLimit = 30 * time.Second

// leaveUnread leaves the lease if for a while cannot be read what decisions need, or
// what a former leader wrote: another may be able to. Nothing has been sent yet. It
// looks once a second.
func (d *Daemon) leaveUnread(ctx context.Context, look <-chan time.Time, leave context.CancelCauseFunc) {
	var unreadable []kube.Missing
	for failing := time.Duration(0); failing < unreadableLimit; failing += time.Second {
		select {
		case <-look:
		case <-d.leads:
			return
		case <-ctx.Done():
			return
		}
		if unreadable = d.watcher.Unreadable(); len(unreadable) == 0 {
			failing = 0
		}
	}
	d.settle(func() {
		d.over.Store(true)
		leave(fmt.Errorf("the cluster cannot be read: %s", strings.Join(named(unreadable), "; ")))
	})
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

// showAll waits until the machine knows what is written now. Where the watches
// have come as far as those of the leader had that gave the lease up, it does.
func (d *Daemon) showAll(ctx context.Context, leader map[string]string) bool {
	if d.isSynced() && leader != nil && d.watcher.HasShown(leader) {
		return d.loop.Inspect(ctx, func() {}) == nil
	}
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
		return fmt.Errorf("the watches have not shown the writes of the former leader yet: %s", strings.Join(behind, "; "))
	}
	return nil
}

// shownPoll is the time between two looks at whether all is shown that was written.
const shownPoll = 10 * time.Millisecond

// handOver leaves word for the next leader of how far it has to know the cluster,
// when the watches show all that this one wrote. Without word the next one finds
// out by itself, which takes longer.
func (d *Daemon) handOver(ctx context.Context) {
	if !d.over.Load() || d.hosts != nil { // nobody knows what hosted plugins write
		return
	}
	select {
	case <-d.leads:
	default:
		return
	}
	look := time.NewTicker(shownPoll)
	defer look.Stop()
	for {
		if shown := d.allShown(ctx); shown != nil {
			d.lease.HandOver(shown)
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// allShown is how far the watches have come, if they have shown all that this
// leader wrote; else nil.
func (d *Daemon) allShown(ctx context.Context) map[string]string {
	unshown := 0
	if d.loop.Inspect(ctx, func() { unshown = d.machine.Unshown() }) != nil || unshown > 0 || d.executor.Counters().Nominations > 0 {
		return nil
	}
	shown := d.watcher.Shown()                            // what the machine was told of is in it
	for resource, version := range d.executor.Replied() { // any order: all are
		if !kube.AsFar(shown[resource], version) {
			return nil
		}
	}
	return shown
}
