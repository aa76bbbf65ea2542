package queue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// The dump lists every pod with its place, its counts and what rejected it.
func TestDumpListsEveryPod(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"z-active", "flies", "rejected", "pending", "failed", "nobody"} {
		b.Add(start, pod(name))
	}
	b.Add(start, pod("gated", gated))
	b.Add(start, pod("a-active"))
	b.Nominate(uid("a-active"), "n1")
	b.pop(start, "z-active")
	b.pop(start, "flies")
	b.reject(start, "rejected", by("Taints", "Room", "Taints"))
	b.reject(start, "pending", outcome{rejectedBy: []string{"Room"}, pendingBy: []string{"Claims"}})
	b.reject(start, "failed", outcome{})
	b.reject(at(time.Second), "nobody", by("Room", "Nobody", "Any"))
	b.Delete(uid("z-active"))
	b.Add(at(time.Minute), pod("z-active"))
	want := strings.TrimLeft(`
active ns/a-active (a-active-uid) since 2026-01-01T12:00:00.3Z: attempts 0, rejections 0, errors 0, nominated to n1
active ns/z-active (z-active-uid) since 2026-01-01T12:01:00.3Z: attempts 0, rejections 0, errors 0
error backoff ns/failed (failed-uid) since 2026-01-01T12:00:00.3Z: attempts 1, rejections 0, errors 1
error backoff ns/nobody (nobody-uid) since 2026-01-01T12:00:01.3Z: attempts 1, rejections 0, errors 1, rejected by Any Nobody Room
unschedulable ns/pending (pending-uid) since 2026-01-01T12:00:00.3Z: attempts 1, rejections 1, errors 0, rejected by Room, pending by Claims
unschedulable ns/rejected (rejected-uid) since 2026-01-01T12:00:00.3Z: attempts 1, rejections 1, errors 0, rejected by Room Taints
gated ns/gated (gated-uid) since 2026-01-01T12:00:00.3Z: attempts 0, rejections 0, errors 0, gated by Gates
in flight ns/flies (flies-uid) since 2026-01-01T12:00:00.3Z: attempts 1, rejections 0, errors 0
`, "\n")
	if got := b.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := b.Counts(); got != (Counts{Active: 2, ErrorBackoff: 2, Unschedulable: 2, Gated: 1, InFlight: 1}) {
		t.Errorf("counts: %+v", got)
	}
	if s, ok := b.State(uid("gated")); !ok || s.PreEnqueueStatus.Plugin != "Gates" || !s.FirstActive.IsZero() {
		t.Errorf("gated: %+v", s)
	}
	if _, ok := b.State("nobody at all"); ok {
		t.Error("an unknown pod has a state")
	}
}

// A panic of a hint is counted for its plugin.
func TestPanicsAreCounted(t *testing.T) {
	b := newBench(t)
	b.Add(start, pod("p"))
	b.reject(start, "p", by("Broken"))
	b.Move(start, on(framework.UpdateNodeCondition))
	if got := b.Panics(); len(got) != 1 || got["Broken"] != 1 {
		t.Errorf("panics: %v", got)
	}
}

// An event that no plugin of a requeued pod waits for costs nothing per pod, and
// one for a few does not touch the others.
func TestEventsLookOnlyWhereTheyMayHelp(t *testing.T) {
	asked := 0
	b := newBench(t, func(o *Options) {
		o.Foresight = nil
		o.EventsToRegister = func(_, plugin string) ([]framework.ClusterEventWithHint, bool) {
			action := framework.UpdateNodeLabel
			if plugin == "Rare" {
				action = framework.UpdateNodeTaint
			}
			return []framework.ClusterEventWithHint{{Resource: framework.Node, ActionType: action, QueueingHintFn: func(*object.Pod, *framework.Event) bool {
				asked++
				return false
			}}}, true
		}
	})
	const pods = 10_000
	for i := range pods {
		name := fmt.Sprint(i)
		b.Add(start, pod(name))
		o := by("Common")
		if i%1000 == 0 {
			o = by("Rare")
		}
		b.reject(start, name, o)
	}
	for _, c := range []struct {
		action framework.ActionType
		want   int
	}{{framework.Add, 0}, {framework.UpdateNodeTaint, pods / 1000}, {framework.UpdateNodeLabel, pods - pods/1000}} {
		asked = 0
		if b.Move(start, on(c.action)); asked != c.want {
			t.Errorf("action %b: %d hints asked, want %d", c.action, asked, c.want)
		}
	}
	if err := b.Check(); err != nil {
		t.Error(err)
	}
}

// Pods that are too large for an event are not looked at, and told of where anybody listens,
// unless another plugin calls them.
func TestPodsThatAreTooLargeAreLeftOut(t *testing.T) {
	asked, most := 0, int64(3)
	b := newBench(t, func(o *Options) {
		o.Foresight = &foreseen{
			couldHelp: func(e *Entry, _ *framework.Event) bool { asked++; return e.Pod.Name == "2" },
			tooLarge:  func(s Size) bool { return s.MilliCPU > most },
			size: func(e *Entry) (string, Size) {
				if e.Pod.Name == "9" {
					return "", Size{}
				}
				return "Room", Size{MilliCPU: int64(e.Pod.Name[0] - '0')}
			},
		}
	})
	for i, rejectors := range []outcome{1: by("Room"), 2: by("Room"), 4: by("Room"), 5: by("Room", "Taints"), 9: by("Room")} {
		if name := fmt.Sprint(i); len(rejectors.rejectedBy) > 0 {
			b.Add(start, pod(name, app(name)))
			b.reject(start, name, rejectors)
		}
	}
	if err := b.Check(); err != nil {
		t.Error(err)
	}
	if moved := b.Move(start, on(framework.Add)); asked != 4 || moved != 1 {
		t.Errorf("%d asked about, %d moved", asked, moved)
	}
	var told []string
	b.Listen(&Listener{WouldFailAgain: func(p *object.Pod, _ string) { told = append(told, p.Name) }})
	b.MoveAllToActiveOrBackoff(start, on(framework.Add), func(p *object.Pod) bool { return p.Name != "1" })
	if slices.Sort(told); !slices.Equal(told, []string{"4", "5", "9"}) {
		t.Errorf("told of %v", told)
	}
}

// Of pods that are alike one is asked about, all are called or none, and a pod that is
// nominated is no longer like the others.
func TestPodsThatAreAlikeAreAskedAboutOnce(t *testing.T) {
	asked, inVain := 0, true
	b := newBench(t, func(o *Options) {
		o.Foresight = &foreseen{couldHelp: func(*Entry, *framework.Event) bool { asked++; return !inVain }}
	})
	const pods = 1000
	for i := range pods {
		b.Add(start, pod(fmt.Sprint(i), app("a")))
		b.reject(start, fmt.Sprint(i), by("Room"))
	}
	move := func(wantAsked, wantMoved int) {
		t.Helper()
		asked = 0
		if moved := b.Move(start.Add(time.Minute), on(framework.Add)); asked != wantAsked || moved != wantMoved {
			t.Errorf("%d asked about, %d moved, want %d and %d", asked, moved, wantAsked, wantMoved)
		}
		if err := b.Check(); err != nil {
			t.Error(err)
		}
	}
	move(1, 0)
	b.Nominate(uid("7"), "n")
	move(2, 0)
	b.Nominate(uid("7"), "")
	b.Update(start, pod("8", app("b")))
	move(2, 0)
	b.Update(start, pod("8", app("a")))
	b.Add(start, pod("other", app("a")))
	b.reject(start, "other", by("Taints"))
	move(2, 0)
	b.Delete(uid("other"))
	told := 0
	b.Listen(&Listener{WouldFailAgain: func(*object.Pod, string) { told++ }})
	if move(1, 0); told != pods {
		t.Errorf("told of %d pods", told)
	}
	inVain = false
	b.MoveAllToActiveOrBackoff(start.Add(time.Minute), on(framework.Add), func(p *object.Pod) bool { return p.Name == "9" })
	b.pop(start.Add(time.Minute), "9")
	move(1, pods-1)
	for i := range pods { // as they came
		if i != 9 {
			b.pop(start.Add(time.Minute), fmt.Sprint(i))
		}
	}
}

// Check sees each kind of damage.
func TestCheckSeesDamage(t *testing.T) {
	for name, damage := range map[string]func(b *bench){
		"wrong place":          func(b *bench) { b.entries[uid("a")].place = Gated },
		"in two places":        func(b *bench) { b.heaps[Backoff].entries = append(b.heaps[Backoff].entries, b.entries[uid("a")]) },
		"in flight, misplaced": func(b *bench) { b.inFlight = append(b.inFlight, b.entries[uid("a")]) },
		"events left":          func(b *bench) { b.Delete(uid("flies")); b.events.add(on(framework.Add)) },
		"illegal move":         func(b *bench) { b.move(start, b.entries[uid("a")], Unschedulable, "x") },
		"gate left":            func(b *bench) { b.entries[uid("a")].preEnqueueStatus = &decision.Status{} },
		"heap out of order":    func(b *bench) { b.heaps[Active].head().Pod.Priority = -9 },
		"not in the index":     func(b *bench) { b.plugins.remove(b.entries[uid("requeued")]) },
		"still in the index": func(b *bench) {
			g := b.plugins.find("default-scheduler", "Room")
			g.members = append(g.members, member{peers: &peers{}})
		},
		"wrong slot":           func(b *bench) { b.entries[uid("requeued")].peers.slots[0].at = 1 },
		"among others":         func(b *bench) { b.entries[uid("requeued")].peerIndex = 1 },
		"unlike now":           func(b *bench) { b.entries[uid("requeued")].Pod.Labels = map[string]string{"app": "b"} },
		"alike, not found":     func(b *bench) { clear(b.plugins.byKey) },
		"gated, not indexed":   func(b *bench) { b.plugins.remove(b.entries[uid("gated")]) },
		"nominated to nothing": func(b *bench) { b.nominated[""] = []*object.Pod{pod("x")} },
		"old nominee":          func(b *bench) { b.nominated["n"][0] = pod("a") },
		"nominee gone":         func(b *bench) { b.entries[uid("a")].nominated = "" },
		"nodes unlisted":       func(b *bench) { b.nodes = nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.Add(start, pod("flies", priority(9)))
			b.Add(start, pod("requeued", priority(9)))
			b.Add(start, pod("a", priority(2)))
			b.Add(start, pod("b", priority(1)))
			b.Add(start, pod("gated", gated))
			b.Nominate(uid("a"), "n")
			b.pop(start, "flies")
			b.reject(start, "requeued", by("Room"))
			if err := b.Check(); err != nil {
				t.Fatal(err)
			}
			damage(b)
			if b.Check() == nil {
				t.Errorf("Check sees nothing wrong\n%s", b)
			}
		})
	}
}

// BenchmarkMove100kUnschedulable measures an event that requeues none of 100,000
// unschedulable pods.
func BenchmarkMove100kUnschedulable(b *testing.B) {
	q := newByUID(options(&door{}))
	for i := range 100_000 {
		p := pod(fmt.Sprint(i))
		q.Add(start, p)
		q.Pop(start)
		q.Requeue(start, p.UID, by("Room", "Taints"))
	}
	for _, c := range []struct {
		name  string
		event *framework.Event
	}{{"no rule", on(framework.UpdateNodeLabel)}, {"hints say no", gone(pod("x", app("other")))}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				q.Move(start, c.event)
			}
		})
	}
}

// BenchmarkAddPopDone measures a pod's way through a queue of 10,000 pods.
func BenchmarkAddPopDone(b *testing.B) {
	q := newByUID(options(&door{}))
	for i := range 10_000 {
		q.Add(start, pod(fmt.Sprint(i), priority(int32(i%7))))
	}
	p := pod("p")
	for b.Loop() {
		q.Add(start, p)
		a := q.Pop(start)
		q.Delete(a.Pod.UID)
		p = a.Pod
	}
}

// Each move is told after it, with the place before and the event that caused it.
// What stays where it is makes no move of its own.
func TestMovesAreTold(t *testing.T) {
	var told []string
	b := newBench(t)
	b.Listen(&Listener{Moved: func(e *Entry, from Place, event string) {
		told = append(told, e.Pod.Name+": "+from.String()+" > "+e.Place().String()+" by "+event)
	}})
	b.Add(start, pod("p"))
	b.reject(start, "p", by("Room"))
	b.Move(start, on(framework.UpdateNodeTaint)) // of no use
	b.Move(start, on(framework.Add))
	b.Flush(at(3 * time.Second))
	b.pop(at(3*time.Second), "p")
	b.Delete(uid("p"))
	want := []string{
		"p: nowhere > active by UnscheduledPodAdd",
		"p: active > in flight by PodPopped",
		"p: in flight > unschedulable by ScheduleAttemptFailure",
		"p: unschedulable > backoff by NodeAdd",
		"p: backoff > active by BackoffComplete",
		"p: active > in flight by PodPopped",
		"p: in flight > nowhere by Delete",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
}

// A pod's position is how many leave its place before it, and one; its stay ends
// when its backoff is over, or when it has been left alone for too long.
func TestPositionAndStay(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"low", "lower"} {
		b.Add(start, pod(name))
	}
	b.Add(start, pod("high", priority(5)))
	for name, want := range map[string]int{"high": 1, "low": 2, "lower": 3} {
		if got := b.Position(b.entries[uid(name)]); got != want {
			t.Errorf("position of %s: %d, want %d", name, got, want)
		}
	}
	b.reject(start, "high", by("Room"))
	e := b.entries[uid("high")]
	if end := b.StayEnd(e); !end.Equal(start.Add(DefaultMaxUnschedulable)) || b.Position(e) != 1 {
		t.Errorf("unschedulable until %v, position %d", end, b.Position(e))
	}
	b.Move(start, on(framework.Add))
	due, _ := b.NextTimer()
	if end := b.StayEnd(e); !end.Equal(due) {
		t.Errorf("in backoff until %v, due at %v", end, due)
	}
	if b.Position(nil) != 0 || !b.StayEnd(nil).IsZero() {
		t.Error("a pod that the queue does not have has a position")
	}
}
