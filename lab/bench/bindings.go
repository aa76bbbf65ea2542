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

// bindings sees, by a watch, when each pod of a step is bound.
type bindings struct {
	prefix string
	want   int
	cancel context.CancelFunc

	mu    sync.Mutex
	bound map[string]time.Time
	done  chan struct{} // closed when all are bound
}

// patience is how long no pod may be bound before a run counts as stuck.
const patience = 2 * time.Minute

func watchBindings(ctx context.Context, client kubernetes.Interface, prefix string, want int) (*bindings, error) {
	watching, cancel := context.WithCancel(ctx)
	b := &bindings{prefix: prefix + "-", want: want, cancel: cancel, bound: make(map[string]time.Time, want), done: make(chan struct{})}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    b.see,
		UpdateFunc: func(_, now any) { b.see(now) },
	})
	if err != nil {
		cancel()
		return nil, err
	}
	factory.Start(watching.Done())
	if !cache.WaitForCacheSync(watching.Done(), informer.HasSynced) {
		cancel()
		return nil, fmt.Errorf("watching pods: %w", ctx.Err())
	}
	return b, nil
}

func (b *bindings) stop() { b.cancel() }

func (b *bindings) see(object any) {
	p, ok := object.(*v1.Pod)
	if !ok || p.Spec.NodeName == "" || !strings.HasPrefix(p.Name, b.prefix) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.bound[p.Name]; known {
		return
	}
	b.bound[p.Name] = time.Now()
	if len(b.bound) == b.want {
		close(b.done)
	}
}

func (b *bindings) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.bound)
}

// wait returns when all pods are bound, or with an error when the scheduler
// ended or none was bound for a while.
func (b *bindings) wait(ctx context.Context, s *cluster.Scheduler) error {
	if b.want == 0 {
		return nil
	}
	last := 0
	for {
		select {
		case <-b.done:
			return nil
		case <-s.Done():
			return fmt.Errorf("the scheduler ended with %d of %d pods bound", b.count(), b.want)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(patience):
			now := b.count()
			if now == last {
				return fmt.Errorf("no pod was bound for %s; %d of %d are", patience, now, b.want)
			}
			last = now
		}
	}
}

// latencies returns when the last pod was bound, and how long each took from
// its creation.
func (b *bindings) latencies(created map[string]time.Time) (last time.Time, took []time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, at := range b.bound {
		took = append(took, at.Sub(created[name]))
		if at.After(last) {
			last = at
		}
	}
	return last, took
}
