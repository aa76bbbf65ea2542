package machine

import (
	"container/list"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/table"
)

// podState holds all that the machine knows of one pod, except for what the table knows
// of a placed one. An event looks it up once; forget removes it.
type podState struct {
	pod *object.Pod // as the API showed it last
	// entry is the pod in the queue, nil when it is not there.
	entry *queue.Entry
	// request is what the engine is asked for the pod, with the pod's class; nil
	// when the pod does not wait to be scheduled.
	request *engine.Request
	// extender is the attempt that waits for an extender, nil when none does.
	extender *extenderCycle
	// binding is the pod's binding cycle, nil when there is none.
	binding *bindingCycle
	// ended is a binding cycle that ended before the reply to what it sent.
	ended *bindingCycle
	// assumed: the pod is placed on our word alone; the API has not shown it
	// bound yet.
	assumed bool
	// unconfirmed is about its binding, nil when there is none.
	unconfirmed *unconfirmedBinding
	// staleRead: etcd was restored since a read of the pod was sent, so that the answer
	// may be of before that.
	staleRead bool
	// goneByRead is set if a read showed the pod to be deleted and the watch has not yet.
	goneByRead *goneByRead
	// toldGated: a Gated record was given for the pod.
	toldGated bool
	// nominating is the nomination that the API was asked to write and does not
	// show yet, nil when there is none.
	nominating *string
	// condition is the condition that the API was asked to set and does not show yet.
	condition *object.Condition
	// stated is the pod's element in conditions, nil if it has none. Its condition was
	// true at statedAt, after statedNews events.
	stated     *list.Element
	statedAt   time.Time
	statedNews uint64
	// preemption is what the pod has preempted last, until these victims are
	// gone; nil when it waits for none.
	preemption *preemption
	// preemptions are those since it was placed last.
	preemptionCount preemptionCount
	// noVictims: the last attempt found nobody whose going would help, because of
	// plugins that rejected the pod as it is.
	noVictims bool
	// eviction is the pod's own, as a victim, nil when it is none.
	eviction *eviction
}

// pods holds the state of every pod that is queued, in a binding cycle or placed, and of
// those gone that a reply is awaited about.
type pods struct {
	table    *table.Table
	profiles profiles

	byUID        map[types.UID]*podState
	byName       map[types.NamespacedName]*podState // those that are not gone
	assumedCount int
}

// placed reports whether the pod is on a node in the table, bound or assumed.
func (x *pods) placed(ps *podState) bool { return x.table.Pod(ps.pod.UID) != nil }

// state returns a new state for a pod whose name is unknown, or the state that was left
// when the pod was deleted.
func (x *pods) state(p *object.Pod) *podState {
	ps := x.byUID[p.UID]
	if ps == nil {
		ps = &podState{pod: p}
		x.byUID[p.UID] = ps
	}
	x.byName[p.NamespacedName()] = ps
	x.table.Groups().Join(p)
	return ps
}

// entry returns the pod in the queue, nil when it is not there.
func (x *pods) entry(uid types.UID) *queue.Entry {
	if ps := x.byUID[uid]; ps != nil {
		return ps.entry
	}
	return nil
}

// foundNoVictims reports whether the pod's last attempt found nobody to preempt.
func (x *pods) foundNoVictims(p *object.Pod) bool {
	ps := x.byUID[p.UID]
	return ps != nil && ps.noVictims
}

// forget removes the state of a deleted pod, unless a reply about it is outstanding.
func (x *pods) forget(ps *podState) {
	if x.byName[ps.pod.NamespacedName()] != ps && ps.ended == nil && ps.eviction == nil {
		delete(x.byUID, ps.pod.UID)
		x.profiles.endAttempt(ps.pod)
	}
}

func (x *pods) setAssumed(ps *podState, assumed bool) {
	if ps.assumed != assumed {
		ps.assumed = assumed
		if assumed {
			x.assumedCount++
		} else {
			x.assumedCount--
		}
	}
}

// sorted returns the states of all pods, sorted by UID.
func (x *pods) sorted() []*podState {
	states := make([]*podState, 0, len(x.byUID))
	for _, ps := range x.byUID { // any order: sorted below
		states = append(states, ps)
	}
	slices.SortFunc(states, func(a, b *podState) int { return strings.Compare(string(a.pod.UID), string(b.pod.UID)) })
	return states
}

// underway is what is under way for pods, sorted by UID.
type underway[T interface {
	comparable
	uid() types.UID
}] []T

func (l underway[T]) find(x T) (int, bool) {
	return slices.BinarySearchFunc(l, x.uid(), func(y T, uid types.UID) int {
		return strings.Compare(string(y.uid()), string(uid))
	})
}

func (l *underway[T]) add(x T) {
	at, _ := l.find(x)
	*l = slices.Insert(*l, at, x)
}

func (l *underway[T]) remove(x T) {
	if at, ok := l.find(x); ok && (*l)[at] == x {
		*l = slices.Delete(*l, at, at+1)
	}
}
