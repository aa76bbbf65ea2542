package logs

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/loop"
)

// most is the highest verbosity at which kube-scheduler logs something.
const most = 10

// Logger writes the log lines of one machine. It belongs to the loop's goroutine.
type Logger struct {
	logger klog.Logger
	// level is the verbosity during the step under way.
	level int
	// told is what the queue tells.
	told queue.Listener
	// cycles counts the scheduling cycles.
	cycles int
	// placed holds the pods that are placed and not bound yet, while the verbosity
	// asks for lines about them.
	placed map[types.UID]placed
	// flushed holds those of the pods in flight that no event called.
	flushed map[types.UID]queue.State
	// evictions holds the evictions under way, preemptors what is left of theirs.
	evictions  map[eviction]machine.Evict
	preemptors map[types.UID]*preemptor
	steps      []step
	panics     panicReports
	// now is the time of the step under way.
	now time.Time
	// ended are pods whose attempt ended without a binding, in this step.
	ended []types.UID
}

// placed is what is logged of a pod when it is bound.
type placed struct {
	record *decision.Decision
	state  *queue.State // when no event called the pod
}

type eviction struct{ victim, preemptor types.UID }

type preemptor struct {
	left   int
	failed bool
}

// New returns a Logger.
func New(l klog.Logger) *Logger {
	return &Logger{logger: l, placed: map[types.UID]placed{}, flushed: map[types.UID]queue.State{},
		evictions: map[eviction]machine.Evict{}, preemptors: map[types.UID]*preemptor{}, panics: panicReports{sites: map[string]panicReport{}}}
}

// Started logs what a scheduler is made of.
func Started(l klog.Logger, profiles []*profile.Profile, extenders []machine.Extender) {
	v := l.V(2)
	if !v.Enabled() {
		return
	}
	for _, x := range extenders {
		v.Info("Creating extender", "extender", x.Name)
	}
	for _, p := range profiles {
		v.Info("the scheduler starts to work with those plugins", "profile", p.Name, "Plugins", p.Enabled())
	}
}

// Explain picks the pods whose nodes and scores are logged, for machine.Options.
func (l *Logger) Explain(*object.Pod) bool { return l.level >= 10 }

// Observe logs a step of the machine, after it.
func (l *Logger) Observe(s loop.Step, m *machine.Machine) {
	l.now = s.Now
	if _, cycle := s.Event.(machine.ScheduleOne); cycle {
		l.cycles++
	}
	l.event(s.Event, m.Changed())
	for _, e := range s.Effects {
		l.effect(s, e)
	}
	l.reportPanics()
	if took := s.Took; took >= slow && l.level >= 2 {
		l.trace(s)
	}
	for _, uid := range l.ended {
		l.forget(uid)
	}
	l.steps, l.ended = l.steps[:0], l.ended[:0]
	if level := l.verbosity(); level != l.level {
		l.follow()
	}
}

// Watch has the machine tell what the verbosity asks for, before its first step.
func (l *Logger) Watch(m *machine.Machine) {
	m.Listen(&l.told)
	l.follow()
}

// follow goes by the verbosity as it is now.
func (l *Logger) follow() {
	l.level = l.verbosity()
	l.listen()
	if l.level < 2 {
		clear(l.placed)
		clear(l.flushed)
	}
}

func (l *Logger) forget(uid types.UID) {
	delete(l.placed, uid)
	delete(l.flushed, uid)
}

// verbosity is the highest one that is logged, as far as it matters.
func (l *Logger) verbosity() int {
	v := 0
	for v < most && l.logger.V(v+1).Enabled() {
		v++
	}
	return v
}

// listen has the queue tell what the verbosity asks for.
func (l *Logger) listen() {
	l.told = queue.Listener{}
	if l.level >= 3 {
		l.told.Moved = l.moved
	}
	if l.level >= 5 {
		l.told.Skipped = l.skipped
	}
}

func (l *Logger) effect(s loop.Step, e machine.Effect) {
	switch e := e.(type) {
	case machine.AttemptDone:
		l.attempted(e.Decision)
	case machine.PodGroupDone:
		l.groupDone(e)
	case machine.Evict:
		l.evicting(e)
	case machine.Bind:
		if l.level >= 3 {
			l.logger.V(3).Info("Attempting to bind pod to node", "pod", ref(e.Pod), "node", klog.KRef("", e.Node))
		}
	case machine.PatchStatus:
		if l.level >= 3 {
			l.patching(e)
		}
	case machine.PublishEvent:
		l.published(s, e)
	case machine.Overcommitted:
		l.logger.Info("Node is over-committed", "node", klog.KRef("", e.Node), "pod", ref(e.Pod), "schedulerName", e.Pod.SchedulerName,
			"resource", e.Resource, "requested", amount(e.Resource, e.Requested), "allocatable", amount(e.Resource, e.Allocatable))
	}
}

// published logs what an event for users is about, where nothing else tells.
func (l *Logger) published(s loop.Step, e machine.PublishEvent) {
	if l.level < 2 {
		return
	}
	switch e.Reason {
	case machine.ReasonScheduled:
		l.bound(e.Pod)
	case machine.ReasonPreempted:
		if _, evicted := s.Event.(machine.EvictReply); !evicted && e.Related != nil {
			l.stopped(e.Pod, e.Related, e.RelatedGroup)
		}
	}
}

// patching logs a change of a pod's status.
func (l *Logger) patching(e machine.PatchStatus) {
	values := []any{"pod", ref(e.Pod)}
	if c := e.Condition; c != nil {
		values = append(values, "conditionType", "PodScheduled", "conditionStatus", c.Status, "conditionReason", c.Reason)
	}
	if e.Nominated != nil {
		values = append(values, "nominatedNodeName", *e.Nominated, "nominatingMode", 1) // ModeOverride
	}
	l.logger.V(3).Info("Updating pod condition and nominated node name", values...)
}

// amount is n of the resource as users write it.
func amount(name v1.ResourceName, n int64) *resource.Quantity {
	switch name {
	case v1.ResourceCPU:
		return resource.NewMilliQuantity(n, resource.DecimalSI)
	case v1.ResourceMemory, v1.ResourceEphemeralStorage:
		return resource.NewQuantity(n, resource.BinarySI)
	}
	return resource.NewQuantity(n, resource.DecimalSI)
}

func ref(p *object.Pod) klog.ObjectRef { return klog.KRef(p.Namespace, p.Name) }

// slow is how long an attempt takes that is traced, as in kube-scheduler.
const slow = 100 * time.Millisecond
