package records

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// Bounds of what is kept and said of pods that ask for other schedulers.
const (
	mostOthers = 10_000 // pods
	mostAsked  = 5      // names of schedulers that are said
)

// Others counts pods without a node that ask for schedulers other than this one.
type Others struct {
	Pods int `json:"pods"`
	// More is set if there may be pods that are not counted, because there were too many at a time.
	More bool `json:"more,omitempty"`
	// Schedulers are the names that most of the pods ask for, Names is how many there are at all.
	Schedulers []OtherScheduler `json:"schedulers"`
	Names      int              `json:"names"`
	// Profiles are the names of this scheduler.
	Profiles []string `json:"profiles"`
}

// OtherScheduler is a name that pods ask for.
type OtherScheduler struct {
	Name string `json:"name"`
	Pods int    `json:"pods"`
}

// OtherPod is a pod without a node that asks for another scheduler.
type OtherPod struct {
	Pod       types.NamespacedName
	UID       types.UID
	Scheduler string
	Created   time.Time
	Seen      time.Time // when the recorder heard of it first
}

// others are the pods without a node that ask for other schedulers. The loop's goroutine alone writes.
type others struct {
	profiles map[string]bool // never written after Watch

	mu     sync.RWMutex
	pods   map[types.NamespacedName]OtherPod
	names  map[string]int // of pods, by scheduler
	missed bool           // a pod was left out
}

// observe updates the pods for the event. It looks at no pod that has a node or asks for this scheduler
// while no other one is kept.
func (o *others) observe(now time.Time, e machine.Event) {
	switch e := e.(type) {
	case machine.PodSet:
		switch p := e.Pod; {
		case p.NodeName == "" && !p.Terminal && !p.Terminating && o.profiles != nil && !o.profiles[p.SchedulerName]:
			o.set(now, p)
		case len(o.pods) > 0:
			o.remove(p.NamespacedName())
		}
	case machine.PodGone:
		if len(o.pods) > 0 {
			o.remove(types.NamespacedName{Namespace: e.Namespace, Name: e.Name})
		}
	}
}

// set keeps the pod. Its strings are copied, as they may be parts of a whole answer of the API server.
func (o *others) set(now time.Time, p *object.Pod) {
	name := p.NamespacedName()
	if was, kept := o.pods[name]; kept && was.UID == p.UID && was.Scheduler == p.SchedulerName {
		return
	}
	o.remove(name)
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.pods) >= mostOthers {
		o.missed = true
		return
	}
	if o.pods == nil {
		o.pods, o.names = map[types.NamespacedName]OtherPod{}, map[string]int{}
	}
	name = types.NamespacedName{Namespace: strings.Clone(name.Namespace), Name: strings.Clone(name.Name)}
	of := OtherPod{name, types.UID(strings.Clone(string(p.UID))), strings.Clone(p.SchedulerName), p.Created, now}
	o.pods[name] = of
	o.names[of.Scheduler]++
}

func (o *others) remove(name types.NamespacedName) {
	was, kept := o.pods[name]
	if !kept {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.pods, name)
	if o.names[was.Scheduler]--; o.names[was.Scheduler] == 0 {
		delete(o.names, was.Scheduler)
	}
}

// Others counts the pods without a node that ask for other schedulers; nil if there are none.
func (r *Recorder) Others() *Others {
	o := &r.others
	o.mu.RLock()
	defer o.mu.RUnlock()
	if len(o.pods) == 0 {
		return nil
	}
	a := &Others{Pods: len(o.pods), More: o.missed, Names: len(o.names), Profiles: slices.Sorted(maps.Keys(o.profiles))}
	for name, pods := range o.names { // any order: sorted below
		a.Schedulers = append(a.Schedulers, OtherScheduler{name, pods})
	}
	slices.SortFunc(a.Schedulers, func(a, b OtherScheduler) int { return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Name, b.Name)) })
	a.Schedulers = slices.Clip(a.Schedulers[:min(mostAsked, len(a.Schedulers))])
	return a
}

// OtherPods returns the pods without a node that ask for other schedulers, in no order.
func (r *Recorder) OtherPods() []OtherPod {
	o := &r.others
	o.mu.RLock()
	defer o.mu.RUnlock()
	return slices.Collect(maps.Values(o.pods))
}
