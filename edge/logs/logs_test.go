package logs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/logs/logstest"
	"github.com/berth-scheduler/berth/edge/loop"
	"github.com/berth-scheduler/berth/sim"
)

// world is a machine whose steps are logged. It answers no effect by itself.
type world struct {
	*machine.Machine
	t    *testing.T
	sink *logstest.Sink
	logs *Logger
	now  time.Time
	took time.Duration // by each step
	out  []machine.Effect
	// permit and reserve are what the plugin "Moody" answers.
	permit, reserve *decision.Status
	panics          bool // its Reserve
}

func newWorld(t *testing.T, verbosity int) *world {
	w := &world{t: t, sink: &logstest.Sink{Verbosity: verbosity}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.logs = New(w.sink.Logger())
	gates := features.New()
	if err := gates.Set("GenericWorkload=true"); err != nil {
		t.Fatal(err)
	}
	options, err := sim.OptionsUnder(config.With(gates).Default(), gates)
	if err != nil {
		t.Fatal(err)
	}
	options.Check, options.Explain, options.StepDone, options.Panicked = true, w.logs.Explain, w.logs.StepDone, w.logs.Panicked
	options.MaxUnschedulable = 5 * time.Minute
	p := options.Profiles[0]
	moody := &framework.Plugin{
		Name: "Moody",
		EventsToRegister: []framework.ClusterEventWithHint{{Resource: framework.Node, ActionType: framework.Add, QueueingHintFn: func(*object.Pod, *framework.Event) bool {
			panic("moody")
		}}},
		ReservePlugin: framework.ReservePlugin{
			Reserve: func(*table.Table, *object.Pod, string) *decision.Status {
				if w.panics {
					panic("moody")
				}
				return w.reserve
			},
			Unreserve: func(*table.Table, *object.Pod, string) {},
		},
		Permit: func(*table.Table, *object.Pod, string) framework.PermitResult {
			return framework.PermitResult{Status: w.permit, Timeout: time.Minute}
		},
	}
	p.Permit, p.Reserve = []*framework.Plugin{moody}, append(p.Reserve, moody)
	p.Plugins["Moody"] = moody
	w.Machine = machine.New(options)
	w.logs.Watch(w.Machine)
	return w
}

func (w *world) do(events ...machine.Event) {
	for _, e := range events {
		w.out = w.Step(w.now, e)
		w.logs.Observe(loop.Step{Now: w.now, Event: e, Effects: w.out, Took: w.took}, w.Machine)
	}
}

func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.do(machine.Tick{})
}

func node(name, cpu string) machine.NodeSet {
	return machine.NodeSet{Node: decode.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("10")}}})}
}

func pod(name, cpu string, change ...func(*v1.Pod)) machine.PodSet {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{SchedulerName: "default-scheduler",
		Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}}
	for _, c := range change {
		c(p)
	}
	return machine.PodSet{Pod: decode.Pod(p)}
}

func on(node string) func(*v1.Pod)   { return func(p *v1.Pod) { p.Spec.NodeName = node } }
func priority(n int32) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.Priority = &n } }
func labeled(p *v1.Pod)              { p.Labels = map[string]string{"a": "b"} }
func gated(p *v1.Pod)                { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "g"}} }
func in(group string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group} }
}
func gang(name string, minCount int, priority int32) machine.ObjectSet {
	return machine.ObjectSet{Object: &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "d", Name: name, UID: types.UID(name)},
		Gang: true, MinCount: minCount, Priority: priority}}
}
func deleted(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
func done(uid types.UID) machine.BindReply {
	return machine.BindReply{UID: uid, Result: machine.BindDone}
}
func gone(name string) machine.PodGone {
	return machine.PodGone{UID: types.UID(name), Namespace: "d", Name: name}
}

// scenarios make every line be written.
var scenarios = []func(*world){
	func(w *world) { // placed and bound; seen to change; gone
		w.do(node("n1", "4"), node("n2", "4"), node("n1", "5"), pod("a", "1"), pod("a", "1", labeled), machine.ScheduleOne{}, done("a"))
		w.do(pod("b", "1", on("n1")), pod("b", "1", on("n1"), labeled), gone("b"), machine.NodeGone{Name: "n2"})
	},
	func(w *world) { // without nodes; then on one that is too small; flushed
		w.do(pod("a", "2"), machine.ScheduleOne{}, node("n1", "1"))
		w.pass(time.Minute)
		w.do(machine.ScheduleOne{}, node("n2", "1"))
		w.pass(6 * time.Minute)
		w.do(machine.ScheduleOne{}, pod("x", "1", gated), gone("x"))
		w.pass(6 * time.Minute)
		w.do(node("n1", "8"))
		w.pass(time.Minute)
		w.do(machine.ScheduleOne{}, done("a"))
	},
	func(w *world) { // the flush brings it where a node fits that no event told of
		w.do(node("n1", "1"), pod("a", "1", func(p *v1.Pod) { p.Spec.Volumes = []v1.Volume{claim("c")} }), machine.ScheduleOne{}, pod("z", "9"), machine.ScheduleOne{})
		w.reserve = &decision.Status{Code: decision.Unschedulable, Reasons: []string{"not now"}}
		w.do(pod("b", "1"), machine.ScheduleOne{})
		w.reserve = nil
		w.pass(6 * time.Minute)
		for range 3 {
			w.do(machine.ScheduleOne{})
		}
		w.do(done("b"))
	},
	func(w *world) { // a Reserve plugin fails; the API refuses a binding; a pod is being deleted
		w.do(node("n1", "4"), pod("a", "1"))
		w.reserve = &decision.Status{Code: decision.Error, Err: errors.New("broken")}
		w.do(machine.ScheduleOne{})
		w.reserve = nil
		w.do(pod("b", "1"), machine.ScheduleOne{}, machine.BindReply{UID: "b", Result: machine.BindRefused, Err: errors.New("no")})
		w.do(pod("c", "1"), pod("c", "1", deleted), machine.ScheduleOne{})
	},
	func(w *world) { // preemption: of two pods, one of which cannot be evicted; and of one that waits
		w.do(node("n1", "2"), pod("v1", "1", on("n1")), pod("v2", "1", on("n1")), pod("p", "2", priority(5)), machine.ScheduleOne{})
		w.do(machine.EvictReply{Victim: "v1", Preemptor: "p"}, machine.EvictReply{Victim: "v2", Preemptor: "p", Err: errors.New("no")})
		w.do(pod("q", "2", priority(5), func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"a": "b"} }), machine.ScheduleOne{})
	},
	func(w *world) { // groups: one is placed; one has room for half of it; of one a Reserve plugin fails; one preempts
		w.do(node("n1", "3"), gang("placed", 1, 0), pod("a", "1", in("placed")), machine.ScheduleOne{}, done("a"))
		w.do(gang("half", 2, 0), pod("b1", "2", in("half")), pod("b2", "2", in("half")), machine.ScheduleOne{}, gone("b1"), gone("b2"))
		w.reserve = &decision.Status{Code: decision.Error, Err: errors.New("broken")}
		w.do(gang("broken", 1, 0), pod("c", "1", in("broken")), machine.ScheduleOne{}, gone("c"))
		w.reserve = nil
		w.do(pod("v", "2", on("n1")), gang("vip", 1, 5), pod("d", "2", in("vip"), priority(5)), machine.ScheduleOne{})
		w.do(machine.EvictReply{Victim: "v", Preemptor: "d"})
	},
	func(w *world) {
		w.do(node("n1", "1"), pod("v", "1"))
		w.permit = &decision.Status{Code: decision.Wait}
		w.do(machine.ScheduleOne{})
		w.permit = nil
		w.do(pod("p", "1", priority(5)), machine.ScheduleOne{})
	},
}

func claim(name string) v1.Volume {
	return v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}
}

// Each line of kube-scheduler that lines.txt names is written at its verbosity
// with its keys, and none of them at a higher verbosity than is asked for.
func TestLines(t *testing.T) {
	var written []logstest.Line
	for _, play := range scenarios {
		w := newWorld(t, most)
		play(w)
		written = append(written, w.sink.Lines()...)
	}
	for _, row := range logstest.Missing("edge/logs, TestLines", written) {
		t.Errorf("never written: %s", row)
	}
	for verbosity := range most {
		for _, play := range scenarios {
			w := newWorld(t, verbosity)
			play(w)
			for _, l := range w.sink.Lines() {
				var level int
				if _, err := fmt.Sscanf(l.Level, "V%d", &level); err == nil && level > verbosity {
					t.Errorf("written at -v=%d: %v", verbosity, l)
				}
			}
		}
	}
}

// What a scheduler is made of is logged at its start.
func TestStarted(t *testing.T) {
	options, err := sim.Options(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	s := &logstest.Sink{Verbosity: 2}
	Started(s.Logger(), options.Profiles, []machine.Extender{{Name: "http://x"}})
	for _, row := range logstest.Missing("edge/logs, TestStarted", s.Lines()) {
		t.Errorf("never written: %s", row)
	}
}

// A slow attempt is traced with its steps; another is not.
func TestSlowAttempts(t *testing.T) {
	w := newWorld(t, 4)
	w.do(node("n1", "4"), pod("a", "1"), machine.ScheduleOne{})
	traced := func() (lines []string) {
		for _, l := range w.sink.Lines() {
			if strings.HasPrefix(l.Message, "Trace[") {
				lines = append(lines, strings.Split(l.Message, "\n")...)
			}
		}
		return lines
	}
	if got := traced(); got != nil {
		t.Errorf("fast, and traced: %q", got)
	}
	w.took = 120 * time.Millisecond
	w.do(pod("b", "1"), machine.ScheduleOne{})
	got := traced()
	if len(got) != 3 || !strings.HasSuffix(got[0], `: "Scheduling" namespace:d,name:b (01-Jan-2026 00:00:00.000) (total time: 120ms):`) ||
		!strings.Contains(got[1], `---"Computing predicates and prioritizing done" `) || !strings.Contains(got[2], `---"Reserving and permitting done" `) {
		t.Errorf("got %q", got)
	}
}

// What is remembered for lines to come is forgotten with the pods, and with the
// verbosity that asks for them.
func TestNothingIsKept(t *testing.T) {
	for _, play := range scenarios {
		w := newWorld(t, most)
		play(w)
		for _, name := range []string{"a", "b", "c", "p", "q", "v", "v1", "v2", "x", "z"} {
			w.do(gone(name))
		}
		if l := w.logs; len(l.placed)+len(l.flushed)+len(l.evictions)+len(l.preemptors) > 0 {
			t.Errorf("kept: %v, %v, %v, %v", l.placed, l.flushed, l.evictions, l.preemptors)
		}
	}
	w := newWorld(t, 4)
	w.do(node("n1", "4"), pod("a", "1"), machine.ScheduleOne{})
	w.sink.Verbosity = 0
	w.do(machine.Tick{})
	if len(w.logs.placed) > 0 {
		t.Errorf("kept with -v=0: %v", w.logs.placed)
	}
}

// The verbosity may change at any time; from the next step on it counts.
func TestVerbosityChanges(t *testing.T) {
	w := newWorld(t, 0)
	w.do(node("n1", "4"))
	w.sink.Verbosity = 10
	w.do(machine.Tick{}, pod("a", "1"), machine.ScheduleOne{}, done("a"))
	if n := len(w.sink.Lines()); n == 0 {
		t.Error("nothing is written at -v=10")
	}
	w.sink.Verbosity = 0
	w.do(machine.Tick{})
	w.sink.Lines()
	w.do(pod("b", "1"), machine.ScheduleOne{}, done("b"))
	if lines := w.sink.Lines(); lines != nil {
		t.Errorf("at -v=0: %v", lines)
	}
}

// With the verbosity of the lines off, a step costs no memory.
func TestNoLinesNoMemory(t *testing.T) {
	w := newWorld(t, 1)
	w.do(node("n1", "4"), pod("a", "1"), machine.ScheduleOne{})
	s := loop.Step{Now: w.now, Event: machine.ScheduleOne{}, Effects: w.out}
	if n := testing.AllocsPerRun(100, func() { w.logs.StepDone("x"); w.logs.Observe(s, w.Machine) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A pod that is bound where no room is left is a line at any verbosity.
func TestOvercommitted(t *testing.T) {
	w := newWorld(t, 0)
	w.do(node("n", "2"), pod("ours", "1500m"), machine.ScheduleOne{})
	w.do(pod("ours", "1500m", on("n")), pod("theirs", "1", on("n")))
	for _, line := range w.sink.Lines() {
		if line.Message == "Node is over-committed" && line.Level == "V0" {
			return
		}
	}
	t.Errorf("logged: %+v", w.sink.Lines())
}

// A plugin that panics for each pod is reported once a minute, not once a pod, and so is
// a queueing hint. A report has the stack of the panic.
func TestPanicsAreReportedOnceAMinute(t *testing.T) {
	w := newWorld(t, 0)
	reports := func(want int) {
		t.Helper()
		lines := w.sink.Lines()
		for _, line := range lines {
			if line.Message != "Plugin panicked, its pod will be tried again" || !slices.Contains(line.Keys, "stack") {
				t.Errorf("logged %+v", line)
			}
		}
		if len(lines) != want {
			t.Errorf("%d reports, want %d", len(lines), want)
		}
	}
	w.panics = true
	w.do(node("n", "4"))
	for i := range 10 {
		w.do(pod(fmt.Sprint("p", i), "1"), machine.ScheduleOne{})
	}
	reports(1)
	w.pass(time.Minute)
	w.Step(w.now, machine.ScheduleOne{})
	if seen := w.logs.panics.step; len(seen) != 1 || !strings.Contains(seen[0].Stack, "logs_test.go") {
		t.Errorf("the stack is not that of the panic: %+v", seen)
	}
	w.do(machine.ScheduleOne{})
	reports(1)
	w.panics, w.reserve = false, &decision.Status{Code: decision.Unschedulable, Reasons: []string{"moody"}}
	w.do(machine.ScheduleOne{}, machine.ScheduleOne{}, node("m", "4"))
	reports(1)
	w.do(node("m2", "4"))
	w.pass(time.Minute)
	reports(0)
}

// The status of a gated pod is kube-scheduler's: its reasons.
func TestGatedStatus(t *testing.T) {
	var line string
	l := New(funcr.New(func(_, args string) { line = args }, funcr.Options{Verbosity: 4}))
	l.level = 4
	l.attempted(&decision.Decision{Result: decision.ResultGated, PreEnqueueStatus: &decision.Status{
		Code: decision.UnschedulableAndUnresolvable, Plugin: "SchedulingGates", Reasons: []string{"waiting for scheduling gates: [g]"}}})
	if want := `"plugin"="SchedulingGates" "status"="waiting for scheduling gates: [g]"`; !strings.Contains(line, want) {
		t.Errorf("got %s", line)
	}
}

// A pod that is bound leaves kube-scheduler's queue of unscheduled pods; one that comes
// bound was never there.
func TestBoundPodsAreDequeued(t *testing.T) {
	w := newWorld(t, 3)
	w.do(node("n1", "4"), pod("a", "1"), machine.ScheduleOne{}, done("a"))
	w.sink.Lines()
	w.do(pod("a", "1", on("n1")), pod("other", "1", on("n1")))
	var got []string
	for _, l := range w.sink.Lines() {
		got = append(got, l.Message)
	}
	if want := []string{"Add event for scheduled pod", "Delete event for unscheduled pod", "Add event for scheduled pod"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
