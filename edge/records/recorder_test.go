package records

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/loop"
)

// What is read is what was written, whatever the kind of the attempt.
func TestAttemptsComeBackAsTheyWere(t *testing.T) {
	d := &decision.Decision{
		UID: "u", Pod: types.NamespacedName{Namespace: "shop", Name: "cart-0"}, Profile: "p", Attempt: 7, Result: decision.ResultPreempting, NodesTotal: 3,
		Tallies: []decision.Tally{
			{Blocker: decision.Blocker{Plugin: "NodeResourcesFit", Code: decision.Unschedulable, Reasons: []string{"Insufficient cpu", "Insufficient memory"}}, Nodes: 2},
			{Blocker: decision.Blocker{Plugin: "NodeName", Code: decision.UnschedulableAndUnresolvable, Reasons: []string{"node(s) didn't match"}}, Nodes: 1},
		},
		RejectedBy: []string{"NodeName", "NodeResourcesFit"}, NominatedNode: "n1", Victims: []types.NamespacedName{{Namespace: "a", Name: "b"}},
	}
	r := New(0)
	r.Observe(loop.Step{Now: start, Effects: done(d)})
	found, more := find(r, Query{Pod: "shop/cart-0"})
	want := Record{
		Time: start, Type: Attempt, Pod: "shop/cart-0", UID: "u", Attempt: 7, Result: "Preempting", Profile: "p", NodesTotal: 3,
		Message: "0/3 nodes are available: 1 node(s) didn't match, 2 Insufficient cpu, 2 Insufficient memory.",
		Blockers: []Blocker{
			{"NodeResourcesFit", "Unschedulable", []string{"Insufficient cpu", "Insufficient memory"}, 2},
			{"NodeName", "UnschedulableAndUnresolvable", []string{"node(s) didn't match"}, 1},
		},
		RejectedBy: []string{"NodeName", "NodeResourcesFit"}, NominatedNode: "n1", Victims: []string{"a/b"},
	}
	if len(found) != 1 || more || !reflect.DeepEqual(found[0], want) {
		t.Errorf("got  %+v\nwant %+v", found, want)
	}
	failed := &decision.Decision{UID: "u", Pod: types.NamespacedName{Namespace: "shop", Name: "cart-0"}, Attempt: 8, Result: decision.ResultError, Err: errors.New("no such luck")}
	r.Observe(loop.Step{Now: at(1), Effects: done(failed)})
	if found, _ := find(r, Query{Since: at(1)}); len(found) != 1 || found[0].Message != "no such luck" {
		t.Errorf("got %+v", found)
	}
}

// find returns the records that match, and whether there are more.
func find(r *Recorder, q Query) (found []Record, more bool) {
	f := r.Find(q)
	defer f.End()
	return slices.Collect(f.All()), f.More
}

// A decision of any size makes a record of a bounded one, which says that it was cut.
func TestHugeDecisionsAreCut(t *testing.T) {
	d := rejection(1, 1, strings.Repeat("y", 100_000))
	for range 1000 {
		d.RejectedBy = append(d.RejectedBy, strings.Repeat("plugin", 50))
		d.Tallies = append(d.Tallies, d.Tallies[0])
		d.Victims = append(d.Victims, types.NamespacedName{Namespace: "a", Name: strings.Repeat("z", 253)})
	}
	var e encoder
	written := entry(e.attempt(1, d, start.UnixNano()))
	if r := written.record(); len(written) > 2*mostBytes || !r.Cut || len(r.RejectedBy) == 0 {
		t.Errorf("%d bytes, %d plugins, cut %t", len(written), len(r.RejectedBy), r.Cut)
	}
}

// Queries are by pod, node, reason and time; a bound keeps the newest.
func TestFind(t *testing.T) {
	r := New(0)
	for i := range 100 {
		d := placement(i, 1)
		if i%2 == 1 {
			d = rejection(i, 1, "Insufficient cpu")
		}
		r.Observe(loop.Step{Now: at(i), Effects: done(d)})
	}
	r.Flush()
	for _, test := range []struct {
		query Query
		want  int
		more  bool
	}{
		{Query{}, 100, false},
		{Query{Pod: podName(5).String()}, 1, false},
		{Query{Node: "node-4"}, 1, false},
		{Query{Reason: "insufficient CPU"}, 50, false},
		{Query{Reason: "NodeResourcesFit", Since: at(50)}, 25, false},
		{Query{Until: at(9)}, 10, false},
		{Query{Most: 7}, 7, true},
		{Query{Reason: "nothing like it"}, 0, false},
	} {
		found, more := find(r, test.query)
		if len(found) != test.want || more != test.more {
			t.Errorf("%+v: %d records, more %t; want %d, %t", test.query, len(found), more, test.want, test.more)
		}
		if test.query.Most > 0 && !found[len(found)-1].Time.Equal(at(99)) {
			t.Errorf("%+v: the last is of %v", test.query, found[len(found)-1].Time)
		}
	}
	rates := r.Rates(at(100), 50*time.Millisecond)
	if rates.Attempts["Scheduled"] != 25 || rates.Attempts["Unschedulable"] != 25 || rates.Seconds != 0.05 {
		t.Errorf("rates: %+v", rates)
	}
	last := r.Lasts(nil)
	defer last.End()
	if b := Rank(last.All(), func(*Record) string { return "web" }); !reflect.DeepEqual(b, []Blocking{{"NodeResourcesFit", "Insufficient cpu", 50, []Workload{{"web", 50}}}}) {
		t.Errorf("what blocks: %+v", b)
	}
}

// Records of placed pods are written many at a time: when there are many, when another
// record follows, and when the loop rests, whoever follows them.
func TestPlacedPodsAreWrittenTogether(t *testing.T) {
	r, i := New(0), 0
	observe := func(d *decision.Decision) {
		r.Observe(loop.Step{Now: at(i), Effects: done(d)})
		i++
	}
	seen := func(want int, when string) {
		t.Helper()
		found, _ := find(r, Query{})
		if len(found) != want {
			t.Errorf("%s: %d records, want %d", when, len(found), want)
		}
		for k := range found {
			if !found[k].Time.Equal(at(k)) {
				t.Errorf("%s: record %d is of %v, want %v", when, k, found[k].Time, at(k))
			}
		}
	}
	for range mostNotes - 1 {
		observe(placement(i, 1))
	}
	seen(0, "few")
	observe(placement(i, 1))
	seen(mostNotes, "many")
	observe(placement(i, 1))
	observe(rejection(i, 1, "Insufficient cpu"))
	seen(i, "before another record")
	observe(placement(i, 1))
	r.Flush()
	seen(i, "at rest")
	follow := r.Follow(Query{}, r.Next())
	observe(placement(i, 1))
	if found, _ := follow.Read(1); len(found) != 0 {
		t.Errorf("a follower had a record written by itself: %+v", found)
	}
	r.Flush()
	if found, _ := follow.Read(2); len(found) != 1 || found[0].Number != uint64(i-1) || !found[0].Time.Equal(at(i-1)) {
		t.Errorf("a follower reads %+v, want record %d", found, i-1)
	}
}

// The life of a pod in a real machine, step by step.
func TestTheLifeOfAPod(t *testing.T) {
	r, m := New(0), machine.New(machineOptions(t))
	r.Watch(m)
	now := start
	step := func(e machine.Event) []machine.Effect {
		now = now.Add(time.Second)
		effects := m.Step(now, e)
		r.Observe(loop.Step{Now: now, Event: e, Effects: effects})
		return effects
	}
	p := &object.Pod{UID: "u", Namespace: "shop", Name: "cart", SchedulerName: "default-scheduler"}
	p.Demand.Requests.MilliCPU, p.Demand.Usage.MilliCPU = 2000, 2000
	node := func(milli int64) *object.Node {
		n := &object.Node{Name: "n1", AllowedPods: 10}
		n.Allocatable.MilliCPU = milli
		return n
	}
	step(machine.NodeSet{Node: node(1000)})
	gated := *p
	gated.Gates = []string{"example.com/quota"}
	step(machine.PodSet{Pod: &gated})
	step(machine.PodSet{Pod: p})
	step(machine.ScheduleOne{})
	step(machine.NodeSet{Node: node(4000)})
	step(machine.ScheduleOne{})
	step(machine.BindReply{UID: "u", Result: machine.BindUnknown, Err: errors.New("the line went dead")})
	step(machine.ReadReply{UID: "u", Pod: func() *object.Pod { bound := *p; bound.NodeName = "n1"; return &bound }()})

	r.Flush()
	found, _ := find(r, Query{Pod: "shop/cart"})
	var texts []string
	for i := range found {
		texts = append(texts, found[i].Text())
	}
	want := []string{
		"gated: waiting for scheduling gates: [example.com/quota]",
		"entered the queue, gated by SchedulingGates, until 12:05:02 at the latest",
		"requeued by TargetPodUpdatePodSchedulingGatesEliminated: active",
		"attempt 1, queued for 2s: 0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
		"unschedulable by ScheduleAttemptFailure, until 12:05:04 at the latest",
		"requeued by NodeUpdateNodeAllocatable: backoff, until 12:00:06 at the latest",
		"attempt 2, queued for 2s: n1, the only feasible of 1 nodes",
		"reply to the binding lost, reading the pod: the line went dead",
		"bound",
	}
	if !reflect.DeepEqual(texts, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(texts, "\n"), strings.Join(want, "\n"))
	}
	if len(r.log.last) != 0 {
		t.Error("the pod is bound, and its last attempt is kept")
	}
}

func machineOptions(t testing.TB) machine.Options {
	t.Helper()
	profiles, err := profile.BuildAll(config.Profiles(config.Default()), plugins.Registry(features.Plugins(features.New())))
	if err != nil {
		t.Fatal(err)
	}
	return machine.Options{Profiles: profiles, Seed: 1, Workers: 1, Check: config.CheckInvariants(),
		InitialBackoff: time.Second, MaxBackoff: 10 * time.Second, MaxUnschedulable: 5 * time.Minute}
}
