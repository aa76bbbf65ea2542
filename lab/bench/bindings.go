package bench

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// bindings sees, by a watch, when each pod is bound, or first attempted.
type bindings struct {
	mu     sync.Mutex
	groups map[string]*group
	news   chan struct{} // has a token when something was seen
}

// group is the pods of one step.
type group struct {
	bound     map[string]time.Time // by name
	attempted map[string]bool      // by name, the bound ones among them
}

// patience is how long nothing may be seen before a run counts as stuck.
const patience = 2 * time.Minute

// watchBindings watches until the context ends.
func watchBindings(ctx context.Context, client kubernetes.Interface) (*bindings, error) {
	b := &bindings{groups: map[string]*group{}, news: make(chan struct{}, 1)}
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
	g := b.group(p.Name[:max(0, strings.LastIndexByte(p.Name, '-'))])
	g.attempted[p.Name] = true
	if _, known := g.bound[p.Name]; p.Spec.NodeName != "" && !known {
		g.bound[p.Name] = time.Now()
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

// group is the one of that name; the lock is held.
func (b *bindings) group(name string) *group {
	g := b.groups[name]
	if g == nil {
		g = &group{map[string]time.Time{}, map[string]bool{}}
		b.groups[name] = g
	}
	return g
}

// seen is how many of the step's pods are bound, or attempted.
func (b *bindings) seen(s *CreatePods, tried bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.group(s.Group); tried {
		return len(g.attempted)
	} else {
		return len(g.bound)
	}
}

// wait returns when all pods of the step are bound (or attempted, if that is
// enough), or with an error when the scheduler ended or nothing happened for
// a while.
func (b *bindings) wait(ctx context.Context, scheduler *cluster.Scheduler, s *CreatePods, tried bool) error {
	what := "bound"
	if tried {
		what = "attempted"
	}
	stuck, last := time.NewTimer(patience), -1
	defer stuck.Stop()
	for {
		now := b.seen(s, tried)
		if now >= s.Count {
			return nil
		}
		if now > last {
			last = now
			stuck.Reset(patience)
		}
		select {
		case <-b.news:
		case <-scheduler.Done():
			return fmt.Errorf("the scheduler ended with %d of %d pods %s", now, s.Count, what)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-stuck.C:
			return fmt.Errorf("no pod was %s for %s; %d of %d are", what, patience, now, s.Count)
		}
	}
}

// latencies returns when the last of the step's pods was bound, and how long
// each took from its creation.
func (b *bindings) latencies(s *CreatePods, created map[string]time.Time) (last time.Time, took []time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, at := range b.group(s.Group).bound {
		took = append(took, at.Sub(created[name]))
		if at.After(last) {
			last = at
		}
	}
	return last, took
}
