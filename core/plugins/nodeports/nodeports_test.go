package nodeports

import (
	"fmt"
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

const blocked = "Unschedulable: node(s) didn't have free ports for the requested pod ports"

var port = rapid.Custom(func(t *rapid.T) object.HostPort {
	return object.HostPort{
		IP:       rapid.SampledFrom([]string{"0.0.0.0", "127.0.0.1", "10.0.0.1", "::"}).Draw(t, "ip"),
		Protocol: rapid.SampledFrom([]v1.Protocol{v1.ProtocolTCP, v1.ProtocolUDP}).Draw(t, "protocol"),
		Port:     rapid.Int32Range(1, 3).Draw(t, "port"),
	}
})

func drawPod(t *rapid.T, uid string) *object.Pod {
	return &object.Pod{UID: types.UID(uid), Priority: rapid.Int32Range(0, 1).Draw(t, "priority"), HostPorts: rapid.SliceOfN(port, 0, 2).Draw(t, uid)}
}

// Ports conflict as they do for kube-scheduler's own HostPortInfo.
func TestAsKubeScheduler(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pl, pod := New(), drawPod(t, "pod")
		tb := plugintest.Table()
		want := map[string]string{}
		for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
			name, used := fmt.Sprint(i), fwk.HostPortInfo{}
			tb.SetNode(&object.Node{Name: name})
			for j := range rapid.IntRange(0, 2).Draw(t, "pods") {
				placed := drawPod(t, fmt.Sprint(i, j))
				tb.AddPod(placed, name)
				for _, hp := range placed.HostPorts {
					used.Add(hp.IP, string(hp.Protocol), hp.Port)
				}
			}
			want[name] = ""
			for _, hp := range pod.HostPorts {
				if used.CheckConflict(hp.IP, string(hp.Protocol), hp.Port) {
					want[name] = blocked
				}
			}
		}
		if len(pod.HostPorts) == 0 {
			want = nil
		}
		if got := plugintest.Ask(t, pl, tb, pod).Blocked; !maps.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		in := &framework.Input{Table: tb, Pod: pod, Rules: pl.PreFilter(tb, pod).Rules}
		for _, r := range tb.All() {
			came, below := drawPod(t, "came"), rapid.Int32Range(0, 2).Draw(t, "below")
			plugintest.CheckExchanged(t, &pl, in, r, below)
			plugintest.CheckExchanged(t, &pl, in, r, below, came)
		}
	})
}

// Pods of equal signature have equal ports, and ports that differ in any part have
// signatures that differ.
func TestEqualPartsEqualPorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawPod(t, "a"), drawPod(t, "b")
		if string(New().Sign(nil, nil, a)) == string(New().Sign(nil, nil, b)) && fmt.Sprint(a.HostPorts) != fmt.Sprint(b.HostPorts) {
			t.Fatalf("signature %q for %v and %v", string(New().Sign(nil, nil, a)), a.HostPorts, b.HostPorts)
		}
	})
	seen := map[string]bool{}
	for _, hp := range []object.HostPort{
		{IP: "1", Protocol: "TCP", Port: 2}, {IP: "1", Protocol: "UDP", Port: 2},
		{IP: "2", Protocol: "TCP", Port: 2}, {IP: "1", Protocol: "TCP", Port: 22},
	} {
		signature := string(New().Sign(nil, nil, &object.Pod{HostPorts: []object.HostPort{hp}}))
		if seen[signature] {
			t.Errorf("signature %q twice", signature)
		}
		seen[signature] = true
	}
}

// A pod is requeued when its port is freed on a node, and by a new node.
func TestQueueingHints(t *testing.T) {
	http := []object.HostPort{{IP: "0.0.0.0", Protocol: v1.ProtocolTCP, Port: 80}}
	dns := []object.HostPort{{IP: "0.0.0.0", Protocol: v1.ProtocolUDP, Port: 53}}
	pod := &object.Pod{UID: "1", HostPorts: http}
	gone := func(r framework.EventResource, p *object.Pod) framework.Event {
		return framework.Event{Resource: r, ActionType: framework.Delete, OldPod: p}
	}
	node := func(a framework.ActionType) framework.Event {
		return framework.Event{Resource: framework.Node, ActionType: a, NewNode: &object.Node{}}
	}
	for _, c := range []struct {
		name  string
		event framework.Event
		want  bool
	}{
		{"the port is freed", gone(framework.AssignedPod, &object.Pod{HostPorts: http}), true},
		{"another port is freed", gone(framework.AssignedPod, &object.Pod{HostPorts: dns}), false},
		{"no port is freed", gone(framework.AssignedPod, &object.Pod{}), false},
		{"a nominated pod goes", gone(framework.AssignedPod, &object.Pod{HostPorts: http, NominatedNode: "a"}), true},
		{"a node comes", node(framework.Add), true},
		{"labels change", node(framework.UpdateNodeLabel), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := plugintest.Queues(New(), pod, c.event); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// Filter allocates nothing.
func TestKernelAllocatesNothing(t *testing.T) {
	tb := plugintest.Table(&object.Node{Name: "a"})
	pod := &object.Pod{UID: "1", HostPorts: []object.HostPort{{IP: "0.0.0.0", Protocol: v1.ProtocolTCP, Port: 80}}}
	tb.AddPod(pod, "a")
	in, verdicts := &framework.Input{Table: tb, Pod: pod}, make([]framework.Verdict, 1)
	pl := New()
	if n := testing.AllocsPerRun(10, func() { pl.Filter(in, in.Table.All()[0:1], verdicts) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// More ports than have numbers conflict all the same.
func TestManyPorts(t *testing.T) {
	tb := plugintest.Table()
	for i := range int32(100) {
		name := fmt.Sprint(i)
		tb.SetNode(&object.Node{Name: name})
		tb.AddPod(&object.Pod{UID: types.UID(name), HostPorts: []object.HostPort{{IP: "0.0.0.0", Protocol: v1.ProtocolTCP, Port: i}}}, name)
	}
	for _, wanted := range []int32{0, 62, 63, 99, 100} {
		pod := &object.Pod{UID: "pod", HostPorts: []object.HostPort{{IP: "0.0.0.0", Protocol: v1.ProtocolTCP, Port: wanted}}}
		pl := New()
		in := &framework.Input{Table: tb, Pod: pod, Rules: pl.PreFilter(tb, pod).Rules}
		got := plugintest.Ask(t, pl, tb, pod).Blocked
		for i := range int32(100) {
			plugintest.CheckExchanged(t, &pl, in, tb.All()[i], framework.Nobody)
			plugintest.CheckExchanged(t, &pl, in, tb.All()[i], 1)
			if taken := got[fmt.Sprint(i)] != ""; taken != (i == wanted) {
				t.Errorf("port %d on node %d: taken is %v", wanted, i, taken)
			}
		}
	}
}

// Of many ports on both sides each is looked up, with the answer that comparing all pairs has.
func TestPortsAreLookedUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wanted, used := rapid.SliceOfN(port, 0, 4).Draw(t, "wanted"), rapid.SliceOfN(port, 0, 4).Draw(t, "used")
		w := ports{list: wanted}
		if pairs, known := w.conflict(used), w.conflictKnown(used); pairs != known {
			t.Fatalf("%v and %v: conflict by pairs %v, by look-ups %v", wanted, used, pairs, known)
		}
	})
	var many ports
	for i := range 2 * fewPorts {
		many.list = append(many.list, object.HostPort{IP: fmt.Sprint(i), Protocol: v1.ProtocolTCP, Port: 80})
	}
	if many.conflict(many.list[:fewPorts]); many.known != nil {
		t.Error("a few ports are looked up")
	}
	if many.conflict(many.list); many.known == nil {
		t.Error("many ports are compared with each other")
	}
}
