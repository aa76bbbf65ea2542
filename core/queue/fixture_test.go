package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 300e6, time.UTC)

// The plugins of the tests and the events that may help the pods that they rejected.
var rules = map[string][]framework.ClusterEventWithHint{
	"Room": { // any node that comes; pods that go, when they are of the same app
		{Resource: framework.Node, ActionType: framework.Add},
		{Resource: framework.AssignedPod, ActionType: framework.Delete, QueueingHintFn: func(p *object.Pod, e *framework.Event) bool {
			return e.OldPod.Labels["app"] == p.Labels["app"]
		}},
	},
	"Taints": {
		{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeTaint},
		{Resource: framework.TargetPod, ActionType: framework.UpdatePodToleration},
	},
	"Labels": {{Resource: framework.TargetPod, ActionType: framework.UpdatePodLabel, QueueingHintFn: func(_ *object.Pod, e *framework.Event) bool {
		return e.OldPod.Labels["app"] != "a" && e.NewPod.Labels["app"] == "a"
	}}},
	"Claims": {{Resource: framework.Node, ActionType: framework.UpdateNodeAnnotation}},
	"Broken": {{Resource: framework.Node, ActionType: framework.UpdateNodeCondition, QueueingHintFn: func(*object.Pod, *framework.Event) bool {
		panic("hint")
	}}},
	"Volumes": { // claims that the pod names; any claim that goes
		{Resource: framework.ResourceOf(object.PersistentVolumeClaims), ActionType: framework.Add, Names: claimNames, QueueingHintFn: func(p *object.Pod, e *framework.Event) bool {
			m := e.NewObject.Head()
			return m.Namespace == p.Namespace && p.UsesPVC(m.Name, true)
		}},
		{Resource: framework.ResourceOf(object.PersistentVolumeClaims), ActionType: framework.Delete},
	},
	"Any":     {{Resource: framework.WildCard, ActionType: framework.UpdateNodeLabel | framework.UpdatePodLabel}},
	"Deaf":    nil,                                                         // no event helps
	"Curious": {{Resource: framework.WildCard, ActionType: framework.All}}, // any event may
	"Gates":   {{Resource: framework.TargetPod, ActionType: framework.UpdatePodSchedulingGatesEliminated}},
	"Door":    {{Resource: framework.Node, ActionType: framework.UpdateNodeAllocatable}},
}

func claimNames(p *object.Pod) []string { return p.PVCs(true) }

func eventsToRegister(_, plugin string) ([]framework.ClusterEventWithHint, bool) {
	w, ok := rules[plugin]
	return w, ok
}

// door is a PreEnqueue plugin whose state is outside the pod.
type door struct{ closed bool }

func (d *door) preEnqueue(p *object.Pod) *decision.Status {
	switch {
	case len(p.Gates) > 0:
		return &decision.Status{Code: decision.UnschedulableAndUnresolvable, Plugin: "Gates"}
	case d.closed && p.Labels["app"] == "door":
		return &decision.Status{Code: decision.Pending, Plugin: "Door"}
	case d.closed && p.Labels["app"] == "lost":
		return &decision.Status{Code: decision.Error, Plugin: "Unheard of"}
	}
	return nil
}

// waits: a closed door keeps pods from hurrying, too.
func (d *door) waits(p *object.Pod) bool { return d.closed && p.Labels["app"] == "b" }

func byPriority(a, b *framework.QueuedPodInfo) bool {
	if a.Pod.Priority != b.Pod.Priority {
		return a.Pod.Priority > b.Pod.Priority
	}
	return a.Timestamp.Before(b.Timestamp)
}

func options(d *door) Options {
	return Options{
		InitialBackoff: DefaultInitialBackoff, MaxBackoff: DefaultMaxBackoff, MaxUnschedulable: DefaultMaxUnschedulable,
		Less: byPriority, PreEnqueue: d.preEnqueue, HoldInBackoff: d.waits, EventsToRegister: eventsToRegister,
		Foresight: &foreseen{couldHelp: func(e *Entry, event *framework.Event) bool { return !inVain(e.Pod, e.nominated, event) }},
	}
}

// foreseen is a Foresight of functions. Pods of one app that name the same claims and are
// nominated to the same node are of one class.
type foreseen struct {
	couldHelp func(*Entry, *framework.Event) bool
	size      func(*Entry) (string, Size) // nil: unknown
	tooLarge  func(Size) bool
}

func (f *foreseen) Class(key []byte, e *Entry) Class {
	c := Class{Key: fmt.Appendf(key, "%q", append(e.Pod.PVCs(true), e.Pod.Labels["app"], e.nominated))}
	if f.size != nil {
		c.SizedBy, c.Size = f.size(e)
	}
	return c
}

func (f *foreseen) About(e *framework.Event) Question { return asked{f, e} }

type asked struct {
	*foreseen
	event *framework.Event
}

func (q asked) CouldHelp(e *Entry) bool { return q.couldHelp(e, q.event) }
func (q asked) TooLarge(s Size) bool    { return q.tooLarge(s) }

// inVain: where a pod goes, those of app b are tried in vain, but for the nominated.
func inVain(p *object.Pod, nominated string, e *framework.Event) bool {
	return e.Resource == framework.AssignedPod && p.Labels["app"] == "b" && nominated == ""
}

func pod(name string, change ...func(*object.Pod)) *object.Pod {
	p := &object.Pod{UID: types.UID(name + "-uid"), Namespace: "ns", Name: name, SchedulerName: "default-scheduler"}
	for _, f := range change {
		f(p)
	}
	return p
}

func app(name string) func(*object.Pod) {
	return func(p *object.Pod) { p.Labels = map[string]string{"app": name} }
}

func claims(names ...string) func(*object.Pod) {
	return func(p *object.Pod) {
		for _, name := range names {
			p.Volumes = append(p.Volumes, object.Volume{Claimed: true, Claim: name})
		}
	}
}

// onClaim is an event about a claim in the pods' namespace.
func onClaim(a framework.ActionType, name string) *framework.Event {
	c := &object.PersistentVolumeClaim{Meta: object.Meta{Kind: object.PersistentVolumeClaims, Namespace: pod("x").Namespace, Name: name}}
	if a == framework.Delete {
		return &framework.Event{Resource: framework.ResourceOf(object.PersistentVolumeClaims), ActionType: a, OldObject: c}
	}
	return &framework.Event{Resource: framework.ResourceOf(object.PersistentVolumeClaims), ActionType: a, NewObject: c}
}

func priority(n int32) func(*object.Pod)      { return func(p *object.Pod) { p.Priority = n } }
func gated(p *object.Pod)                     { p.Gates = []string{"g"} }
func tolerant(p *object.Pod)                  { p.Tolerations = match.Tolerations{Key: "t"} }
func nominated(node string) func(*object.Pod) { return func(p *object.Pod) { p.NominatedNode = node } }
func uid(name string) types.UID               { return types.UID(name + "-uid") }
func by(plugins ...string) outcome            { return outcome{rejectedBy: plugins} }
func pendingBy(plugins ...string) outcome     { return outcome{pendingBy: plugins} }
func at(d time.Duration) time.Time            { return start.Add(d) }
func on(a framework.ActionType) *framework.Event {
	return &framework.Event{Resource: framework.Node, ActionType: a}
}
func gone(p *object.Pod) *framework.Event {
	return &framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: p}
}

// bench is a queue under test, with its invariants checked at each turn.
type bench struct {
	byUID
	*testing.T
	door door
}

func newBench(t *testing.T, change ...func(*Options)) *bench {
	b := &bench{T: t}
	o := options(&b.door)
	for _, f := range change {
		f(&o)
	}
	b.byUID = newByUID(o)
	return b
}

func (b *bench) want(name string, place Place) {
	b.Helper()
	if err := b.Check(); err != nil {
		b.Fatal(err)
	}
	if got := b.Where(uid(name)); got != place {
		b.Fatalf("%s is %s, want %s\n%s", name, got, place, b)
	}
}

// pop takes the next pod and wants it to be the named one, "" for none.
func (b *bench) pop(now time.Time, name string) *Entry {
	b.Helper()
	e, got := b.Pop(now), ""
	if e != nil {
		got = e.Pod.Name
	}
	if got != name {
		b.Fatalf("popped %q, want %q\n%s", got, name, b)
	}
	return e
}

// reject takes the pod, which must be next, and requeues it.
func (b *bench) reject(now time.Time, name string, o outcome) {
	b.Helper()
	b.pop(now, name)
	b.Requeue(now, uid(name), o)
}

// arrived is how many pods came to the queue by the event, hinted or not.
func arrived(a map[Arrival]int, queue, event string) int {
	return a[Arrival{queue, event, false, PodAlone}] + a[Arrival{queue, event, true, PodAlone}]
}

func (b *bench) wantArrival(queue, event string) {
	b.Helper()
	if arrived(b.Arrivals(), queue, event) == 0 {
		b.Errorf("nothing came to %s by %s: %v", queue, event, b.Arrivals())
	}
}

func (b *bench) wantTimer(want time.Time) {
	b.Helper()
	if got, ok := b.NextTimer(); !ok || !got.Equal(want) {
		b.Errorf("next timer %v %v, want %v", got, ok, want)
	}
}

func names(pods []*object.Pod) []string {
	var list []string
	for _, p := range pods {
		list = append(list, p.Name)
	}
	return slices.Clip(list)
}

// byUID is a queue whose pods are named by UID; a pod that the queue does not
// have is no error.
type byUID struct {
	*Queue
	entries map[types.UID]*Entry
}

func newByUID(o Options) byUID { return byUID{New(o), map[types.UID]*Entry{}} }

func (q byUID) Add(now time.Time, p *object.Pod) Place {
	if e := q.entries[p.UID]; e != nil {
		q.Queue.Update(now, e, p)
		return e.Place()
	}
	e := q.Queue.Add(now, p)
	q.entries[p.UID] = e
	return e.Place()
}

func (q byUID) Update(now time.Time, p *object.Pod) Place { return q.Add(now, p) }

func (q byUID) Move(now time.Time, e *framework.Event) int {
	return q.MoveAllToActiveOrBackoff(now, e, nil)
}

func (q byUID) MoveUpTo(now time.Time, e *framework.Event, priority int32) {
	q.MoveAllToActiveOrBackoff(now, e, func(p *object.Pod) bool { return p.Priority <= priority })
}

func (q byUID) Delete(uid types.UID) bool {
	e := q.entries[uid]
	if e == nil {
		return false
	}
	delete(q.entries, uid)
	q.Queue.Delete(time.Time{}, e)
	return true
}

func (q byUID) Requeue(now time.Time, uid types.UID, o outcome) Place {
	if e := q.entries[uid]; e != nil {
		q.Queue.Requeue(now, e, o.rejectedBy, o.pendingBy)
	}
	return q.Where(uid)
}

func (q byUID) Activate(now time.Time, uids ...types.UID) {
	for _, uid := range uids {
		if e := q.entries[uid]; e != nil {
			q.Queue.Activate(now, e)
		}
	}
}

func (q byUID) RetryAfterError(now time.Time, uid types.UID) {
	if e := q.entries[uid]; e != nil {
		q.Queue.RetryAfterError(now, e)
	}
}

func (q byUID) SkipBackoff(now time.Time, uid types.UID) {
	if e := q.entries[uid]; e != nil {
		q.Queue.SkipBackoff(now, e)
	}
}

func (q byUID) Nominate(uid types.UID, node string) {
	if e := q.entries[uid]; e != nil {
		q.Queue.Nominate(e, node)
	}
}

func (q byUID) NominatedNode(uid types.UID) string { return q.entries[uid].NominatedNode() }
func (q byUID) Where(uid types.UID) Place          { return q.entries[uid].Place() }

func (q byUID) State(uid types.UID) (State, bool) {
	if e := q.entries[uid]; e != nil {
		return e.State(), true
	}
	return State{}, false
}

// outcome is who rejected a pod.
type outcome struct{ rejectedBy, pendingBy []string }
