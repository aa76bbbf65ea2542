package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/lab/cluster"
)

const (
	// healed is how long everything may take to come right when the faults are
	// over: the lease runs out, backoffs end, status patches are tried again.
	healed = 2 * time.Minute
	// quiet is how long nothing may be written then, after a first while in which
	// late events arrive.
	quiet, lateEvents = 30 * time.Second, 15 * time.Second
)

// Result is what a run has come to.
type Result struct {
	Seed             uint64
	Faults           map[string]int // by kind
	Created, Deleted int64
	Changes          int           // of pods that were seen
	Bindings         int           // that replicas sent
	Settled          time.Duration // from the last fault until every pod was bound
	Left             int           // how often a replica ended by itself, as it had lost the lease
	PeakMiB          float64       // of the replica that took most, at the end
	Violations       []string
}

// Run lets the enemy rage for a time and checks what happened.
func Run(ctx context.Context, log io.Writer, o Options) (*Result, error) {
	c, err := cluster.Start(ctx, cluster.Options{Dir: o.Dir, WithoutKWOK: true, WithoutControllers: true})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	w := &workload{client: c.Client(), nodes: makeNodes(o.Nodes), random: rand.New(rand.NewPCG(o.Seed, 1))}
	h := &history{room: podsPerNode * 1000}
	if err := prepare(ctx, c, w, h); err != nil {
		return nil, err
	}
	var replicas []*replica
	for i := range o.Replicas {
		r, err := newReplica(c, i, o.Binary)
		if err != nil {
			return nil, err
		}
		defer r.proxy.Close()
		if err := r.start(ctx); err != nil {
			return nil, err
		}
		replicas = append(replicas, r)
	}
	e := &enemy{cluster: c, replicas: replicas, random: rand.New(rand.NewPCG(o.Seed, 2)), faults: chosen(o.Only, o.Next), other: o.Next, log: log, begin: time.Now(),
		restored: func(ctx context.Context) error { return h.watch(ctx, c.Client()) }}
	return e.play(ctx, o, w, h)
}

func prepare(ctx context.Context, c *cluster.Cluster, w *workload, h *history) error {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := c.Client().CoreV1().Namespaces().Create(ctx, n, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := c.CreateNodes(ctx, w.nodes); err != nil {
		return err
	}
	return h.watch(ctx, c.Client())
}

// play runs workload and enemy for the time, and then looks at the end.
func (e *enemy) play(ctx context.Context, o Options, w *workload, h *history) (*Result, error) {
	supervised, end := context.WithCancel(ctx)
	var supervisor sync.WaitGroup
	supervisor.Go(func() { e.supervise(supervised) })
	defer supervisor.Wait()
	defer end()
	raging, cancel := context.WithTimeout(ctx, o.Time)
	defer cancel()
	var together sync.WaitGroup
	together.Go(func() { w.run(raging) })
	together.Go(func() { everySecond(raging, h.look) })
	err := e.run(raging)
	cancel()
	together.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	e.say("all faults are healed")
	r := &Result{Seed: o.Seed, Faults: e.counts, Created: w.created.Load(), Deleted: w.deleted.Load()}
	settled := time.Now()
	if err := w.settle(ctx); err != nil {
		return nil, err
	}
	pending := h.await(ctx, healed)
	r.Settled = time.Since(settled)
	if len(pending) > 0 {
		slices.Sort(pending)
		r.Violations = append(r.Violations, fmt.Sprintf("%d pods that fit are not bound after %s, as %s", len(pending), healed, pending[0]))
	}
	r.Violations = append(r.Violations, e.silence(ctx)...)
	h.look(time.Now())
	r.Violations = append(r.Violations, h.found()...)
	all := requests(e.replicas)
	r.Violations = append(r.Violations, unleased(all)...)
	for _, x := range all {
		if x.binding() {
			r.Bindings++
		}
	}
	r.Changes = h.changes
	over, err := e.cluster.Overcommitted(ctx)
	r.Violations = append(r.Violations, over...)
	for _, x := range e.replicas {
		left, deaths := x.ends()
		r.Left += left
		r.Violations = append(r.Violations, deaths...)
	}
	r.PeakMiB = e.peak()
	return r, errors.Join(err, context.Cause(ctx))
}

func everySecond(ctx context.Context, f func(time.Time)) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			f(now)
		case <-ctx.Done():
			return
		}
	}
}

// supervise starts the replicas that end by themselves again, as a kubelet does.
func (e *enemy) supervise(ctx context.Context) {
	var all sync.WaitGroup
	for _, r := range e.replicas {
		all.Go(func() {
			everySecond(ctx, func(time.Time) {
				if err := r.revive(ctx); err != nil && ctx.Err() == nil {
					e.say("%v", err)
				}
			})
		})
	}
	all.Wait()
}

// await waits until every pod has a node and returns those that have none.
func (h *history) await(ctx context.Context, most time.Duration) []string {
	end := time.Now().Add(most)
	for {
		pending := h.pending()
		if len(pending) == 0 || time.Now().After(end) || ctx.Err() != nil {
			return pending
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// silence says which writes there are when nothing happens any more.
func (e *enemy) silence(ctx context.Context) []string {
	e.pause(ctx, lateEvents, lateEvents+1)
	since := time.Now()
	e.pause(ctx, quiet, quiet+1)
	var found []string
	for _, r := range writes(requests(e.replicas), since) {
		found = append(found, fmt.Sprintf("replica %d wrote in the silence: %s %s", r.replica, r.Method, r.Path))
	}
	return found
}

// peak is the most memory that a living replica has taken, in MiB.
func (e *enemy) peak() float64 {
	most := 0.0
	for _, r := range e.replicas {
		if p := r.running(); p != nil {
			if u, err := p.Usage(); err == nil {
				most = max(most, float64(u.PeakRSS)/(1<<20))
			}
		}
	}
	return most
}
