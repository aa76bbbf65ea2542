package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
)

// withGroups returns options of a queue whose groups all exist, with priority 1.
func withGroups(o *Options) {
	o.PodGroup = func(types.NamespacedName) *object.PodGroup { return &object.PodGroup{Priority: 1} }
}

func inGroup(name string) func(*object.Pod) {
	return func(p *object.Pod) { p.SchedulingGroup = object.InPodGroup(name) }
}

func groupNamed(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: name}
}

// popAll pops the pods of a group and returns their names, in order.
func (b *bench) popAll(now time.Time) (names []string) {
	b.Helper()
	for _, e := range b.Pop(now).Group() {
		names = append(names, e.Pod.Name)
	}
	return names
}

// rejectAll pops a group of which the plugins reject all pods, and ends its attempt.
func (b *bench) rejectAll(now time.Time, group string, result GroupResult, plugins ...string) {
	b.Helper()
	e := b.Pop(now)
	if e == nil {
		b.Fatalf("nothing to pop\n%s", b)
	}
	for _, e := range slices.Clone(e.Group()) {
		b.Queue.Requeue(now, e, plugins, nil)
	}
	b.EndGroup(now, groupNamed(group), result)
}

// A pod whose group gets another name waits with that group, wherever the two are, and the
// first group goes on without it.
func TestGroupOfAPodChanges(t *testing.T) {
	b := newBench(t, withGroups)
	b.Add(start, pod("a", inGroup("g")))
	b.Add(start, pod("b", inGroup("g")))
	b.Add(start, pod("c", inGroup("h"), gated))
	b.Update(start, pod("b", inGroup("h")))
	b.want("a", Active)
	b.want("b", Gated)
	b.Update(start, pod("b"))
	b.want("b", Active)
	b.want("c", Gated)
	b.Update(start, pod("b", inGroup("g")))
	if got := b.popAll(start); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("popped %v", got)
	}

	b.Update(start, pod("b", inGroup("h"))) // in flight
	b.Update(start, pod("c", inGroup("h")))
	for _, name := range []string{"a", "b"} {
		b.Requeue(start, uid(name), by("Room"))
	}
	b.EndGroup(start, groupNamed("g"), GroupRejected)
	b.want("a", Unschedulable)
	b.want("b", Active)
	if got := b.popAll(start); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("popped %v", got)
	}
}

// A pod of a group whose binding failed, while no other pod of the group waits, waits its own
// backoff.
func TestPodOfAGroupWhoseBindingFailed(t *testing.T) {
	b := newBench(t, withGroups)
	b.Add(start, pod("a", inGroup("g")))
	b.popAll(start)
	b.EndGroup(start, groupNamed("g"), GroupPlaced)
	b.Requeue(start, uid("a"), by())
	b.want("a", ErrorBackoff)
}

// A rejected group may be tried again when a pod of it is deleted, or another one comes.
func TestRejectedGroupChanges(t *testing.T) {
	b := newBench(t, withGroups)
	for _, name := range []string{"a", "b"} {
		b.Add(start, pod(name, inGroup("g")))
	}
	b.rejectAll(start, "g", GroupRejected, "Room")
	b.want("b", Unschedulable)
	b.Add(at(time.Minute), pod("c", inGroup("g")))
	b.want("b", Active)
	b.rejectAll(at(time.Minute), "g", GroupRejected, "Room")
	b.want("b", Unschedulable)
	b.Delete(uid("a"))
	b.want("b", Backoff)
}

// A group of which a deletion leaves too few pods is gated, wherever it waits, and does not
// depend on another event for that.
func TestTooFewOfAGroupAreLeft(t *testing.T) {
	for at, reach := range map[Place]func(b *bench){
		Active:        func(*bench) {},
		Backoff:       func(b *bench) { b.rejectAll(start, "g", GroupRejected); b.SkipBackoff(start, uid("a")) },
		ErrorBackoff:  func(b *bench) { b.rejectAll(start, "g", GroupRejected) },
		Unschedulable: func(b *bench) { b.rejectAll(start, "g", GroupRejected, "Room") },
	} {
		few := false
		b := newBench(t, withGroups, func(o *Options) {
			o.PreEnqueue = func(*object.Pod) *decision.Status {
				if !few {
					return nil
				}
				return &decision.Status{Code: decision.UnschedulableAndUnresolvable, Plugin: "Gates"}
			}
		})
		for _, name := range []string{"a", "b", "c", "d"} {
			b.Add(start, pod(name, inGroup("g")))
		}
		reach(b)
		b.want("b", at)
		b.Delete(uid("a"))
		if at != Unschedulable {
			b.want("b", at)
		}
		few = true
		b.Delete(uid("b"))
		b.want("c", Gated)
		b.want("d", Gated)
	}
}

// A group of which no plugin rejected a pod waits its backoff out, even if nothing else is to
// be tried; after a preemption SkipBackoff ends that. It counts as a rejection, and a plugin
// that is not known as none.
func TestGroupWithoutRejectors(t *testing.T) {
	for _, plugins := range [][]string{nil, {"Unheard of"}, {"Room", "Unheard of"}} {
		b := newBench(t, withGroups)
		b.Add(start, pod("a", inGroup("g")))
		b.Add(start, pod("b", inGroup("g")))
		b.rejectAll(start, "g", GroupRejected, plugins...)
		b.want("a", ErrorBackoff)
		if s, _ := b.State(uid("a")); s.Rejections != 1 || s.Errors != 0 {
			t.Errorf("%v: got %+v", plugins, s)
		}
		b.SkipBackoff(start, uid("b"))
		b.want("a", Backoff)
		b.rejectAll(start, "g", GroupFailed)
		b.SkipBackoff(start, uid("b"))
		b.want("a", ErrorBackoff)
	}
}

// A group counts once where it waits, with the plugin that holds it back, and arrives once
// beside its pods.
func TestWaitingGroups(t *testing.T) {
	b := newBench(t, withGroups)
	for _, name := range []string{"a", "b", "c"} {
		b.Add(start, pod(name, inGroup("g")))
	}
	b.Add(start, pod("d", inGroup("h"), gated))
	b.Add(start, pod("e"))
	waiting := func(want ...WaitingGroup) {
		t.Helper()
		got := b.WaitingGroups()
		slices.SortFunc(got, func(x, y WaitingGroup) int { return int(x.Place) - int(y.Place) })
		if !slices.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	gate := b.entries[uid("d")].preEnqueueStatus.Plugin
	waiting(WaitingGroup{Active, 3, "", start}, WaitingGroup{Gated, 1, gate, time.Time{}})
	b.rejectAll(at(time.Minute), "g", GroupRejected, "Room")
	waiting(WaitingGroup{Unschedulable, 3, "Room", start}, WaitingGroup{Gated, 1, gate, time.Time{}})
	for a, want := range map[Arrival]int{
		{"active", "UnscheduledPodAdd", false, PodAlone}:              1,
		{"active", "UnscheduledPodAdd", false, PodOfGroup}:            3,
		{"active", "UnscheduledPodAdd", false, WholeGroup}:            1,
		{"unschedulable", "UnscheduledPodAdd", false, WholeGroup}:     1,
		{"unschedulable", "ScheduleAttemptFailure", true, WholeGroup}: 1,
	} {
		if got := b.Arrivals()[a]; got != want {
			t.Errorf("%+v: %d, want %d; all: %v", a, got, want, b.Arrivals())
		}
	}
	b.Add(at(2*time.Minute), pod("f", inGroup("g"))) // with it the group may fit
	waiting(WaitingGroup{Active, 4, "Room", start}, WaitingGroup{Gated, 1, gate, time.Time{}})
}

// In a group that is gated, one pod is asked at a time why: what a pod that comes or changes
// costs does not grow with the group.
func TestPreEnqueueOfALargeGroup(t *testing.T) {
	const n = 100
	asked := 0
	b := newBench(t, withGroups, func(o *Options) {
		ask := o.PreEnqueue
		o.PreEnqueue = func(p *object.Pod) *decision.Status { asked++; return ask(p) }
	})
	for i := range n {
		b.Add(start, pod(fmt.Sprint(i), inGroup("g"), gated))
	}
	for i := range n {
		b.Add(start, pod(fmt.Sprint(n+i), inGroup("g")))
	}
	if b.want("0", Gated); asked > 4*n {
		t.Errorf("PreEnqueue was called %d times as %d pods came", asked, 2*n)
	}
	asked = 0
	for i := range n {
		b.Update(start, pod(fmt.Sprint(i), inGroup("g")))
	}
	if b.want("0", Active); asked > 6*n {
		t.Errorf("PreEnqueue was called %d times as %d gates opened", asked, n)
	}
}

// A snapshot from before groups were saved has their pods in several places. They wait
// together once it is restored.
func TestRestoreWithoutGroups(t *testing.T) {
	b := newBench(t)
	b.Add(start, pod("a", inGroup("g"), priority(1)))
	b.reject(start, "a", by("Room"))
	b.Add(start, pod("b", inGroup("g")))
	b.Add(start, pod("c", inGroup("h"), gated))
	b.Add(start, pod("d", inGroup("h")))
	b.Add(start, pod("e", inGroup("i"), priority(2)))
	b.reject(start, "e", by("Room"))
	b.Add(start, pod("f", priority(2)))
	b.pop(start, "f")
	s := b.Snapshot(start)
	r := newBench(t, withGroups)
	for _, e := range r.Restore(start, &s, func(uid types.UID) *object.Pod { return b.entries[uid].Pod }) {
		r.entries[e.Pod.UID] = e
	}
	r.want("a", Active)
	r.want("b", Active)
	r.want("c", Gated)
	r.want("d", Gated)
	r.want("e", Unschedulable)
	if got := r.popAll(start); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("popped %v", got)
	}
}

// groupWorld drives a queue with groups.
type groupWorld struct{ world }

func (w *groupWorld) draw(t *rapid.T) *object.Pod {
	p := drawPod(t)
	if name := rapid.SampledFrom([]string{"", "g", "g", "h"}).Draw(t, "group"); name != "" {
		inGroup(name)(p)
	}
	return p
}

func (w *groupWorld) add(t *rapid.T) { w.q.Add(w.now, w.draw(t)) }

func (w *groupWorld) drawEntry(t *rapid.T) *Entry { return w.q.entries[uid(podNames.Draw(t, "pod"))] }

func (w *groupWorld) delete(t *rapid.T) {
	if e := w.drawEntry(t); e != nil {
		delete(w.q.entries, e.Pod.UID)
		w.q.Queue.Delete(w.now, e)
	}
}

func (w *groupWorld) requeue(t *rapid.T, e *Entry) {
	w.q.Queue.Requeue(w.now, e, rapid.SliceOfN(plugins, 0, 2).Draw(t, "rejected by"), nil)
}

// attempt pops a pod or group. Some of the group's pods go on to be bound, and the others
// come back; meanwhile other things happen.
func (w *groupWorld) attempt(t *rapid.T) {
	e := w.q.Pop(w.now)
	if e == nil || e.Group() == nil {
		w.requeue1(t, e)
		return
	}
	name, tried := e.Pod.GroupKey(), slices.Clone(e.Group())
	for e := range w.q.Entries() {
		if e.Pod.GroupKey() == name && e.place != InFlight {
			t.Fatalf("%s is %s while its group is tried", e.Pod.Name, e.place)
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "meanwhile") == 0 {
		w.add(t)
		w.q.Move(w.now, drawEvent(t))
	}
	back := rapid.IntRange(0, len(tried)).Draw(t, "back")
	for _, e := range tried[:back] {
		w.requeue(t, e)
	}
	w.q.EndGroup(w.now, name, rapid.SampledFrom([]GroupResult{GroupPlaced, GroupRejected, GroupFailed}).Draw(t, "result"))
	for _, e := range tried[:back] {
		if e.place == InFlight {
			t.Fatalf("%s is in flight after the attempt of its group", e.Pod.Name)
		}
	}
}

// requeue1 requeues the pod e, or one whose binding failed if e is nil.
func (w *groupWorld) requeue1(t *rapid.T, e *Entry) {
	if e == nil {
		if e = w.drawEntry(t); e == nil || e.place != InFlight {
			return
		}
	}
	w.requeue(t, e)
}

// restore replaces the queue by one that is restored from its snapshot.
func (w *groupWorld) restore(t *rapid.T) {
	s := w.q.Snapshot(w.now)
	if rapid.IntRange(0, 4).Draw(t, "old") == 0 {
		s.Groups = nil
	}
	q := newByUID(w.q.opts)
	for _, e := range q.Restore(w.now, &s, func(uid types.UID) *object.Pod { return w.q.entries[uid].Pod }) {
		q.entries[e.Pod.UID] = e
	}
	if got := q.String(); s.Groups != nil && got != w.q.String() {
		t.Fatalf("restored\n%s\nwant\n%s", got, w.q)
	}
	w.q = q
}

func (w *groupWorld) check(t *rapid.T) {
	if err := w.q.Check(); err != nil {
		t.Fatalf("%v\n%s", err, w.q)
	}
}

// Whatever happens, the pods of a group wait together and are popped together, and once the
// gates open each pod comes to be active.
func TestGroupsWaitTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &groupWorld{world: *newWorld()}
		o := w.q.opts
		withGroups(&o)
		o.HintPanicked = nil
		w.q = newByUID(o)
		t.Repeat(map[string]func(*rapid.T){
			"":           w.check,
			"add":        w.add,
			"add again":  w.add,
			"attempt":    w.attempt,
			"try again":  w.attempt,
			"bind fails": func(t *rapid.T) { w.requeue1(t, nil) },
			"delete":     w.delete,
			"move":       func(t *rapid.T) { w.q.Move(w.now, drawEvent(t)) },
			"activate":   func(t *rapid.T) { w.q.Activate(w.now, uid(podNames.Draw(t, "pod"))) },
			"skip backoff": func(t *rapid.T) {
				w.q.SkipBackoff(w.now, uid(podNames.Draw(t, "pod")))
			},
			"retry":      func(t *rapid.T) { w.q.RetryAfterError(w.now, uid(podNames.Draw(t, "pod"))) },
			"nominate":   func(t *rapid.T) { w.q.Nominate(uid(podNames.Draw(t, "pod")), nodes.Draw(t, "node")) },
			"changed":    func(*rapid.T) { w.q.PodGroupChanged(w.now, groupNamed("g")) },
			"repair":     func(*rapid.T) { w.q.EndGroups(w.now); w.q.SortAnew() },
			"restore":    w.restore,
			"advance":    w.advance,
			"flush":      func(*rapid.T) { w.q.Flush(w.now) },
			"door":       func(*rapid.T) { w.door.closed = !w.door.closed },
			"new config": func(*rapid.T) { w.q.Reconfigure(w.now, Backoffs{time.Second, time.Minute}, nil) },
		})
		w.door.closed = false
		end := w.now.Add(DefaultMaxUnschedulable + 10*time.Minute)
		for next, ok := w.q.NextTimer(); ok && !next.After(end); next, ok = w.q.NextTimer() {
			w.now = next
			before := w.q.String()
			if w.q.Flush(next); w.q.String() == before {
				t.Fatalf("nothing was due at %v\n%s", next, w.q)
			}
		}
		shut := map[types.NamespacedName]bool{}
		for e := range w.q.Entries() {
			if len(e.Pod.Gates) > 0 && e.Pod.PodGroup() != "" {
				shut[e.Pod.GroupKey()] = true
			}
		}
		for e := range w.q.Entries() {
			if e.place != Active && e.place != InFlight && (e.place != Gated || len(e.Pod.Gates) == 0 && !shut[e.Pod.GroupKey()]) {
				t.Fatalf("%s is left behind\n%s", e.Pod.Name, w.q)
			}
		}
	})
}
