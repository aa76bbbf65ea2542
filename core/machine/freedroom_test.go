package machine_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim"
)

// Room on a node calls the pod that waits for it, and is looked for on that node, when
// the API shows another pod on another node than the one that it was on, as after a restore
// of etcd, or was nominated to.
func TestRoomFreedByAPodElsewhere(t *testing.T) {
	for name, c := range map[string]struct{ on, nominated string }{
		"placed on it":    {on: "a"},
		"nominated to it": {nominated: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := sim.Options(config.Default())
			if err != nil {
				t.Fatal(err)
			}
			options.Check = true
			m, now := machine.New(options), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for _, name := range []string{"a", "b"} {
				n := &v1.Node{}
				n.Name, n.Labels = name, map[string]string{"name": name}
				n.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("10")}
				m.Step(now, machine.NodeSet{Node: decode.Node(n)})
			}
			pod := func(name string, priority int32, node string) *v1.Pod {
				p := &v1.Pod{Spec: v1.PodSpec{SchedulerName: "default-scheduler", Priority: &priority, NodeSelector: map[string]string{"name": node}, Containers: []v1.Container{{}}}}
				p.Namespace, p.Name, p.UID = "default", name, types.UID(name)
				p.Spec.Containers[0].Resources.Requests = v1.ResourceList{"cpu": resource.MustParse("4")}
				return p
			}
			first := pod("first", 10, "nowhere")
			first.Spec.NodeName = c.on
			m.Step(now, machine.PodSet{Pod: decode.Pod(first)})
			m.Step(now, machine.ScheduleOne{})
			first.Status.NominatedNodeName = c.nominated
			m.Step(now, machine.PodSet{Pod: decode.Pod(first)})
			m.Step(now, machine.PodSet{Pod: decode.Pod(pod("waits", 0, "a"))})
			m.Step(now, machine.ScheduleOne{})
			if at := m.Entry("waits").Place(); at != queue.Unschedulable {
				t.Fatalf("the pod is %s while there is no room", at)
			}
			first.Spec.NodeName = "b"
			m.Step(now, machine.PodSet{Pod: decode.Pod(first)})
			if at := m.Entry("waits").Place(); at == queue.Unschedulable {
				t.Error("the pod was not called")
			}
		})
	}
}
