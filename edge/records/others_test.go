package records

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/loop"
)

// Pods that ask for other schedulers count while they have no node, and have not ended. Those that ask for
// this one do not count.
func TestOthers(t *testing.T) {
	profiles, err := profile.BuildAll(config.Profiles(config.Default()), plugins.Registry(features.Plugins(features.New())))
	if err != nil {
		t.Fatal(err)
	}
	r := New(0)
	r.Watch(machine.New(machine.Options{Profiles: profiles, Workers: 1}))
	see := func(e machine.Event) { r.Observe(loop.Step{Now: start, Event: e}) }
	pod := func(name, scheduler string, change func(*object.Pod)) {
		p := &object.Pod{UID: "1", Namespace: "shop", Name: name, SchedulerName: scheduler}
		if change != nil {
			change(p)
		}
		see(machine.PodSet{Pod: p})
	}
	is := func(want string) {
		t.Helper()
		got := "none"
		if o := r.Others(); o != nil {
			got = fmt.Sprint(o.Pods, o.More, o.Schedulers, o.Names)
		}
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	pod("a", "default-scheduler", nil)
	is("none")
	for i := range 7 {
		pod(fmt.Sprint("p", i), fmt.Sprint("s", i), nil)
	}
	pod("a", "s6", nil)
	pod("a", "s6", nil)
	is("8 false [{s6 2} {s0 1} {s1 1} {s2 1} {s3 1}] 7")
	if got := r.Others().Profiles; !reflect.DeepEqual(got, []string{"default-scheduler"}) {
		t.Error(got)
	}
	pod("a", "s0", func(p *object.Pod) { p.UID = "2" })
	is("8 false [{s0 2} {s1 1} {s2 1} {s3 1} {s4 1}] 7")
	pod("a", "s0", func(p *object.Pod) { p.NodeName = "n1" })
	pod("p1", "s1", func(p *object.Pod) { p.Terminal = true })
	pod("p2", "s2", func(p *object.Pod) { p.Terminating = true })
	pod("p3", "default-scheduler", nil)
	see(machine.PodGone{UID: "1", Namespace: "shop", Name: "p4"})
	is("3 false [{s0 1} {s5 1} {s6 1}] 3")
	if got := len(r.OtherPods()); got != 3 {
		t.Errorf("%d pods", got)
	}
	for i := range mostOthers {
		pod(fmt.Sprint("q", i), "many", nil)
	}
	if o := r.Others(); o.Pods != mostOthers || !o.More {
		t.Errorf("%d pods are kept, more %v", o.Pods, o.More)
	}
}
