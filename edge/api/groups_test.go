package api

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/why"
)

// A gang of three on a node for two waits, with how many fit and what the third lacks; a group
// without a PodGroup is told as missing; one that is bound has no nearest placement.
func TestGroups(t *testing.T) {
	f := newFixture(t)
	f.groups("GenericWorkload=true")
	f.step(machine.NodeSet{Node: decode.Node(pooled("n1", "a", "web"))})
	gang := &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "shop", Name: "train", UID: "train"}, Gang: true, MinCount: 3}
	small := &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "shop", Name: "a", UID: "a"}}
	f.step(machine.ObjectSet{Object: gang})
	f.step(machine.ObjectSet{Object: small})
	for _, of := range []struct {
		name, cpu, group string
		created          time.Time
	}{
		{"t-0", "1500m", "train", start}, {"t-1", "1500m", "train", start.Add(time.Second)}, {"t-2", "1500m", "train", start},
		{"lost", "1", "gone", start.Add(time.Second)}, {"done", "500m", "a", start},
	} {
		pod := newPod(of.name, of.cpu, of.created)
		pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &of.group}
		f.step(machine.PodSet{Pod: decode.Pod(pod)})
	}
	f.step(machine.ScheduleOne{})
	f.step(machine.ScheduleOne{})
	f.step(machine.BindReply{UID: "done", Result: machine.BindDone})

	var list GroupList
	if code, body := f.get("groups?namespace=shop", &list); code != http.StatusOK {
		t.Fatal(body)
	}
	if len(list.Groups) != 3 || list.Total != 3 || list.Off {
		t.Fatalf("%+v", list)
	}
	later := start.Add(time.Second)
	for i, want := range []Group{
		{Group: "shop/train", Minimum: 3, Gang: true, Pods: 3, Waiting: 3, Since: &start, Place: "unschedulable"},
		{Group: "shop/gone", Missing: true, Minimum: 1, Pods: 1, Waiting: 1, Since: &later, Place: "gated"},
		{Group: "shop/a", Minimum: 1, Pods: 1, Assumed: 1},
	} {
		got := list.Groups[i]
		want.Until = got.Until
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got\n%+v\nwant\n%+v", got, want)
		}
	}

	var one GroupAnswer
	if code, body := f.get("group?name=shop/train", &one); code != http.StatusOK {
		t.Fatal(body)
	}
	want := &Nearest{Nodes: 1, Has: 2, Needs: 3, Message: "0/1 nodes are available: 1 Insufficient cpu."}
	if !reflect.DeepEqual(one.Nearest, want) || one.Placements != 1 || len(one.Members) != 3 || one.Last == nil {
		t.Errorf("%+v nearest %+v", one, one.Nearest)
	}
	if m := one.Members[0]; m.Pod != "shop/t-0" || m.Place != "unschedulable" || m.Attempts != 1 || m.Message == "" {
		t.Errorf("%+v", m)
	}
	var bound GroupAnswer
	if code, body := f.get("group?name=shop/a", &bound); code != http.StatusOK || bound.Nearest != nil || bound.Members[0].Node != "n1" {
		t.Errorf("%s %+v", body, bound)
	}
	for path, want := range map[string]int{"group": 400, "group?name=shop/none": 404, "groups?limit=0": 400, "groups?x=1": 400} {
		if code, body := f.get(path, nil); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

// Of the zones that a gang may be placed in the nearest is told: the one with room for most of it.
func TestNearestPlacement(t *testing.T) {
	f := newFixture(t)
	f.groups("GenericWorkload=true,TopologyAwareWorkloadScheduling=true")
	for name, zone := range map[string]string{"n1": "a", "n2": "b", "n3": "b", "n4": "c"} {
		f.step(machine.NodeSet{Node: decode.Node(pooled(name, zone, "web"))})
	}
	f.step(machine.ObjectSet{Object: &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "shop", Name: "g", UID: "g"}, Gang: true, MinCount: 3, TopologyKey: v1.LabelTopologyZone}})
	for _, name := range []string{"p-0", "p-1", "p-2"} {
		group, pod := "g", newPod(name, "3", start)
		pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group}
		f.step(machine.PodSet{Pod: decode.Pod(pod)})
	}
	var one GroupAnswer
	if code, body := f.get("group?name=shop/g", &one); code != http.StatusOK {
		t.Fatal(body)
	}
	want := &Nearest{Placement: "b", Nodes: 2, Has: 2, Needs: 3, Message: "0/2 nodes are available: 2 Insufficient cpu."}
	if !reflect.DeepEqual(one.Nearest, want) || one.Placements != 3 {
		t.Errorf("%d placements, nearest %+v", one.Placements, one.Nearest)
	}
}

// why of a pod that fits says that too few others of its gang do: so does the header, and the
// condition that says it of the gang is no disagreement.
func TestWhyOfAGangsPod(t *testing.T) {
	f := newFixture(t)
	f.groups("GenericWorkload=true")
	f.node("n1", "4")
	f.step(machine.ObjectSet{Object: &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "shop", Name: "train", UID: "train"}, Gang: true, MinCount: 3}})
	for _, name := range []string{"t-0", "t-1", "t-2"} {
		pod, group := f.pod(name, "1500m"), "train"
		pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group}
		f.step(machine.PodGone{UID: pod.UID})
		f.step(machine.PodSet{Pod: decode.Pod(pod.DeepCopy())})
	}
	f.step(machine.ScheduleOne{})
	f.pods["shop/t-0"].Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: "Unschedulable", Message: "pod group is unschedulable, minCount (3) cannot be satisfied"}}
	var a why.Answer
	if code, body := f.get("why?pod=shop/t-0", &a); code != http.StatusOK || a.Verdict != why.WouldBePlaced || a.GroupCause == nil || !a.WaitsForGroup() || a.Disagrees() ||
		!strings.Contains(a.Sentence, "shop/t-0 waits: pod group shop/train is placed together (minCount 3, 0 placed, 3 wait), and 2 of 3 fit: shop/t-2") {
		t.Errorf("%d %s", code, body)
	}
	for path, want := range map[string]string{"why?pod=shop/t-0&output=text": "true", "why?pod=shop/t-0": ""} {
		response, err := http.Get(f.server.URL + Prefix + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := response.Header.Get(DisagreesHeader); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// groups makes the machine an empty one that schedules the pods of a PodGroup together.
func (f *fixture) groups(set string) {
	gates := features.New()
	if err := gates.Set(set); err != nil {
		f.Fatal(err)
	}
	profiles := func() ([]*profile.Profile, error) {
		return profile.BuildAll(config.Profiles(config.With(gates).Default()), plugins.Registry(features.Plugins(gates)))
	}
	own, err := profiles()
	if err != nil {
		f.Fatal(err)
	}
	f.options.Machine.PodGroups, f.options.Profiles = true, profiles
	f.options.Machine.GroupPlacements = gates.Enabled("TopologyAwareWorkloadScheduling")
	o := f.options.Machine
	o.Profiles = own
	f.m = machine.New(o)
	f.r.Watch(f.m)
	f.serve()
}

// Where pods are scheduled one by one there are no groups, and the list says so.
func TestGroupsOff(t *testing.T) {
	f := newFixture(t)
	var list GroupList
	if code, body := f.get("groups", &list); code != http.StatusOK || !list.Off || len(list.Groups) != 0 {
		t.Errorf("%d %s", code, body)
	}
}
