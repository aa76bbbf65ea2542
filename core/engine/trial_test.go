package engine

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// Views on trial have the index of those before them, and nothing else of them.

// ranked is a table of n nodes that a label tells apart, from 0 to 100.
func ranked(n int) *table.Table {
	t := table.New()
	for i := range n {
		t.SetNode(newNode(fmt.Sprint("node-", i), map[string]string{"rank": fmt.Sprint(i * 100 / (n - 1))}, 4000, 4000))
	}
	return t
}

// byRank scores a node's rank; each name is a plugin of its own.
func byRank(weight int64, normalize func(raw, low, high int64) int64, names ...string) []*rule {
	var list []*rule
	for _, name := range names {
		list = append(list, &rule{name: name, locality: framework.NodeAndPods, weight: weight, normalize: normalize,
			score: func(_ *object.Pod, at site) int64 { return number(at.node.Labels, "rank") }})
	}
	return list
}

// decidesLikePlain decides on pods of classes that come for the first time.
func decidesLikePlain(t *testing.T, tb *table.Table, p *profile.Profile) {
	t.Helper()
	e, plain := New(tb, seed, 2), NewPlain(tb, seed)
	for i := range 20 {
		pods := []*object.Pod{newPod(fmt.Sprint("p", i), nil, int64(2*i), 1), newPod(fmt.Sprint("q", i), nil, int64(2*i+1), 1)}
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods {
			got := answerOf(tb, e.Decide(For(p, pod), nil))
			if want := answerOf(tb, plain.Decide(For(p, pod), nil)); !reflect.DeepEqual(got, want) {
				t.Fatalf("pod %s: %s", pod.UID, differ(got, want))
			}
			tb.AddPod(pod, got.node)
		}
	}
}

// Final scores too high to be counted, and more numbers to a bucket than one
// can have.
func TestViewsOnTrialWithoutBuckets(t *testing.T) {
	same := func(raw, _, _ int64) int64 { return raw }
	decidesLikePlain(t, ranked(300), buildProfile(byRank(100, nil, "Heavy")))
	decidesLikePlain(t, ranked(300), buildProfile(byRank(1, same, "A", "B", "C", "D", "E", "F", "G", "H", "I")))
}

// A class that is looked at on a few nodes, and can fail there, knows nothing
// of why the class before it was rejected.
func TestCausesOfAnotherClass(t *testing.T) {
	tb := ranked(5)
	var rules []*rule
	for _, name := range []string{"A", "B", "C"} {
		rules = append(rules, &rule{name: name, reads: []string{name}, prepare: prepareBy(name), explain: always(decision.Unschedulable, name),
			reject: func(p *object.Pod, at site) framework.Verdict { return when(p.Labels["not"] == name) }})
		rules[len(rules)-1].reads = []string{name, "not"}
	}
	p := buildProfile(rules)
	p.Filter[0].ErrorsFrom = 9
	e := New(tb, seed, 1)
	if o := e.Decide(For(p, newPod("p", map[string]string{"not": "C"}, 1, 1)), nil); o.Feasible != 0 {
		t.Fatalf("%d nodes are feasible", o.Feasible)
	}
	narrow := newPod("q", map[string]string{"A": "node-3", "C": "skip"}, 1, 1)
	if o := e.Decide(For(p, narrow), nil); o.Rejected != nil || o.Feasible != 1 || o.Row != 3 {
		t.Errorf("rejected %v, %d feasible, row %d", o.Rejected, o.Feasible, o.Row)
	}
}

// Fit words the failure of a filter as deciding does.
func TestFitFails(t *testing.T) {
	tb := ranked(5)
	p := buildProfile([]*rule{{name: "A", reads: []string{"not"}, prepare: prepareBy("A"), explain: always(decision.Error, "broken"),
		reject: func(*object.Pod, site) framework.Verdict { return 1 }}})
	p.Filter[0].ErrorsFrom = 1
	s := New(tb, seed, 1).Fit(For(p, newPod("p", nil, 1, 1)), 0)
	if s == nil || s.Code != decision.Error || s.Plugin != "A" || s.Err == nil || s.Err.Error() != `running "A" filter plugin: broken` {
		t.Errorf("got %v", s)
	}
}
