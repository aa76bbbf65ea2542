package machine

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// signingHost signs every pod alike.
type signingHost struct{ noHost }

func (signingHost) Sign(*object.Pod) (string, bool) { return "", true }

// What is told to the machine between two pods ends what is kept of a hosted plugin's
// answers, but not what a run of pods brings about itself.
func TestEventsEndKeptAnswers(t *testing.T) {
	pending := func(name string) PodSet {
		return PodSet{&object.Pod{UID: types.UID(name), Namespace: "d", Name: name, SchedulerName: "s"}}
	}
	for _, tc := range []struct {
		name  string
		event func(last *object.Pod, node string) Event
		ends  bool
	}{
		{"a pod comes that waits", func(*object.Pod, string) Event { return pending("other") }, false},
		{"time goes by", func(*object.Pod, string) Event { return Tick{} }, false},
		{"the binding of the last pod is done", func(last *object.Pod, _ string) Event { return BindReply{UID: last.UID} }, false},
		{"the last pod is shown where it was bound", func(last *object.Pod, node string) Event { return PodSet{boundTo(last, node)} }, false},
		{"the last pod is refused", func(last *object.Pod, _ string) Event {
			return BindReply{UID: last.UID, Result: BindRefused, Err: fmt.Errorf("no")}
		}, true},
		{"the last pod goes", func(last *object.Pod, _ string) Event {
			return PodGone{UID: last.UID, Namespace: last.Namespace, Name: last.Name}
		}, true},
		{"a bound pod comes", func(*object.Pod, string) Event {
			return PodSet{&object.Pod{UID: "bound", Namespace: "d", Name: "bound", NodeName: "n03"}}
		}, true},
		{"a node comes", func(*object.Pod, string) Event { return NodeSet{&object.Node{Name: "new", AllowedPods: 110}} }, true},
		{"a disruption budget comes", func(*object.Pod, string) Event {
			return BudgetSet{&object.Budget{Namespace: "d", Name: "b"}}
		}, true},
		{"an object changes that only hosted plugins know", func(*object.Pod, string) Event { return HostedObjectChanged{Resource: "r"} }, true},
		{"etcd is restored", func(*object.Pod, string) Event { return Rewound{} }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked := 0
			pl := &framework.Plugin{Name: "asked", FilterPlugin: framework.FilterPlugin{
				Filter: func(_ *framework.Input, rows []table.Row, out []framework.Verdict) {
					asked += len(rows)
					clear(out)
				}}}
			pl.Hosted, pl.Locality = &framework.HostedPlugin{Host: signingHost{}}, framework.Anything
			less := &framework.Plugin{Name: "first"}
			less.Less = func(a, b *framework.QueuedPodInfo) bool { return a.Timestamp.Before(b.Timestamp) }
			less.Bind = func(*object.Pod, string) bool { return true }
			p := &profile.Profile{Name: "s", Host: signingHost{}, QueueSort: less, Filter: []*framework.Plugin{pl}, Bind: []*framework.Plugin{less},
				Plugins: map[string]*framework.Plugin{"asked": pl, "first": less}}
			m := New(Options{Profiles: []*profile.Profile{p}, Seed: 1, Workers: 1, Check: true, InitialBackoff: time.Second, MaxBackoff: time.Second, MaxUnschedulable: time.Hour})
			now := time.Unix(0, 0)
			for i := range 20 {
				m.Step(now, NodeSet{&object.Node{Name: fmt.Sprintf("n%02d", i), AllowedPods: 110}})
			}
			place := func(i int) (*object.Pod, string) {
				s := pending(fmt.Sprint("p", i))
				m.Step(now, s)
				for _, e := range m.Step(now, ScheduleOne{}) {
					if b, ok := e.(Bind); ok {
						return s.Pod, b.Node
					}
				}
				t.Fatalf("%s is not bound", s.Pod.Name)
				return nil, ""
			}
			for i := range 9 {
				place(i)
			}
			last, node := place(9)
			m.Step(now, tc.event(last, node))
			asked = 0
			if place(10); (asked > 2) != tc.ends {
				t.Errorf("%d questions", asked)
			}
		})
	}
}
