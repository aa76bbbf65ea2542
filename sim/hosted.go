package sim

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/compat"
)

// NewWorldOf returns an empty world with a scheduler of its own.
func NewWorldOf(s *Scheduler, o machine.Options, start time.Time) (*World, error) {
	if !s.Hosts() {
		return NewWorld(o, start), nil
	}
	profiles, hosts, err := s.build()
	if err != nil {
		return nil, err
	}
	o.Profiles = profiles
	w := NewWorld(o, start)
	w.hosted = &hosted{hosts: hosts, pods: map[string]*v1.Pod{}, nodes: map[string]*v1.Node{}}
	hosts.Connect(w.Machine, w.hosted)
	return w, nil
}

// Close ends what the world's plugins were given to run on.
func (w *World) Close() {
	if w.hosted != nil {
		w.hosted.hosts.Close()
	}
}

// hosted are a world's hosted plugins. What they say from goroutines of their own is
// heard between two steps.
type hosted struct {
	hosts *compat.Hosts
	pods  map[string]*v1.Pod // that informers have, by namespace/name
	nodes map[string]*v1.Node

	mu     sync.Mutex
	events []machine.Event
	looks  []func()
}

// Report keeps the event for the next step.
func (h *hosted) Report(e machine.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// Post keeps the event for the next step.
func (h *hosted) Post(e machine.Event) { h.Report(e) }

// Inspect runs look between two steps.
func (h *hosted) Inspect(ctx context.Context, look func()) error {
	done := make(chan struct{})
	h.mu.Lock()
	h.looks = append(h.looks, func() { defer close(done); look() })
	h.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// heard answers the questions of plugins and returns what they said since.
func (h *hosted) heard() []machine.Event {
	h.mu.Lock()
	looks := h.looks
	h.looks = nil
	h.mu.Unlock()
	for _, look := range looks {
		look()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	events := h.events
	h.events = nil
	return events
}

// tell has informers know what the machine is about to hear.
func (h *hosted) tell(e machine.Event) {
	switch e := e.(type) {
	case machine.PodSet:
		p := compat.APIPod(e.Pod)
		h.feed(orNil(h.pods[e.Pod.Key()]), p)
		h.pods[e.Pod.Key()] = p
	case machine.PodGone:
		key := e.Namespace + "/" + e.Name
		if old := h.pods[key]; old != nil {
			h.feed(old, nil)
		}
		delete(h.pods, key)
	case machine.NodeSet:
		n := compat.APINode(e.Node)
		h.feed(orNil(h.nodes[n.Name]), n)
		h.nodes[n.Name] = n
	case machine.NodeGone:
		if old := h.nodes[e.Name]; old != nil {
			h.feed(old, nil)
		}
		delete(h.nodes, e.Name)
	}
}

// orNil returns the object, or nil without a type for none.
func orNil[T interface {
	runtime.Object
	comparable
}](o T) runtime.Object {
	var none T
	if o == none {
		return nil
	}
	return o
}

func (h *hosted) feed(old, now runtime.Object) {
	if err := h.hosts.Feed(old, now); err != nil {
		klog.Background().Error(err, "Plugins were not told of an object")
	}
}

// runPlugins answers for the plugins that would act on the cluster. None of them is called:
// PreBind is taken to succeed, and the virtual cluster binds in place of Bind.
func (w *World) runPlugins(e machine.RunPlugins) machine.Event {
	switch e.Point {
	case "PreBind":
		return machine.PreBindReply{UID: e.Pod.UID}
	case "Bind":
		return w.bind(e.Pod, e.Node)
	}
	return nil
}
