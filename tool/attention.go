package tool

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// Bounds of what is usual.
const (
	slowBinding = time.Second // for the 99th percentile
	recentEnd   = 10 * time.Minute
	manyEvicted = 10  // pods, in the while that the rates are of: a minute at most
	nearLimit   = 0.5 // of the requests a second, from which on the limit is reached: a pod may take several
	manyHolders = 2   // changes of the holder, of which the last is young
)

// slowAnswer is how long an API server may take for an answer. Tests on slow machines set more.
var slowAnswer = time.Second

// judge lists what needs attention.
func (o *Overview) judge() {
	o.APISeconds = o.clock.longest().Seconds()
	o.judgeLease()
	o.judgeReplicas(o.clock.now())
	switch {
	case o.Scheduler != nil:
		o.judgeScheduler(o.Scheduler)
	case o.Lease == nil:
		o.attend("it is not known whether a Berth leads")
	default:
		o.attend("the scheduler could not be asked")
	}
	o.judgePending(o.clock.now())
	if o.APISeconds > slowAnswer.Seconds() {
		o.attend("the API server took %s to answer", secondsText(o.APISeconds))
	}
}

func (o *Overview) attend(format string, args ...any) {
	o.Attention = append(o.Attention, fmt.Sprintf(format, args...))
}

// judgeLease looks at the lease, and at how long the scheduler runs.
func (o *Overview) judgeLease() {
	l := o.Lease
	if l == nil {
		return
	}
	if lapse := l.lapse(); lapse != "" {
		o.attend("%s: nobody leads", lapse)
	} else if late := l.delay(); late != "" {
		o.attend("%s", late)
	}
	many, unsteady := int32(manyHolders), l.unsteady()
	for i := range o.Replicas {
		r := &o.Replicas[i]
		if r.Restarts > 0 {
			many = 1
		}
		unsteady = unsteady || r.Restarts >= manyHolders && r.endedLately(o.clock.now())
	}
	changes := l.changes(many)
	if changes == "" {
		return
	}
	s := o.Scheduler
	fresh := s != nil && s.Time.Sub(s.Started) < young
	if fresh && s.Leads && unsteady {
		o.attend("the scheduler restarts again and again: it runs for %s, and the lease changed hands %s; each restart waits up to %ds for the old lease",
			ageText(s.Time.Sub(s.Started).Seconds()), times(int(l.Holders)), l.ValidSeconds)
		return
	}
	o.attend("%s", changes)
	if fresh {
		who := s.Identity
		if s.Leads {
			who = "the leader"
		}
		o.attend("%s runs for %s", who, ageText(s.Time.Sub(s.Started).Seconds()))
	}
}

// endedLately reports whether a container of the replica ended a short while ago.
func (r *Replica) endedLately(now time.Time) bool {
	return r.Ended != "" && now.Sub(*r.EndedAt) < recentEnd
}

// judgeReplicas looks for replicas that are not ready or ended a short while ago.
func (o *Overview) judgeReplicas(now time.Time) {
	for i := range o.Replicas {
		r := &o.Replicas[i]
		ended := ""
		if r.Ended != "" {
			ended = fmt.Sprintf("; it ended %s ago: %s", ageText(now.Sub(*r.EndedAt).Seconds()), r.Ended)
		}
		switch {
		case !r.Ready:
			o.attend("the replica %s is not ready (%s, %s)%s", r.Pod, cmp.Or(r.Waits, r.Phase), terminal.Count(int(r.Restarts), "restart"), ended)
		case r.endedLately(now):
			o.attend("the replica %s was restarted (%s)%s", r.Pod, terminal.Count(int(r.Restarts), "restart"), ended)
		}
	}
}

// judgeScheduler looks at what the scheduler says of itself.
func (o *Overview) judgeScheduler(s *api.Status) {
	switch {
	case s.Shadow != nil:
	case !s.Leads:
		o.attend("%s does not lead: %s does", s.Identity, cmp.Or(s.Leader, "nobody"))
	case !s.Synced:
		o.attend("%s leads and does not know the cluster yet: no pod is scheduled", s.Identity)
	}
	if s.Stuck != "" {
		o.attend("%s", s.Stuck)
	}
	if v := s.APIServer; v != nil && !v.Supported {
		o.attend("the API server is %s, which this scheduler does not support", v.Version)
	}
	for _, w := range s.Watches {
		switch {
		case w.Problem != "":
			o.attend("%s", w.Problem)
		case !w.Synced:
			o.attend("%s: not listed yet", w.Resource)
		}
	}
	if r := s.Configuration.Refused; r != nil {
		o.attend("a configuration was %s", refusalText(r))
	}
	if b := &s.Rates.Binding; b.P99 > slowBinding.Seconds() {
		o.attend("bindings take long: p50 %s, p99 %s of %s; %s", secondsText(b.P50), secondsText(b.P99), terminal.Count(b.Pods, "pod"), o.slowCause(s))
	}
	if s.Rates.Evicted >= manyEvicted {
		by := evictionTexts(s.Rates.Preemptions)
		o.attend("%s evicted in the last %.0fs: %s", terminal.Count(s.Rates.Evicted, "pod"), s.Rates.Seconds, strings.Join(by[:min(shownWorkloads, len(by))], "; "))
	}
}

// slowCause says why bindings take long. Pods that are bound at once wait for the limit of requests
// as long as it takes them all: whoever waits longer while less is bound waits for the API server.
func (o *Overview) slowCause(s *api.Status) string {
	qps := float64(s.Configuration.QPS)
	rate, wait := float64(s.Rates.Bound)/s.Rates.Seconds, float64(s.Rates.Bound)/qps
	switch {
	case o.APISeconds > slowAnswer.Seconds(), qps <= 0:
		return "the API server is slow"
	case rate >= nearLimit*qps:
		return fmt.Sprintf("%.0f were bound a second: the limit of %g requests a second is reached", rate, qps)
	case s.Rates.Binding.P99 > wait:
		return fmt.Sprintf("the API server is slow: %s bound in %.0fs are far fewer than %g requests a second allow", terminal.Count(s.Rates.Bound, "pod"), s.Rates.Seconds, qps)
	}
	return fmt.Sprintf("either %s came at once, for which %g requests a second take up to %s, or the API server is slow", terminal.Count(s.Rates.Bound, "pod"), qps, secondsText(wait))
}
