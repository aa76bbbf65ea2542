package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/sim"
)

// dayOf is a day on which the pods of workload w fared so: NODE, "-" for none, with "!" if it
// was evicted and "+N" for a wait of N seconds.
func dayOf(crowd Crowd, pods ...string) *Day {
	d := &Day{Pods: map[types.UID]*Pod{}, Crowds: map[string]*Crowd{"deployment/ns/w": &crowd}}
	for i, text := range pods {
		p := &Pod{Key: fmt.Sprint("ns/", i), Workload: "deployment/ns/w"}
		text, p.Evicted = strings.TrimSuffix(text, "!"), strings.HasSuffix(text, "!")
		node, wait, _ := strings.Cut(text, "+")
		if node != "-" {
			seconds := 0
			_, _ = fmt.Sscan(wait, &seconds)
			p.Node, p.Placed = node, p.Arrived.Add(time.Duration(seconds)*time.Second)
		}
		d.Pods[types.UID(p.Key)] = p
	}
	return d
}

// A workload is worse or better by what weighs most and differs enough.
func TestWorkloadVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		a, b           string
		crowdA, crowdB Crowd
		want           string
	}{
		"the same":                       {a: "x y", b: "x y", want: "2 pods, 0 elsewhere, alike"},
		"only elsewhere":                 {a: "x y", b: "y x", want: "2 pods, 2 elsewhere, alike"},
		"one without a node":             {a: "x y", b: "x -", want: "2 pods, 0 elsewhere, worse: pods without a node"},
		"one more with a node":           {a: "- y", b: "x y", want: "2 pods, 0 elsewhere, better: pods without a node"},
		"preempted":                      {a: "x y", b: "x y!", want: "2 pods, 0 elsewhere, worse: preempted pods"},
		"a node weighs more":             {a: "- y", b: "x! y", want: "2 pods, 0 elsewhere, better: pods without a node"},
		"a longer wait":                  {a: "x y+2", b: "x y+5", want: "2 pods, 0 elsewhere, worse: wait"},
		"preemption weighs more":         {a: "x! y", b: "x y+5", want: "2 pods, 0 elsewhere, better: preempted pods"},
		"crowded in a zone":              {"x y", "x y", Crowd{Most: 8, OnNode: 1, InZone: 4}, Crowd{Most: 8, OnNode: 1, InZone: 6}, "2 pods, 0 elsewhere, worse: pods in a zone"},
		"hardly crowded in a zone":       {"x y", "x y", Crowd{Most: 8, OnNode: 1, InZone: 4}, Crowd{Most: 8, OnNode: 1, InZone: 5}, "2 pods, 0 elsewhere, alike"},
		"less crowded on a node":         {"x y", "x x", Crowd{Most: 2, OnNode: 2}, Crowd{Most: 2, OnNode: 1}, "2 pods, 1 elsewhere, better: pods on a node"},
		"a zone weighs more than a node": {"x y", "x y", Crowd{Most: 2, OnNode: 2, InZone: 1}, Crowd{Most: 2, OnNode: 1, InZone: 2}, "2 pods, 0 elsewhere, worse: pods in a zone"},
	} {
		t.Run(name, func(t *testing.T) {
			w := Compare("a", "b", dayOf(c.crowdA, strings.Fields(c.a)...), dayOf(c.crowdB, strings.Fields(c.b)...)).Workloads[0]
			if got := fmt.Sprintf("%d pods, %d elsewhere, %s", w.Pods, w.Elsewhere, w.verdict()); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// Of a recorded day the workloads of its pods are known, and how many of them were in one
// place at the same time: what packs nodes crowds some.
func TestWorkloadsOfDay(t *testing.T) {
	dir, size := t.TempDir(), small
	size.Controllers = true
	recordDay(t, dir, size, recording.Scheduler, nil)
	a := run(t, dir, func(*machine.Options) {})
	c := Compare("own", "own", a, run(t, dir, func(*machine.Options) {}))
	if len(c.Workloads) != 60 || c.Workloads[0].Workload != "deployment/team-0/app-0" {
		t.Fatalf("%d workloads, the first %+v", len(c.Workloads), c.Workloads[0])
	}
	for _, w := range c.Workloads {
		if crowd := a.Crowds[w.Workload]; w.Verdict != alike || w.Pods != 2 || crowd.Most < 1 || crowd.Most > 2 || crowd.InZone > crowd.Most || crowd.OnNode > crowd.InZone {
			t.Errorf("%+v, %+v", w, crowd)
		}
	}
	crowds := slices.ContainsFunc(c.Workloads, func(w Workload) bool { return a.Crowds[w.Workload].Most == 1 })
	if all := slices.ContainsFunc(c.Workloads, func(w Workload) bool { return a.Crowds[w.Workload].Most == 2 }); !crowds || !all {
		t.Error("no two pods of a workload come after each other, or none at the same time")
	}
	for name, crowd := range a.Crowds {
		for _, left := range crowd.now {
			there := 0
			for _, p := range a.Pods {
				if p.Workload == name && p.there {
					there++
				}
			}
			if left != there {
				t.Errorf("%s: %d pods are counted at the end, %d are there", name, left, there)
			}
		}
	}
}

// A node is empty if it has no pods but those of DaemonSets and static ones.
func TestEmptyNodes(t *testing.T) {
	options, err := sim.Options(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	in := sim.Input{Machine: options}
	yes := true
	for name, owner := range map[string]string{"a": "", "b": "ReplicaSet", "c": "DaemonSet", "d": "Node", "e": "none"} {
		in.Nodes = append(in.Nodes, decode.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}))
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{NodeName: name, SchedulerName: "default-scheduler"}}
		if owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: owner, Name: "x", Controller: &yes}}
		}
		if owner != "none" {
			in.Pods = append(in.Pods, decode.Pod(p))
		}
	}
	w, err := sim.Load(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := emptyNodes(w.Machine.Table()); !slices.Equal(got, []string{"c", "d", "e"}) || look(w).Empty != 3 {
		t.Errorf("empty are %v, counted %d", got, look(w).Empty)
	}
	a, b := dayOf(Crowd{}), dayOf(Crowd{})
	a.Empty, b.Empty = []string{"c", "d"}, []string{"d", "e", "f"}
	c := Compare("a", "b", a, b)
	if !slices.Equal(c.EmptyA, []string{"c"}) || !slices.Equal(c.EmptyB, []string{"e", "f"}) || c.A.EmptyAtEnd != 2 || c.B.EmptyAtEnd != 3 {
		t.Errorf("under A alone %v, under B alone %v, %d and %d at the end", c.EmptyA, c.EmptyB, c.A.EmptyAtEnd, c.B.EmptyAtEnd)
	}
}
