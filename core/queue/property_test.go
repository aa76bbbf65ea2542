package queue

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// world drives a queue and its model side by side.
type world struct {
	q    byUID
	m    *model
	door door
	now  time.Time
}

func newWorld() *world {
	w := &world{now: start}
	w.q = newByUID(options(&w.door))
	w.m = &model{door: &w.door, pods: map[types.UID]*modelPod{}}
	return w
}

var (
	podNames = rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"})
	plugins  = rapid.SampledFrom([]string{"Room", "Taints", "Labels", "Claims", "Broken", "Any", "Deaf", "Room", "Taints", "Volumes", "Volumes"})
	apps     = rapid.SampledFrom([]string{"", "a", "b", "door", "lost"})
	volumes  = rapid.SliceOfN(rapid.SampledFrom([]string{"c", "d", "d", "e"}), 0, 3)
	nodes    = rapid.SampledFrom([]string{"", "", "", "n1", "n2"})
)

func drawPod(t *rapid.T) *object.Pod {
	p := pod(podNames.Draw(t, "pod"), app(apps.Draw(t, "app")), priority(rapid.Int32Range(0, 2).Draw(t, "priority")), nominated(nodes.Draw(t, "nominated")))
	if rapid.IntRange(0, 5).Draw(t, "gated") == 0 {
		gated(p)
	}
	if rapid.Bool().Draw(t, "tolerant") {
		tolerant(p)
	}
	claims(volumes.Draw(t, "claims")...)(p)
	return p
}

func drawEvent(t *rapid.T) *framework.Event {
	if rapid.Bool().Draw(t, "pod gone") {
		return gone(pod("x", app(apps.Draw(t, "app"))))
	}
	if rapid.Bool().Draw(t, "claim") {
		return onClaim(rapid.SampledFrom([]framework.ActionType{framework.Add, framework.Add, framework.Delete}).Draw(t, "action"),
			rapid.SampledFrom([]string{"c", "d", "e", "f"}).Draw(t, "name"))
	}
	return on(rapid.SampledFrom([]framework.ActionType{
		framework.Add, framework.Delete, framework.UpdateNodeAllocatable, framework.UpdateNodeLabel, framework.UpdateNodeTaint,
		framework.UpdateNodeCondition, framework.UpdateNodeAnnotation, framework.UpdateNodeTaint | framework.UpdateNodeLabel,
	}).Draw(t, "action"))
}

func (w *world) advance(t *rapid.T) {
	limit := rapid.SampledFrom([]time.Duration{time.Second, 12 * time.Second, 3 * time.Minute}).Draw(t, "limit")
	w.now = w.now.Add(time.Duration(rapid.Int64Range(0, int64(limit)).Draw(t, "passed")))
}

func (w *world) add(t *rapid.T) {
	p := drawPod(t)
	w.q.Add(w.now, p)
	w.m.update(w.now, p)
}

func (w *world) update(t *rapid.T) {
	p := drawPod(t)
	w.q.Update(w.now, p)
	w.m.update(w.now, p)
}

func (w *world) delete(t *rapid.T) {
	id := uid(podNames.Draw(t, "pod"))
	_, known := w.m.pods[id]
	if w.q.Delete(id) != known {
		t.Fatalf("Delete says %v", !known)
	}
	delete(w.m.pods, id)
}

func (w *world) pop(t *rapid.T) {
	want := w.m.pop(w.now)
	ready := w.q.Ready()
	got := w.q.Pop(w.now)
	if (got != nil) != (want != nil) || ready != (got != nil) {
		t.Fatalf("popped %v, ready %v, want %v", got, ready, want != nil)
	}
	if got != nil && (got.Pod != want.pod || got.Attempts() != want.attempts || !got.Timestamp.Equal(want.queued)) {
		t.Fatalf("popped %+v, want %+v", got, want)
	}
}

// inFlight draws a pod in flight, nil when there is none.
func (w *world) inFlight(t *rapid.T) *modelPod {
	pods := w.m.in(InFlight)
	if len(pods) == 0 {
		return nil
	}
	slices.SortFunc(pods, modelOrder)
	return rapid.SampledFrom(pods).Draw(t, "in flight")
}

// requeue checks that no event is lost: where the model, which forgets nothing,
// calls the pod, the queue does. It may call in doubt when events were many.
func (w *world) requeue(t *rapid.T) {
	mp := w.inFlight(t)
	if mp == nil {
		return
	}
	o := outcome{rejectedBy: rapid.SliceOfN(plugins, 0, 2).Draw(t, "rejected by"), pendingBy: rapid.SliceOfN(plugins, 0, 1).Draw(t, "pending by")}
	if rapid.IntRange(0, 9).Draw(t, "unknown") == 0 {
		o.rejectedBy = append(o.rejectedBy, "Unheard of")
	}
	w.requeueWith(t, mp, o)
}

// rejectAll has the same plugin reject all pods that can be popped: some are alike.
func (w *world) rejectAll(t *rapid.T) {
	for w.q.Ready() {
		w.pop(t)
	}
	pods, o := w.m.in(InFlight), by(plugins.Draw(t, "rejected by"))
	slices.SortFunc(pods, modelOrder)
	for _, mp := range pods {
		w.requeueWith(t, mp, o)
	}
}

func (w *world) requeueWith(t *rapid.T, mp *modelPod, o outcome) {
	how := w.m.requeue(w.now, mp, o)
	got := w.q.Requeue(w.now, mp.pod.UID, o)
	if len(mp.events) <= inFlightEventsKept {
		return // compare looks at the place
	}
	if how != immediately && got != mp.place {
		for _, more := range []strategy{afterBackoff, immediately} {
			if w.m.settle(w.now, mp, more); more > how && got == mp.place {
				return
			}
		}
		t.Fatalf("%s went to %s; the model, that forgets nothing, says %d", mp.pod.Name, got, how)
	}
}

func (w *world) requeueOther(t *rapid.T) {
	id := uid(podNames.Draw(t, "pod"))
	if mp := w.m.pods[id]; mp == nil || mp.place != InFlight {
		w.q.Requeue(w.now, id, by("Room"))
	}
}

func (w *world) move(t *rapid.T) {
	e, p := drawEvent(t), int32(math.MaxInt32)
	if rapid.IntRange(0, 3).Draw(t, "bounded") == 0 {
		p = rapid.Int32Range(0, 2).Draw(t, "up to")
	}
	w.q.MoveUpTo(w.now, e, p)
	w.m.move(w.now, e, p)
}

func (w *world) burst(t *rapid.T) {
	e := drawEvent(t)
	for range rapid.IntRange(1, 2*inFlightEventsKept).Draw(t, "times") {
		w.q.Move(w.now, e)
		w.m.move(w.now, e, math.MaxInt32)
	}
}

func (w *world) activate(t *rapid.T) {
	id := uid(podNames.Draw(t, "pod"))
	w.q.Activate(w.now, id)
	w.m.activate(w.now, id)
}

func (w *world) skipBackoff(t *rapid.T) {
	id := uid(podNames.Draw(t, "pod"))
	w.q.SkipBackoff(w.now, id)
	if mp := w.m.pods[id]; mp != nil && mp.place == ErrorBackoff && mp.errors == 0 {
		mp.place, mp.since = Backoff, w.now
	}
}

func (w *world) nominate(t *rapid.T) {
	id, node := uid(podNames.Draw(t, "pod")), nodes.Draw(t, "node")
	w.q.Nominate(id, node)
	if mp := w.m.pods[id]; mp != nil {
		mp.node = node
	}
}

func (w *world) flush(*rapid.T) {
	w.q.Flush(w.now)
	w.m.flush(w.now)
}

// compare checks the invariants and that queue and model agree on everything.
func (w *world) compare(t *rapid.T) {
	if err := w.q.Check(); err != nil {
		t.Fatal(err)
	}
	states := w.q.Dump()
	if len(states) != len(w.m.pods) {
		t.Fatalf("%d pods, want %d", len(states), len(w.m.pods))
	}
	for _, s := range states {
		mp := w.m.pods[s.Pod.UID]
		if mp == nil || s.Pod != mp.pod || s.Place != mp.place || s.Attempts != mp.attempts || s.Rejections != mp.rejections || s.Errors != mp.errors {
			t.Fatalf("got %v\nwant %+v", s, mp)
		}
		if (s.PreEnqueueStatus != nil) != (mp.gate != "") || s.PreEnqueueStatus != nil && s.PreEnqueueStatus.Plugin != mp.gate {
			t.Fatalf("%s: gate %v, want %s", s.Pod.Name, s.PreEnqueueStatus, mp.gate)
		}
	}
	if next, ok := w.q.NextTimer(); !next.Equal(w.m.timer()) || ok == next.IsZero() {
		t.Fatalf("next timer %v, want %v", next, w.m.timer())
	}
	want := w.m.nominations()
	if !slices.Equal(w.q.NominatedNodes(), slices.Sorted(maps.Keys(want))) {
		t.Fatalf("nominated to %v, want %v", w.q.NominatedNodes(), want)
	}
	for node, ids := range want {
		var got []types.UID
		for _, p := range w.q.NominatedTo(node) {
			got = append(got, p.UID)
		}
		if slices.Sort(got); !slices.Equal(got, ids) {
			t.Fatalf("nominated to %s: %v, want %v", node, got, ids)
		}
	}
}

// After any steps the queue is like a simple model of it.
func TestQueueIsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		t.Repeat(map[string]func(*rapid.T){
			"":               w.compare,
			"add":            w.add,
			"update":         w.update,
			"delete":         w.delete,
			"pop":            w.pop,
			"pop again":      w.pop,
			"requeue":        w.requeue,
			"requeue more":   w.requeue,
			"requeue others": w.requeueOther,
			"reject all":     w.rejectAll,
			"move":           w.move,
			"burst":          w.burst,
			"activate":       w.activate,
			"skip backoff":   w.skipBackoff,
			"nominate":       w.nominate,
			"advance":        w.advance,
			"flush":          w.flush,
			"door":           func(*rapid.T) { w.door.closed = !w.door.closed },
		})
	})
}

// Whatever state a queue is in: when its gates open and time goes on, each pod
// comes to be active, and the timers say when.
func TestNoPodIsLeftBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		t.Repeat(map[string]func(*rapid.T){
			"add": w.add, "pop": w.pop, "requeue": w.requeue, "requeue more": w.requeue, "move": w.move, "advance": w.advance,
			"door": func(*rapid.T) { w.door.closed = !w.door.closed },
		})
		w.door.closed = false
		end := w.now.Add(DefaultMaxUnschedulable + DefaultMaxBackoff + window)
		for next, ok := w.q.NextTimer(); ok && !next.After(end); next, ok = w.q.NextTimer() {
			w.now = next
			before := w.q.String()
			if w.q.Flush(next); w.q.String() == before {
				t.Fatalf("nothing was due at %v\n%s", next, w.q)
			}
		}
		for _, s := range w.q.Dump() {
			if s.Place != Active && s.Place != InFlight && (s.Place != Gated || len(s.Pod.Gates) == 0) {
				t.Fatalf("%s is left behind\n%s", s.Pod.Name, w.q)
			}
		}
	})
}

// The same calls lead to the same queue, to the byte.
func TestSameCallsSameQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		other := newByUID(options(&w.door))
		order := func(q byUID) []types.UID {
			var ids []types.UID
			for e := q.Pop(w.now); e != nil; e = q.Pop(w.now) {
				ids = append(ids, e.Pod.UID)
			}
			return ids
		}
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			p, e, o := drawPod(t), drawEvent(t), by(plugins.Draw(t, "plugin"))
			w.advance(t)
			for _, q := range []byUID{w.q, other} {
				q.Add(w.now, p)
				if e := q.Pop(w.now); e != nil {
					q.Requeue(w.now, e.Pod.UID, o)
				}
				q.Move(w.now, e)
				q.Flush(w.now)
			}
		}
		if w.q.String() != other.String() || !maps.Equal(w.q.Arrivals(), other.Arrivals()) {
			t.Fatalf("one\n%sthe other\n%s", w.q, other)
		}
		if a, b := order(w.q), order(other); !slices.Equal(a, b) {
			t.Fatalf("popped %v and %v", a, b)
		}
	})
}
