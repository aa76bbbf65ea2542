package machine_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim"
)

// One decision and one wake-up, step by step, are as testdata/decision.txt and
// testdata/wakeup.txt print them. Read the files' diff after an update.
func TestTraces(t *testing.T) {
	for file, story := range map[string]func(*trace){"decision.txt": traceDecision, "wakeup.txt": traceWakeUp} {
		t.Run(file, func(t *testing.T) {
			tr := newTrace(t)
			story(tr)
			path := "testdata/" + file
			if flag.Lookup("update").Value.String() == "true" {
				if err := os.WriteFile(path, []byte(tr.b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := tr.b.String(); got != string(want) {
				t.Errorf("%s is not what the machine does: run go test ./core/machine -run TestTraces -update, and read the diff. Now:\n%s", path, got)
			}
		})
	}
}

// traceDecision follows a pod from its watch event to its binding.
func traceDecision(tr *trace) {
	tr.say("A decision, step by step: from the watch event of a pod to its binding.\nMade by go test ./core/machine -run TestTraces -update.")
	tr.say("Four nodes. One is tainted, and one is too small for the pod.")
	tr.step(machine.NodeSet{Node: node("large", "8", false)})
	tr.step(machine.NodeSet{Node: node("medium", "4", false)})
	tr.step(machine.NodeSet{Node: node("small", "1", false)})
	tr.step(machine.NodeSet{Node: node("tainted", "8", true)})
	tr.say("Two equal pods arrive, replicas say. The engine finds their class, which both share.")
	tr.step(machine.PodSet{Pod: pod("web-0", "2")})
	tr.step(machine.PodSet{Pod: pod("web-1", "2")})
	tr.say("The first pod's turn: filters, scores, the choice, and the pod takes its room at once.")
	tr.step(machine.ScheduleOne{})
	tr.say("The API server has bound it. The watch shows that; then nothing stands on our word alone.")
	tr.step(machine.BindReply{UID: "web-0", Result: machine.BindDone})
	tr.step(machine.PodSet{Pod: bound(pod("web-0", "2"), "large")})
	tr.say("The second is of the same class: only the row of the node that changed is evaluated anew.")
	tr.step(machine.ScheduleOne{})
}

// traceWakeUp follows a pod that fits nowhere until an event helps it.
func traceWakeUp(tr *trace) {
	tr.say("A wake-up, step by step: a pod that fits nowhere waits until an event helps it.\nMade by go test ./core/machine -run TestTraces -update.")
	tr.say("Two full nodes.")
	tr.step(machine.NodeSet{Node: node("a", "4", false)})
	tr.step(machine.NodeSet{Node: node("b", "4", false)})
	tr.step(machine.PodSet{Pod: bound(pod("big", "3"), "a")})
	tr.step(machine.PodSet{Pod: bound(pod("tiny", "1"), "a")})
	tr.step(machine.PodSet{Pod: bound(pod("full", "4"), "b")})
	tr.say("The pod is rejected. It waits for events for which the plugin that rejected it registered.")
	tr.step(machine.PodSet{Pod: pod("web", "2")})
	tr.step(machine.ScheduleOne{})
	tr.say("A label changes. NodeResourcesFit did not register for that: nobody is asked.")
	labelled := node("b", "4", false)
	labelled.Labels = map[string]string{"disk": "ssd"}
	tr.step(machine.NodeSet{Node: labelled})
	tr.say("The small pod goes. The plugin registered for that. But the size of the waiting pod shows that a is too small for it\nstill, and no other node changed. So it stays, and no hint is asked (core/queue, Foresight).")
	tr.step(machine.PodGone{UID: "tiny"})
	tr.say("The large pod goes. Now the pod fits there. Its backoff is not over.")
	tr.step(machine.PodGone{UID: "big"})
	tr.say("Nothing else is active, so its turn comes before its backoff is over.")
	tr.step(machine.ScheduleOne{})
}

// trace prints what a machine and its queue do.
type trace struct {
	m    *machine.Machine
	now  time.Time
	b    strings.Builder
	last string // line, so that a hint that is called twice is printed once
}

func newTrace(t *testing.T) *trace {
	options, err := sim.Options(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	tr := &trace{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, p := range options.Profiles {
		for _, name := range slices.Sorted(maps.Keys(p.Plugins)) {
			tr.watchHints(p.Plugins[name])
		}
	}
	options.Seed, options.Check = 1, true
	options.Explain = func(*object.Pod) bool { return true }
	tr.m = machine.New(options)
	tr.m.Listen(&queue.Listener{
		Moved: func(e *queue.Entry, from queue.Place, event string) {
			tr.line("queue", "%s: %s -> %s (%s)", e.Pod.Name, from, e.Place(), event)
		},
		WouldFailAgain: func(p *object.Pod, event string) {
			tr.line("queue", "%s: stays, as %s could not help it", p.Name, event)
		},
	})
	return tr
}

// watchHints prints what the plugin's queueing hints answer.
func (tr *trace) watchHints(pl *framework.Plugin) {
	pl.EventsToRegister = slices.Clone(pl.EventsToRegister)
	for i := range pl.EventsToRegister {
		hint := pl.EventsToRegister[i].QueueingHintFn
		pl.EventsToRegister[i].QueueingHintFn = func(p *object.Pod, e *framework.Event) bool {
			says, queues := "Queue, as for every such event", true // no hint: the event queues
			if hint != nil {
				queues = hint(p, e)
				says = map[bool]string{true: "Queue", false: "QueueSkip"}[queues]
			}
			tr.line("hint", "%s, for %s and %s: %s", pl.Name, p.Name, queue.Label(e.Resource, e.ActionType), says)
			return queues
		}
	}
}

func (tr *trace) say(text string) {
	fmt.Fprintln(&tr.b)
	for _, line := range strings.Split(text, "\n") {
		fmt.Fprintln(&tr.b, "#", line)
	}
}

func (tr *trace) line(what, format string, args ...any) {
	line := fmt.Sprintf("   %-8s%s\n", what, fmt.Sprintf(format, args...))
	if line != tr.last {
		tr.b.WriteString(line)
	}
	tr.last = line
}

// step gives the machine an event, and prints it with all that comes of it.
func (tr *trace) step(e machine.Event) {
	tr.last = ""
	fmt.Fprintln(&tr.b, eventText(e))
	for _, effect := range tr.m.Step(tr.now, e) {
		tr.effect(effect)
	}
	switch e := e.(type) {
	case machine.PodSet:
		if e.Pod.NodeName == "" {
			tr.class(e.Pod)
		}
	case machine.ScheduleOne, machine.BindReply:
		tr.line("assumed", "%d pods", tr.m.Assumed())
	}
}

// class prints which waiting pods have the pod's signature.
func (tr *trace) class(p *object.Pod) {
	mine, _ := tr.m.Signature(p.SchedulerName, p)
	var names []string
	for e := range tr.m.Queue().Entries() {
		if other, _ := tr.m.Signature(p.SchedulerName, e.Pod); other == mine {
			names = append(names, e.Pod.Name)
		}
	}
	slices.Sort(names)
	tr.line("class", "of %s", strings.Join(names, " "))
}

func (tr *trace) effect(e machine.Effect) {
	switch e := e.(type) {
	case machine.AttemptDone:
		tr.decision(e.Decision)
	case machine.Bind:
		row, _ := tr.m.Table().Find(e.Node)
		tr.line("reserve", "%s on %s, of which %dm CPU of %dm are taken now", e.Pod.Name, e.Node, tr.m.Table().Used(0)[row], tr.m.Table().Allocatable(0)[row])
		tr.line("effect", "Bind %s to %s", e.Pod.Name, e.Node)
	case machine.PublishEvent:
		tr.line("effect", "PublishEvent %s: %s", e.Reason, e.Note)
	case machine.PatchStatus:
		if e.Condition != nil {
			tr.line("effect", "PatchStatus PodScheduled=%s: %s", e.Condition.Status, e.Condition.Reason)
		}
	default:
		tr.line("effect", "%T", e)
	}
}

func (tr *trace) decision(d *decision.Decision) {
	tr.line("attempt", "%d of %s, on %d nodes", d.Attempt, d.Pod.Name, d.NodesTotal)
	causes := map[string]int{}
	for _, n := range d.Nodes {
		for _, b := range n.Blockers {
			causes[b.Plugin+": "+strings.Join(b.Reasons, ", ")]++
		}
	}
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		tr.line("filter", "%d rejected by %s", causes[cause], cause)
	}
	tr.line("filter", "%d feasible", d.NodesFeasible)
	for _, n := range d.Nodes {
		if !n.Feasible || d.NodesFeasible == 1 { // the only one is not scored
			continue
		}
		var scores []string
		for _, s := range n.Scores {
			scores = append(scores, fmt.Sprintf("%s %d x %d", s.Plugin, s.Score, s.Weight))
		}
		tr.line("score", "%s %d = %s", n.Name, n.Total, strings.Join(scores, " + "))
	}
	if d.Node != "" && d.NodesFeasible == 1 {
		tr.line("choose", "%s, the only one", d.Node)
		return
	}
	if d.Node != "" {
		tr.line("choose", "%s, with the score %d; nodes with that score: %d", d.Node, d.Score, max(d.Ties, 1))
		return
	}
	tr.line("result", "%s", explain.Message(d))
	tr.line("result", "rejected by %s", strings.Join(d.RejectedBy, " "))
}

func eventText(e machine.Event) string {
	switch e := e.(type) {
	case machine.NodeSet:
		taints := map[bool]string{true: ", tainted", false: ""}[len(e.Node.Taints) > 0]
		return fmt.Sprintf("NodeSet %s: %dm CPU%s%s", e.Node.Name, e.Node.Allocatable.MilliCPU, taints, labelText(e.Node))
	case machine.PodSet:
		if e.Pod.NodeName != "" {
			return fmt.Sprintf("PodSet %s: bound to %s", e.Pod.Name, e.Pod.NodeName)
		}
		return fmt.Sprintf("PodSet %s: requests %dm CPU", e.Pod.Name, e.Pod.Demand.Requests.MilliCPU)
	case machine.PodGone:
		return fmt.Sprintf("PodGone %s", e.UID)
	case machine.BindReply:
		return fmt.Sprintf("BindReply %s: bound", e.UID)
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", e), "machine.")
}

func labelText(n *object.Node) (text string) {
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		text += ", " + key + "=" + n.Labels[key]
	}
	return text
}

func node(name, cpu string, tainted bool) *object.Node {
	n := &v1.Node{}
	n.Name = name
	n.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("10")}
	if tainted {
		n.Spec.Taints = []v1.Taint{{Key: "maintenance", Effect: v1.TaintEffectNoSchedule}}
	}
	return decode.Node(n)
}

func pod(name, cpu string) *object.Pod {
	requests := v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("1Gi")}
	p := &v1.Pod{Spec: v1.PodSpec{SchedulerName: "default-scheduler", Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: requests}}}}}
	p.Namespace, p.Name, p.UID = "default", name, types.UID(name)
	return decode.Pod(p)
}

func bound(p *object.Pod, node string) *object.Pod {
	now := *p
	now.NodeName = node
	return &now
}
