package chaos

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	podresource "k8s.io/component-helpers/resource"
)

// tolerance is how long a node may seem to have more than its room: when a watch
// was lost, its successor tells of what came before it tells of what went.
const tolerance = 2 * time.Second

// history follows what the API shows of pods, change by change, and notes what
// must never be: a node with more than its room, a pod that changes its node.
type history struct {
	room int64 // of each node, in thousandths of a CPU

	mu      sync.Mutex
	pods    map[string]placed    // by UID
	used    map[string]int64     // by node
	over    map[string]time.Time // since when a node has more than its room
	faults  []string
	changes int // that were seen
	stop    context.CancelFunc
}

// placed is a pod as last seen.
type placed struct {
	name, node string
	cpu        int64
}

// watch follows the pods from now on. After a restore it is called again: what
// was seen before is no longer so.
func (h *history) watch(ctx context.Context, client kubernetes.Interface) error {
	if h.stop != nil {
		h.stop()
	}
	ctx, h.stop = context.WithCancel(ctx)
	h.mu.Lock()
	h.pods, h.used, h.over = map[string]placed{}, map[string]int64{}, map[string]time.Time{}
	h.mu.Unlock()
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	handler := func(now any) {
		if p, ok := now.(*corev1.Pod); ok && ctx.Err() == nil {
			h.see(p)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    handler,
		UpdateFunc: func(_, now any) { handler(now) },
		DeleteFunc: func(last any) {
			if tombstone, ok := last.(cache.DeletedFinalStateUnknown); ok {
				last = tombstone.Obj
			}
			if p, ok := last.(*corev1.Pod); ok && ctx.Err() == nil {
				h.forget(p)
			}
		},
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("watching pods: %w", context.Cause(ctx))
	}
	return nil
}

func (h *history) see(p *corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes++
	requests := podresource.PodRequests(p, podresource.PodResourcesOptions{})
	now := placed{p.Name, p.Spec.NodeName, requests.Cpu().MilliValue()}
	before := h.pods[string(p.UID)]
	h.pods[string(p.UID)] = now
	if before.node == now.node {
		return
	}
	if before.node != "" {
		h.faults = append(h.faults, fmt.Sprintf("pod %s was on %s and is on %q", now.name, before.node, now.node))
		h.take(before.node, -before.cpu)
	}
	h.take(now.node, now.cpu)
}

// take adds to what is used of a node.
func (h *history) take(node string, cpu int64) {
	h.used[node] += cpu
	if node == "" || h.used[node] <= h.room {
		delete(h.over, node)
	} else if _, known := h.over[node]; !known {
		h.over[node] = time.Now()
	}
}

// look notes the nodes that have had more than their room for too long.
func (h *history) look(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for node, since := range h.over { // any order: each is a fault
		if now.Sub(since) > tolerance {
			h.faults = append(h.faults, fmt.Sprintf("node %s has had %d of %d millicores taken since %s", node, h.used[node], h.room, since.Format(time.TimeOnly)))
			h.over[node] = now.Add(time.Hour) // told once
		}
	}
}

func (h *history) forget(p *corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes++
	last, ok := h.pods[string(p.UID)]
	if !ok {
		return
	}
	delete(h.pods, string(p.UID))
	if last.node != "" {
		h.take(last.node, -last.cpu)
	}
}

// pending names the pods that have no node.
func (h *history) pending() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for _, p := range h.pods { // any order: they are counted, and some are shown
		if p.node == "" {
			names = append(names, p.name)
		}
	}
	return names
}

// found is what must not have been.
func (h *history) found() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.faults...)
}
