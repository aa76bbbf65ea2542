package defaultpreemption

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	config "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/defaultbinder"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/plugins/nodename"
	"github.com/berth-scheduler/berth/core/plugins/nodeports"
	"github.com/berth-scheduler/berth/core/plugins/noderesources"
	"github.com/berth-scheduler/berth/core/plugins/prioritysort"
	"github.com/berth-scheduler/berth/core/plugins/tainttoleration"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/resource"
)

// scheduler is a machine with the plugins that say most of what a pod is
// rejected for, and this one.
func scheduler(t *testing.T) *machine.Machine {
	t.Helper()
	fit, err := noderesources.New(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	preemption, err := New(nil, feature.Features{})
	if err != nil {
		t.Fatal(err)
	}
	registry, all := profile.Registry{}, profile.Config{Name: "s"}
	for _, pl := range []framework.Plugin{
		prioritysort.New(), nodename.New(), tainttoleration.New(feature.Features{}), nodeports.New(), fit, preemption, defaultbinder.New(),
	} {
		registry[pl.Name] = func(any) (*framework.Plugin, error) { return &pl, nil }
		all.MultiPoint.Enabled = append(all.MultiPoint.Enabled, profile.Enabled{Plugin: pl.Name})
	}
	p, err := profile.Build(&all, registry)
	if err != nil {
		t.Fatal(err)
	}
	return machine.New(machine.Options{Profiles: []*profile.Profile{p}, Workers: 1, Check: true})
}

func node(name string, cpu int64, taints ...v1.Taint) *object.Node {
	return &object.Node{UID: types.UID(name), Name: name, Taints: taints, AllowedPods: 10, Allocatable: resource.Vector{MilliCPU: cpu}}
}

var closed = v1.Taint{Key: "closed", Effect: v1.TaintEffectNoSchedule}

func pod(name string, priority int32, cpu int64, node string, options ...func(*object.Pod)) *object.Pod {
	p := &object.Pod{UID: types.UID(name), Namespace: "default", Name: name, SchedulerName: "s", NodeName: node, Priority: priority}
	p.Demand.Requests.MilliCPU, p.Demand.Usage.MilliCPU = cpu, cpu
	for _, o := range options {
		o(p)
	}
	return p
}

func port(p *object.Pod) {
	p.HostPorts = []object.HostPort{{IP: "0.0.0.0", Protocol: v1.ProtocolTCP, Port: 80}}
}

// TestOutcomes has, for a cluster and a pod, the whole message and what
// becomes of the pod's nomination.
func TestOutcomes(t *testing.T) {
	going := func(p *object.Pod) { p.Terminating, p.Disrupted = true, true }
	nominated := func(node string) func(*object.Pod) { return func(p *object.Pod) { p.NominatedNode = node } }
	never := func(p *object.Pod) { p.NeverPreempts = true }
	for _, c := range []struct {
		name    string
		nodes   []*object.Node
		placed  []*object.Pod
		pod     *object.Pod
		message string
		victims string
		node    string // nominated in the end
	}{
		{
			name:    "nobody to preempt",
			nodes:   []*object.Node{node("a", 100), node("b", 100)},
			placed:  []*object.Pod{pod("x", 5, 100, "a"), pod("y", 5, 100, "b")},
			pod:     pod("p", 5, 50, ""),
			message: "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.",
		},
		{
			name:    "more than the node has",
			nodes:   []*object.Node{node("a", 100), node("b", 100), node("c", 300)},
			placed:  []*object.Pod{pod("x", 1, 100, "a"), pod("y", 5, 300, "c")},
			pod:     pod("p", 5, 200, ""),
			message: "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.",
		},
		{
			name:    "no node that it would help, and the nomination ends",
			nodes:   []*object.Node{node("a", 100, closed), node("b", 100, closed)},
			placed:  []*object.Pod{pod("x", 1, 100, "a")},
			pod:     pod("p", 5, 200, "", nominated("a")),
			message: "0/2 nodes are available: 2 node(s) had untolerated taint(s). preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
		},
		{
			name:  "one of each, sorted as text",
			nodes: []*object.Node{node("a", 300, closed), node("b", 250), node("c", 300), node("d", 300), node("e", 300)},
			placed: []*object.Pod{
				pod("w", 9, 100, "b"), pod("x", 1, 100, "b"), pod("y", 9, 300, "c"), pod("z", 9, 300, "d"),
				pod("port", 9, 10, "e", port), pod("low", 1, 10, "e"),
			},
			pod: pod("p", 5, 200, "", port, nominated("c")),
			message: "0/5 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, 1 node(s) had untolerated taint(s), 3 Insufficient cpu. " +
				"preemption: 0/5 nodes are available: 1 Insufficient cpu, 1 Preemption is not helpful for scheduling, " +
				"1 node(s) didn't have free ports for the requested pod ports, 2 No preemption victims found for incoming pod.",
		},
		{
			name:    "policy Never keeps the nomination",
			nodes:   []*object.Node{node("a", 100)},
			placed:  []*object.Pod{pod("x", 1, 100, "a")},
			pod:     pod("p", 5, 100, "", never, nominated("a")),
			message: "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never.",
			node:    "a",
		},
		{
			name:    "victims that are going keep the nomination",
			nodes:   []*object.Node{node("a", 100), node("b", 100)},
			placed:  []*object.Pod{pod("x", 1, 100, "a", going), pod("y", 1, 100, "b")},
			pod:     pod("p", 5, 100, "", nominated("a")),
			message: "0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible due to a terminating pod on the nominated node.",
			node:    "a",
		},
		{
			name:    "a preemption that works names node and number of victims",
			nodes:   []*object.Node{node("a", 100), node("b", 300)},
			placed:  []*object.Pod{pod("x", 3, 50, "a"), pod("y", 1, 100, "b"), pod("z", 1, 200, "b")},
			pod:     pod("p", 5, 100, ""),
			message: "0/2 nodes are available: 2 Insufficient cpu. preemption: found a potential placement for pod on node b, preempting 1 victims",
			victims: "z",
			node:    "b",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, node := decide(t, c.nodes, c.placed, c.pod)
			var victims []string
			for _, v := range d.Victims {
				victims = append(victims, v.Name)
			}
			if got := explain.Message(d); got != c.message {
				t.Errorf("message\n got %s\nwant %s", got, c.message)
			}
			if got := strings.Join(victims, " "); got != c.victims || node != c.node {
				t.Errorf("victims %q, nominated to %q; want %q, %q", got, node, c.victims, c.node)
			}
		})
	}
}

// decide returns the decision for the pod, and where it is nominated then.
func decide(t *testing.T, nodes []*object.Node, placed []*object.Pod, p *object.Pod) (*decision.Decision, string) {
	t.Helper()
	m, now := scheduler(t), time.Unix(0, 0)
	for _, n := range nodes {
		m.Step(now, machine.NodeSet{Node: n})
	}
	for _, q := range append(placed, p) {
		m.Step(now, machine.PodSet{Pod: q})
	}
	for _, e := range m.Step(now, machine.ScheduleOne{}) {
		if d, ok := e.(machine.AttemptDone); ok {
			return d.Decision, m.Entry(p.UID).NominatedNode()
		}
	}
	t.Fatal("no decision")
	return nil, ""
}

// Arguments out of range, or both zero, are refused with the field and the reason.
func TestArguments(t *testing.T) {
	for _, c := range []struct {
		percentage, absolute int32
		wrong                string
	}{
		{10, 100, ""}, {0, 1, ""}, {100, 0, ""},
		{101, 1, "minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"},
		{-1, 1, "minCandidateNodesPercentage: Invalid value: -1: not in valid range [0, 100]"},
		{1, -1, "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)"},
		{0, 0, "[minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute, " +
			"minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage]"},
	} {
		_, err := New(&config.DefaultPreemptionArgs{MinCandidateNodesPercentage: &c.percentage, MinCandidateNodesAbsolute: &c.absolute}, feature.Features{})
		if (err == nil) != (c.wrong == "") || (err != nil && err.Error() != c.wrong) {
			t.Errorf("%d, %d: got %v, want %q", c.percentage, c.absolute, err, c.wrong)
		}
	}
	zero := int32(0)
	if _, err := New(&config.DefaultPreemptionArgs{MinCandidateNodesPercentage: &zero}, feature.Features{}); err != nil {
		t.Errorf("the other argument has no default: %v", err)
	}
}
