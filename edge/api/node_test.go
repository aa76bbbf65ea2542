package api

import (
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
)

// One node is shown with its pods by priority and size, those that are to come, since when it is
// cordoned, and what happened there.
func TestNode(t *testing.T) {
	f := newFixture(t)
	f.step(machine.NodeSet{Node: decode.Node(pooled("n1", "a", "web"))})
	for _, p := range []struct {
		name, cpu string
		priority  int32
	}{{"small", "500m", 0}, {"large", "1", 0}, {"vip", "250m", 7}} {
		pod := f.pod(p.name, p.cpu)
		pod.Spec.Priority = &p.priority
		f.step(machine.PodSet{Pod: decode.Pod(pod.DeepCopy())})
		f.step(machine.ScheduleOne{})
	}
	f.step(machine.BindReply{UID: "small", Result: machine.BindDone})
	first := int32(9)
	boss := f.pod("boss", "4")
	boss.Spec.Priority = &first
	f.step(machine.PodSet{Pod: decode.Pod(boss.DeepCopy())})
	f.step(machine.ScheduleOne{})
	cordoned := pooled("n1", "a", "web", v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: start}})
	cordoned.Spec.Unschedulable = true
	f.step(machine.NodeSet{Node: decode.Node(cordoned)})
	var got Node
	if code, body := f.get("node?name=n1", &got); code != 200 {
		t.Fatal(body)
	}
	cpu := func(milli int64) map[v1.ResourceName]int64 { return map[v1.ResourceName]int64{"cpu": milli} }
	at := func(s int) *time.Time { return utc(start.Add(time.Duration(s) * time.Second)) }
	records := got.Records
	got.Records = nil
	want := Node{Head: head("Node"), Time: f.now, Name: "n1", Ready: true, Cordoned: true, Labels: cordoned.Labels, Taints: got.Taints,
		Resources: map[v1.ResourceName]OneAmount{"cpu": {4000, 1750}, "memory": {8 << 30, 0}, "example.com/gpu": {2, 0}, "pods": {110, 3}},
		Pods: []NodePod{
			{Pod: "shop/vip", UID: "vip", Priority: 7, Requested: cpu(250), Share: 0.0625, Created: at(7), Assumed: true},
			{Pod: "shop/large", UID: "large", Requested: cpu(1000), Share: 0.25, Created: at(4), Assumed: true},
			{Pod: "shop/small", UID: "small", Requested: cpu(500), Share: 0.125, Created: at(1), Assumed: true},
		}, Nominated: []string{"shop/boss"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if len(got.Taints) != 1 || got.Taints[0].TimeAdded == nil || !got.Taints[0].TimeAdded.Equal(&metav1.Time{Time: start}) {
		t.Errorf("taints: %+v", got.Taints)
	}
	evicted := 0
	for _, r := range records {
		if r.Type == "Evicted" {
			evicted++
		}
	}
	if len(records) != 4+evicted || records[0].Pod != "shop/small" || evicted == 0 {
		t.Errorf("records: %+v", records)
	}
}
