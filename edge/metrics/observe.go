package metrics

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/loop"
)

// pod is what is remembered of a pod of ours until it is bound or gone.
type pod struct {
	queued  time.Time // when it first could be scheduled
	started time.Time // of the attempt that placed it, zero when none did yet
	written time.Time // when PreBind plugins' writes went out, zero when there are none
	sent    time.Time // of its binding
	held    bool      // by Permit plugins
	gated   bool      // by scheduling gates, so far
	creates int       // which of the writes makes a claim, from 1; 0 for none
	gone    bool      // while its binding is on its way
	profile string
	attempt int
	// rejectedBy are the plugins for which it counts in unschedulable_pods.
	rejectedBy []string
	// devices are what it has waited for since waited.
	devices []framework.WaitedDevice
	waited  time.Time
}

// Results of an attempt, as labels.
const (
	scheduled     = "scheduled"
	unschedulable = "unschedulable"
	failed        = "error"
)

// Observe takes in a step of the machine, after it, and what it changed.
func (m *Metrics) Observe(s loop.Step, c machine.Change) {
	switch e := s.Event.(type) {
	case machine.PodSet:
		m.podSet(e.Pod, s.Now)
	case machine.PodGone:
		m.gone(e.UID)
	case machine.BindReply:
		m.bound(e, s.Now)
	case machine.ReadReply:
		if e.Err == nil && e.Pod == nil {
			m.forget(e.UID)
		} else if e.Pod != nil {
			m.podSet(e.Pod, s.Now)
		}
	case machine.WriteReply:
		if e.Call == 0 {
			m.wrote(e)
		}
	case machine.EvictReply:
		m.evicted(e, s.Now)
	case machine.ExtenderReply:
		m.answered(question{e.UID, e.Call})
	}
	m.handled(s, c)
	for _, effect := range s.Effects {
		switch e := effect.(type) {
		case machine.AttemptDone:
			m.decided(e.Decision, s)
		case machine.PodGroupDone:
			m.groupDone(e, s.Took)
		case machine.Bind:
			m.binding(e.Pod.UID, s.Now)
		case machine.BindByExtender:
			m.binding(e.Pod.UID, s.Now)
		case machine.Write:
			if e.Call == 0 {
				m.writing(e, s.Now)
			}
		case machine.PublishEvent:
			m.waiting(e, s.Now)
		case machine.RunPlugins:
			m.waitEnded(m.pods[e.Pod.UID], s.Now, nil)
		case machine.Evict:
			m.evicting(e.Preemptor.UID, s.Now)
			m.elasticQuotas.evicted(e)
		case machine.CallExtender:
			m.extenderCalled(e)
		}
	}
	m.lapped()
}

// handled times the taking in of a change. What outcomes and cycles change on
// the way is no event of the cluster.
func (m *Metrics) handled(s loop.Step, c machine.Change) {
	switch s.Event.(type) {
	case nil, machine.ScheduleOne, machine.Tick, machine.BindReply, machine.WriteReply, machine.ReadReply, machine.EvictReply, machine.ExtenderReply:
		return
	}
	if c.Action == 0 {
		return
	}
	o := m.handling[c]
	if o == nil {
		o = m.eventSeconds.WithLabelValues(queue.Label(c.Resource, c.Action))
		m.handling[c] = o
	}
	o.Observe(s.Took.Seconds())
}

// Panicked counts a step that panicked.
func (m *Metrics) Panicked(machine.Event) { m.panics.WithLabelValues("loop").Inc() }

func (m *Metrics) podSet(p *object.Pod, now time.Time) {
	known := m.pods[p.UID]
	switch {
	case p.NodeName != "" && known != nil:
		if !known.sent.IsZero() {
			m.scheduled(known, now)
		}
		m.forget(p.UID)
	case p.NodeName == "" && known == nil && m.profiles[p.SchedulerName]:
		m.pods[p.UID] = &pod{queued: now, profile: p.SchedulerName, gated: len(p.Gates) > 0}
	case known != nil && known.gated && len(p.Gates) == 0:
		known.queued, known.gated = now, false
		m.reject(known, &decision.Decision{})
	}
}

// decided takes in the record of an attempt, or of what became of it later.
func (m *Metrics) decided(d *decision.Decision, s loop.Step) {
	p := m.pods[d.UID]
	if p == nil {
		return
	}
	p.attempt = d.Attempt
	m.reject(p, d)
	switch d.Result {
	case decision.ResultScheduled, decision.ResultWaiting:
		p.started, p.held = s.Now, d.Result == decision.ResultWaiting
		m.algorithmSeconds.Observe(s.Took.Seconds())
		if d.Flushed {
			m.afterFlush.Inc()
		}
	case decision.ResultUnschedulable, decision.ResultPreempting:
		m.waitEnded(p, s.Now, errRejected)
		m.ended(p, unschedulable, s)
	case decision.ResultError:
		m.waitEnded(p, s.Now, d.Err)
		m.ended(p, failed, s)
		m.volumeFailed(d)
	}
	if d.Result == decision.ResultPreempting || d.PreemptionTried {
		m.preemptionAttempts.Inc()
	}
	if d.Result == decision.ResultPreempting {
		m.preemptionVictims.Observe(float64(len(d.Victims)))
	}
}

// ended counts an attempt that did not place the pod.
func (m *Metrics) ended(p *pod, result string, s loop.Step) {
	took := s.Took
	if !p.started.IsZero() {
		took = s.Now.Sub(p.started)
	}
	if p.held {
		m.permitWaitSeconds.WithLabelValues("Unschedulable").Observe(took.Seconds())
	}
	if !p.written.IsZero() && p.sent.IsZero() {
		m.pointSeconds.WithLabelValues("PreBind", "Error", p.profile).Observe(s.Now.Sub(p.written).Seconds())
	}
	m.attempts.WithLabelValues(result, p.profile).Inc()
	m.attemptSeconds.WithLabelValues(result, p.profile).Observe(took.Seconds())
	p.started, p.written, p.sent, p.held = time.Time{}, time.Time{}, time.Time{}, false
}

// writing takes in that PreBind plugins' writes are on their way.
func (m *Metrics) writing(e machine.Write, now time.Time) {
	p := m.pods[e.Pod.UID]
	if p == nil {
		return
	}
	m.letGo(p, now)
	p.written, p.creates = now, 1+slices.IndexFunc(e.Writes, func(w framework.Write) bool { return w.Create != nil })
}

// wrote counts the claim that was, or was not, made for a pod's extended
// resources.
func (m *Metrics) wrote(e machine.WriteReply) {
	p := m.pods[e.UID]
	if p == nil || p.creates == 0 || e.Err != nil && e.Done < p.creates-1 {
		return
	}
	result := "success"
	if e.Err != nil && e.Done == p.creates-1 {
		result = "failure"
	}
	m.claims.WithLabelValues(result, "false", "", "Pod").Inc()
	p.creates = 0
}

// letGo ends the time that Permit plugins held the pod, if they did.
func (m *Metrics) letGo(p *pod, now time.Time) {
	if p.held {
		m.permitWaitSeconds.WithLabelValues("Success").Observe(now.Sub(p.started).Seconds())
		p.held = false
	}
}

// binding takes in that the pod's binding is on its way.
func (m *Metrics) binding(uid types.UID, now time.Time) {
	p := m.pods[uid]
	if p == nil {
		return
	}
	m.letGo(p, now)
	m.waitEnded(p, now, nil)
	if !p.written.IsZero() {
		m.pointSeconds.WithLabelValues("PreBind", "Success", p.profile).Observe(now.Sub(p.written).Seconds())
	}
	p.sent = now
}

// bound takes in the outcome of a binding. A refusal is counted with the
// record that the machine makes of it.
func (m *Metrics) bound(e machine.BindReply, now time.Time) {
	p := m.pods[e.UID]
	if e.Result == machine.BindUnknown {
		m.unknownBindings.Inc()
	}
	if p == nil || p.sent.IsZero() {
		return
	}
	if e.Result == machine.BindDone {
		m.scheduled(p, now)
	} else {
		m.pointSeconds.WithLabelValues("Bind", "Error", p.profile).Observe(now.Sub(p.sent).Seconds())
	}
	if e.Result == machine.BindDone || p.gone {
		m.forget(e.UID)
	}
}

// gone takes in that a pod was deleted or has done its work. One whose binding
// is on its way is remembered until the reply.
func (m *Metrics) gone(uid types.UID) {
	if p := m.pods[uid]; p != nil && !p.sent.IsZero() {
		p.gone = true
		return
	}
	m.forget(uid)
}

// scheduled counts a pod that is bound, as the reply to its binding says, or
// the watch, which may be sooner.
func (m *Metrics) scheduled(p *pod, now time.Time) {
	m.pointSeconds.WithLabelValues("Bind", "Success", p.profile).Observe(now.Sub(p.sent).Seconds())
	m.attempts.WithLabelValues(scheduled, p.profile).Inc()
	m.attemptSeconds.WithLabelValues(scheduled, p.profile).Observe(now.Sub(p.started).Seconds())
	m.podAttempts.Observe(float64(p.attempt))
	m.sliSeconds.WithLabelValues(attemptsLabel(p.attempt)).Observe(now.Sub(p.queued).Seconds())
}

// attemptsLabel keeps the number of labels small, as kube-scheduler does.
func attemptsLabel(n int) string {
	if n >= 15 {
		return "15+"
	}
	return strconv.Itoa(n)
}

// reject moves the pod to the plugins that reject it now.
func (m *Metrics) reject(p *pod, d *decision.Decision) {
	for _, plugin := range p.rejectedBy {
		m.unschedulable.WithLabelValues(plugin, p.profile).Dec()
	}
	p.rejectedBy = d.RejectedBy
	for _, plugin := range p.rejectedBy {
		m.unschedulable.WithLabelValues(plugin, p.profile).Inc()
	}
}

func (m *Metrics) forget(uid types.UID) {
	if p := m.pods[uid]; p != nil {
		m.reject(p, &decision.Decision{})
		delete(m.pods, uid)
	}
}
