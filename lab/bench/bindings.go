package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// bindings sees, by a watch, when each expected pod is bound, or first attempted.
type bindings struct {
	mu   sync.Mutex
	pods map[string]*group // by namespace and name
	news chan struct{}     // has a token when something was seen
}

// group is pods that are waited for together. Its maps are by namespace and
// name.
type group struct {
	size      int
	sent      map[string]time.Time // when their creation was
	bound     map[string]time.Time
	attempted map[string]bool        // the bound ones among them
	order     []types.NamespacedName // of the bound ones, first to last
}

func key(p *v1.Pod) string { return p.Namespace + "/" + p.Name }

// stuckAfter is how long nothing may be seen before a run counts as stuck.
const stuckAfter = 2 * time.Minute

// watchBindings watches until the context ends.
func watchBindings(ctx context.Context, client kubernetes.Interface) (*bindings, error) {
	b := &bindings{pods: map[string]*group{}, news: make(chan struct{}, 1)}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    b.see,
		UpdateFunc: func(_, now any) { b.see(now) },
	})
	if err != nil {
		return nil, err
	}
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("watching pods: %w", context.Cause(ctx))
	}
	return b, nil
}

func (b *bindings) see(object any) {
	p, ok := object.(*v1.Pod)
	if !ok || (p.Spec.NodeName == "" && !attempted(p)) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.pods[key(p)]
	if g == nil {
		return
	}
	g.attempted[key(p)] = true
	if _, known := g.bound[key(p)]; p.Spec.NodeName != "" && !known {
		g.bound[key(p)] = time.Now()
		g.order = append(g.order, types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
	}
	select {
	case b.news <- struct{}{}:
	default:
	}
}

// attempted: something was said about the pod's scheduling.
func attempted(p *v1.Pod) bool {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == v1.PodScheduled {
			return true
		}
	}
	return false
}

// expect has the pods, which are yet to be created, watched for as a group.
func (b *bindings) expect(pods []*v1.Pod) *group {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := &group{size: len(pods), sent: make(map[string]time.Time, len(pods)), bound: map[string]time.Time{}, attempted: map[string]bool{}}
	for _, p := range pods {
		b.pods[key(p)] = g
	}
	return g
}

// join adds a pod, which is yet to be created, to the group.
func (b *bindings) join(g *group, p *v1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pods[key(p)] = g
	g.size++
}

// nth returns the pod of the group that was bound after n others.
func (b *bindings) nth(g *group, n int) types.NamespacedName {
	b.mu.Lock()
	defer b.mu.Unlock()
	return g.order[n]
}

// send notes that the pod is being created now.
func (b *bindings) send(g *group, p *v1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g.sent[key(p)] = time.Now()
}

// seen is how many of the group's pods are bound, or attempted.
func (b *bindings) seen(g *group, tried bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if tried {
		return len(g.attempted)
	}
	return len(g.bound)
}

// wait returns when all pods of the group are bound (or attempted, if that is
// enough), or with an error when the scheduler ended or nothing happened for
// a while.
func (b *bindings) wait(ctx context.Context, scheduler *cluster.Scheduler, g *group, tried bool) error {
	return b.waitFor(ctx, scheduler, g, g.size, tried)
}

// waitFor returns when the first n pods of the group are bound.
func (b *bindings) waitFor(ctx context.Context, scheduler *cluster.Scheduler, g *group, n int, tried bool) error {
	what := "bound"
	if tried {
		what = "attempted"
	}
	stuck, last := time.NewTimer(stuckAfter), -1
	defer stuck.Stop()
	for {
		now := b.seen(g, tried)
		if now >= n {
			return nil
		}
		if now > last {
			last = now
			stuck.Reset(stuckAfter)
		}
		select {
		case <-b.news:
		case <-scheduler.Done():
			return fmt.Errorf("the scheduler ended when %d of %d pods were %s", now, n, what)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-stuck.C:
			return fmt.Errorf("no further pod was %s for %s; %d of %d are", what, stuckAfter, now, n)
		}
	}
}

// latencies returns when the last of the groups' pods was bound, and how long
// each bound one took from its creation.
func (b *bindings) latencies(groups []*group) (last time.Time, took []time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range groups {
		for name, at := range g.bound { // any order: they are sorted or compared
			took = append(took, at.Sub(g.sent[name]))
			if at.After(last) {
				last = at
			}
		}
	}
	return last, took
}
