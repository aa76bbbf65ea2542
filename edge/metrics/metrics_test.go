package metrics

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/kube"
	"github.com/berth-scheduler/berth/edge/loop"
)

// story drives metrics with steps; the clock moves on by hand.
type story struct {
	*Metrics
	now    time.Time
	change machine.Change // by the next step
}

func (s *story) step(e machine.Event, effects ...machine.Effect) {
	s.Observe(loop.Step{Now: s.now, Event: e, Effects: effects, Took: time.Millisecond}, s.change)
	s.change = machine.Change{}
}

func (s *story) decide(d decision.Decision) machine.Effect {
	d.Profile = "default-scheduler"
	return machine.AttemptDone{Decision: &d}
}

func newStory(t *testing.T) (*story, metrics.KubeRegistry) {
	registry := metrics.NewKubeRegistry()
	return &story{Metrics: New(registry.MustRegister, []string{"default-scheduler"}), now: time.Unix(1000, 0)}, registry
}

func pending(uid types.UID) *object.Pod {
	return &object.Pod{UID: uid, Namespace: "ns", Name: string(uid), SchedulerName: "default-scheduler"}
}

func expect(t *testing.T, registry metrics.KubeRegistry, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

// A refused configuration is seen until one is taken over.
func TestReloaded(t *testing.T) {
	s, registry := newStory(t)
	for _, applied := range []bool{false, false, true, false} {
		s.Reloaded(applied)
		want := 1
		if applied {
			want = 0
		}
		expect(t, registry, fmt.Sprintf(`
			# HELP berth_config_refused [ALPHA] 1 while the configuration that was read last is refused and the one before stays in effect, else 0.
			# TYPE berth_config_refused gauge
			berth_config_refused %d
		`, want), "berth_config_refused")
	}
	expect(t, registry, `
		# HELP berth_config_reloads_total [ALPHA] Configurations that were taken over while the scheduler ran (applied), or refused as a whole (refused).
		# TYPE berth_config_reloads_total counter
		berth_config_reloads_total{result="applied"} 1
		berth_config_reloads_total{result="refused"} 3
	`, "berth_config_reloads_total")
}

// Attempts, bindings and unschedulable pods are counted once each, by their results.
func TestAttempts(t *testing.T) {
	s, registry := newStory(t)
	a, b, c, d := pending("a"), pending("b"), pending("c"), pending("d")
	for _, p := range []*object.Pod{a, b, c, {UID: "x", SchedulerName: "other"}} {
		s.step(machine.PodSet{Pod: p})
	}
	// a: rejected twice, then bound.
	s.step(machine.ScheduleOne{}, s.decide(decision.Decision{UID: "a", Attempt: 1, Result: decision.ResultUnschedulable, RejectedBy: []string{"NodeAffinity", "NodeResourcesFit"}}))
	s.step(machine.ScheduleOne{}, s.decide(decision.Decision{UID: "a", Attempt: 2, Result: decision.ResultUnschedulable, RejectedBy: []string{"NodeResourcesFit"}}))
	expect(t, registry, `
# HELP scheduler_unschedulable_pods [BETA] Pods that a plugin rejected at their last attempt. A pod counts for each plugin that did.
# TYPE scheduler_unschedulable_pods gauge
scheduler_unschedulable_pods{plugin="NodeAffinity",profile="default-scheduler"} 0
scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 1
`, "scheduler_unschedulable_pods")
	s.step(machine.ScheduleOne{}, s.decide(decision.Decision{UID: "a", Attempt: 3, Result: decision.ResultScheduled}), machine.Bind{Pod: a})
	s.now = s.now.Add(2 * time.Second)
	s.step(machine.BindReply{UID: "a"})
	// b: the binding is refused, then its reply is lost, then a read settles it.
	s.step(machine.ScheduleOne{}, s.decide(decision.Decision{UID: "b", Attempt: 1, Result: decision.ResultScheduled}), machine.Bind{Pod: b})
	s.step(machine.BindReply{UID: "b", Result: machine.BindRefused, Err: errors.New("no")},
		s.decide(decision.Decision{UID: "b", Attempt: 1, Result: decision.ResultError}))
	s.step(machine.ScheduleOne{}, s.decide(decision.Decision{UID: "b", Attempt: 2, Result: decision.ResultScheduled}), machine.Bind{Pod: b})
	s.step(machine.BindReply{UID: "b", Result: machine.BindUnknown, Err: errors.New("lost")})
	bound := *b
	bound.NodeName = "n"
	s.step(machine.ReadReply{UID: "b", Pod: &bound})
	s.step(machine.PodSet{Pod: &bound}) // the watch says so, too: counted once
	// c goes away, x is another scheduler's.
	s.step(machine.PodGone{UID: "c"})
	// d has done its work before the reply comes.
	s.step(machine.PodSet{Pod: d})
	s.step(machine.ScheduleOne{}, s.decide(decision.Decision{UID: "d", Attempt: 1, Result: decision.ResultScheduled}), machine.Bind{Pod: d})
	s.step(machine.PodGone{UID: "d"})
	s.step(machine.BindReply{UID: "d"})

	expect(t, registry, `
# HELP scheduler_schedule_attempts_total [STABLE] Attempts to schedule a pod, by result: unschedulable means that no node takes it, error that something failed.
# TYPE scheduler_schedule_attempts_total counter
scheduler_schedule_attempts_total{profile="default-scheduler",result="error"} 1
scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 3
scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"} 2
# HELP scheduler_pod_scheduling_attempts [STABLE] Attempts that it took until a pod was scheduled.
# TYPE scheduler_pod_scheduling_attempts histogram
scheduler_pod_scheduling_attempts_bucket{le="1"} 1
scheduler_pod_scheduling_attempts_bucket{le="2"} 2
scheduler_pod_scheduling_attempts_bucket{le="4"} 3
scheduler_pod_scheduling_attempts_bucket{le="8"} 3
scheduler_pod_scheduling_attempts_bucket{le="16"} 3
scheduler_pod_scheduling_attempts_bucket{le="+Inf"} 3
scheduler_pod_scheduling_attempts_sum 6
scheduler_pod_scheduling_attempts_count 3
# HELP berth_bindings_unknown_total [ALPHA] Bindings whose reply was lost; a read of the pod tells.
# TYPE berth_bindings_unknown_total counter
berth_bindings_unknown_total 1
# HELP scheduler_unschedulable_pods [BETA] Pods that a plugin rejected at their last attempt. A pod counts for each plugin that did.
# TYPE scheduler_unschedulable_pods gauge
scheduler_unschedulable_pods{plugin="NodeAffinity",profile="default-scheduler"} 0
scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 0
`, "scheduler_schedule_attempts_total", "scheduler_pod_scheduling_attempts", "berth_bindings_unknown_total", "scheduler_unschedulable_pods")
	if len(s.pods) != 0 {
		t.Errorf("%d pods are still remembered", len(s.pods))
	}
	seconds, err := testutil.GetHistogramMetricValue(s.attemptSeconds.WithLabelValues(scheduled, "default-scheduler"))
	if err != nil || seconds != 2 {
		t.Errorf("scheduled attempts took %v s (%v), want 2", seconds, err)
	}
	for status, want := range map[string]uint64{"Success": 3, "Error": 2} {
		n, err := testutil.GetHistogramMetricCount(s.pointSeconds.WithLabelValues("Bind", status, "default-scheduler"))
		if err != nil || n != want {
			t.Errorf("%d bindings that ended with %s (%v), want %d", n, status, err, want)
		}
	}
}

// A refresh shows the queues, counters and totals of the snapshot. Arrivals in the queue
// that hints named are no entities.
func TestRefresh(t *testing.T) {
	s, registry := newStory(t)
	snapshot := Snapshot{
		Queue:    queue.Counts{Active: 1, Backoff: 2, ErrorBackoff: 3, Unschedulable: 4, Gated: 5, InFlight: 6},
		Arrivals: map[queue.Arrival]int{{Queue: "active", Event: "NodeAdd"}: 3},
		Nodes:    7, Pods: 8, Assumed: 9, Executor: kube.Counters{EventsDropped: 2},
	}
	s.Refresh(snapshot)
	snapshot.Arrivals = map[queue.Arrival]int{{Queue: "active", Event: "NodeAdd"}: 5, {Queue: "active", Event: "NodeAdd", Hinted: true}: 4}
	s.Refresh(snapshot)
	expect(t, registry, `
# HELP scheduler_pending_pods [STABLE] Pods that wait, by queue.
# TYPE scheduler_pending_pods gauge
scheduler_pending_pods{queue="active"} 1
scheduler_pending_pods{queue="backoff"} 5
scheduler_pending_pods{queue="gated"} 5
scheduler_pending_pods{queue="unschedulable"} 4
# HELP scheduler_queue_incoming_pods_total [STABLE] Pods that came to a queue, by the event that brought them.
# TYPE scheduler_queue_incoming_pods_total counter
scheduler_queue_incoming_pods_total{event="NodeAdd",queue="active"} 9
# HELP scheduler_queued_entities [ALPHA] What waits and is scheduled as one, by queue: pods, and pod groups.
# TYPE scheduler_queued_entities gauge
scheduler_queued_entities{queue="active",type="pod"} 1
scheduler_queued_entities{queue="backoff",type="pod"} 5
scheduler_queued_entities{queue="gated",type="pod"} 5
scheduler_queued_entities{queue="unschedulable",type="pod"} 4
# HELP scheduler_queue_incoming_entities_total [ALPHA] What came to a queue and is scheduled as one, by the event that brought it: pods, and pod groups.
# TYPE scheduler_queue_incoming_entities_total counter
scheduler_queue_incoming_entities_total{event="NodeAdd",queue="active",type="pod"} 5
# HELP berth_events_dropped_total [ALPHA] API events that were not published, because too many waited or the API refused.
# TYPE berth_events_dropped_total counter
berth_events_dropped_total 2
`, "scheduler_pending_pods", "scheduler_queue_incoming_pods_total", "scheduler_queued_entities", "scheduler_queue_incoming_entities_total", "berth_events_dropped_total")
}

// A kind that is listed again and a version that the API server has no more leave no
// series. Of a version that is not known there is none.
func TestRefreshOfTheAPIServer(t *testing.T) {
	s, registry := newStory(t)
	const help = "# HELP berth_unlisted_kinds [ALPHA] 1 for each kind of objects that cannot be listed, or is not served. Pods that need it are not scheduled; /readyz/missing says why.\n" +
		"# TYPE berth_unlisted_kinds gauge\n"
	const skew = "# HELP berth_api_server_version_skew [ALPHA] By how many minor versions the API server is newer than the one that Berth is built for. -1, 0 and 1 are supported; a negative value is an API server that is older.\n" +
		"# TYPE berth_api_server_version_skew gauge\n"
	names := []string{"berth_unlisted_kinds", "berth_api_server_version_skew"}
	s.Refresh(Snapshot{})
	expect(t, registry, "", names...)
	s.Refresh(Snapshot{UnlistedKinds: []string{"a", "b"}, Server: kube.ServerVersion{Git: "v1.38.1", Minor: "1.38", Newer: 2}})
	expect(t, registry, help+`berth_unlisted_kinds{resource="a"} 1
berth_unlisted_kinds{resource="b"} 1
`+skew+`berth_api_server_version_skew{version="1.38"} 2
`, names...)
	s.Refresh(Snapshot{UnlistedKinds: []string{"b"}, Server: kube.ServerVersion{Git: "v1.35.9", Minor: "1.35", Newer: -1}})
	expect(t, registry, help+`berth_unlisted_kinds{resource="b"} 1
`+skew+`berth_api_server_version_skew{version="1.35"} -1
`, names...)
}

// TestPreemptions: every try counts, and each that found a node tells how many
// have to go.
func TestPreemptions(t *testing.T) {
	s, registry := newStory(t)
	s.step(machine.PodSet{Pod: pending("a")})
	s.step(machine.ScheduleOne{}, s.decide(decision.Decision{UID: "a", Attempt: 1, Result: decision.ResultUnschedulable,
		PreemptionTried: true, PostFilter: []string{"preemption: not eligible due to preemptionPolicy=Never."}}))
	s.step(machine.ScheduleOne{}, s.decide(decision.Decision{UID: "a", Attempt: 2, Result: decision.ResultUnschedulable, PostFilter: []string{"no claim can be freed"}}))
	s.step(machine.ScheduleOne{}, s.decide(decision.Decision{UID: "a", Attempt: 3, Result: decision.ResultPreempting,
		Victims: make([]types.NamespacedName, 3)}))
	expect(t, registry, `
# HELP scheduler_preemption_attempts_total [STABLE] Attempts in which preemption was tried, whether or not it found a node.
# TYPE scheduler_preemption_attempts_total counter
scheduler_preemption_attempts_total 2
# HELP scheduler_preemption_victims [STABLE] Victims of a preemption.
# TYPE scheduler_preemption_victims histogram
scheduler_preemption_victims_bucket{le="1"} 0
scheduler_preemption_victims_bucket{le="2"} 0
scheduler_preemption_victims_bucket{le="4"} 1
scheduler_preemption_victims_bucket{le="8"} 1
scheduler_preemption_victims_bucket{le="16"} 1
scheduler_preemption_victims_bucket{le="32"} 1
scheduler_preemption_victims_bucket{le="64"} 1
scheduler_preemption_victims_bucket{le="+Inf"} 1
scheduler_preemption_victims_sum 3
scheduler_preemption_victims_count 1
`, "scheduler_preemption_attempts_total", "scheduler_preemption_victims")
}

// A pod with scheduling gates counts as unschedulable for SchedulingGates, until
// they are gone. Its time in the queue begins then.
func TestGatedPods(t *testing.T) {
	s, registry := newStory(t)
	p := pending("a")
	p.Gates = []string{"g"}
	gated := s.decide(decision.Decision{UID: "a", Result: decision.ResultGated, RejectedBy: []string{"SchedulingGates"}})
	count := func(n string) {
		t.Helper()
		expect(t, registry, `
# HELP scheduler_unschedulable_pods [BETA] Pods that a plugin rejected at their last attempt. A pod counts for each plugin that did.
# TYPE scheduler_unschedulable_pods gauge
scheduler_unschedulable_pods{plugin="SchedulingGates",profile="default-scheduler"} `+n+"\n", "scheduler_unschedulable_pods")
	}
	s.step(machine.PodSet{Pod: p}, gated)
	s.step(machine.PodSet{Pod: p})
	count("1")
	s.now = s.now.Add(time.Hour)
	free := pending("a")
	s.step(machine.PodSet{Pod: free})
	count("0")
	if since := s.pods["a"].queued; !since.Equal(s.now) {
		t.Errorf("in the queue since %v, at %v", since, s.now)
	}
	s.step(machine.PodGone{UID: "a"})
	s.step(machine.PodSet{Pod: p}, gated)
	count("1")
	s.step(machine.PodGone{UID: "a"})
	count("0")
}

// A wait for devices is counted for each device that has conditions, and timed for
// all devices of the pod, by how it ended; a pod that is gone is not counted.
func TestWaitsForDevices(t *testing.T) {
	s, registry := newStory(t)
	waits := func(p *object.Pod) machine.Effect {
		return machine.PublishEvent{Pod: p, Reason: "BindingConditionsPending",
			WaitedDevices: []framework.WaitedDevice{{Driver: "gpu", Conditional: true}, {Driver: "gpu", Conditional: true}, {Driver: "nic"}}}
	}
	for _, tc := range []struct {
		uid  types.UID
		ends func(p *object.Pod)
	}{
		{"bound", func(p *object.Pod) { s.step(machine.Tick{}, machine.Bind{Pod: p}) }},
		{"hosted", func(p *object.Pod) {
			s.step(machine.Tick{}, machine.RunPlugins{Pod: p, Point: "PreBind"})
			s.now = s.now.Add(time.Hour)
			s.step(machine.Tick{}, machine.Bind{Pod: p})
		}},
		{"late", func(p *object.Pod) {
			s.step(machine.Tick{}, s.decide(decision.Decision{UID: p.UID, Attempt: 1, Result: decision.ResultError, Err: fmt.Errorf("x: %w", framework.ErrDeviceBindingTimeout)}))
		}},
		{"broken", func(p *object.Pod) {
			s.step(machine.Tick{}, s.decide(decision.Decision{UID: p.UID, Attempt: 1, Result: decision.ResultError, Err: fmt.Errorf("x: %w", framework.ErrDeviceBindingFailed)}))
		}},
		{"other", func(p *object.Pod) {
			s.step(machine.Tick{}, s.decide(decision.Decision{UID: p.UID, Attempt: 1, Result: decision.ResultError, Err: errors.New("no")}))
		}},
		{"rejected", func(p *object.Pod) {
			s.step(machine.Tick{}, s.decide(decision.Decision{UID: p.UID, Attempt: 1, Result: decision.ResultUnschedulable}))
		}},
		{"gone", func(p *object.Pod) { s.step(machine.PodGone{UID: p.UID}) }},
	} {
		p := pending(tc.uid)
		s.step(machine.PodSet{Pod: p})
		s.step(machine.ScheduleOne{}, s.decide(decision.Decision{UID: tc.uid, Attempt: 1, Result: decision.ResultScheduled}), waits(p))
		s.now = s.now.Add(time.Second)
		tc.ends(p)
	}
	expect(t, registry, `
# HELP scheduler_dra_bindingconditions_allocations_total [ALPHA] Devices with binding conditions that pods waited for, by how the wait ended.
# TYPE scheduler_dra_bindingconditions_allocations_total counter
scheduler_dra_bindingconditions_allocations_total{driver="gpu",profile="default-scheduler",status="error"} 4
scheduler_dra_bindingconditions_allocations_total{driver="gpu",profile="default-scheduler",status="failure"} 2
scheduler_dra_bindingconditions_allocations_total{driver="gpu",profile="default-scheduler",status="success"} 4
scheduler_dra_bindingconditions_allocations_total{driver="gpu",profile="default-scheduler",status="timeout"} 2
`, "scheduler_dra_bindingconditions_allocations_total")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range families {
		if f.GetName() != "scheduler_dra_bindingconditions_wait_duration_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := ""
			for _, l := range m.GetLabel() {
				labels += l.GetValue() + " "
			}
			got[labels] = fmt.Sprint(m.GetHistogram().GetSampleCount(), " ", m.GetHistogram().GetSampleSum())
		}
	}
	for labels, want := range map[string]string{"gpu default-scheduler success ": "4 4", "nic default-scheduler success ": "2 2", "gpu default-scheduler timeout ": "2 2"} {
		if got[labels] != want {
			t.Errorf("%s: got %q, want %q", labels, got[labels], want)
		}
	}
}

// Groups that wait are entities, and their pods are not. A group that was placed has the time
// that it waited.
func TestGroups(t *testing.T) {
	s, registry := newStory(t)
	s.Groups(registry.MustRegister)
	group := func(arrived int) Snapshot {
		return Snapshot{
			Now:   time.Unix(1000, 0),
			Queue: queue.Counts{Active: 1, ErrorBackoff: 1, Unschedulable: 8, Gated: 2},
			Groups: []queue.WaitingGroup{{Place: queue.Unschedulable, Pods: 4, Plugin: "NodeResourcesFit", Since: time.Unix(800, 0)}, {Place: queue.Unschedulable, Pods: 3, Plugin: "NodeResourcesFit", Since: time.Unix(700, 0)},
				{Place: queue.Gated, Pods: 2, Plugin: "GangScheduling", Since: time.Unix(100, 0)}, {Place: queue.ErrorBackoff, Pods: 1}},
			Arrivals: map[queue.Arrival]int{{Queue: "active", Event: "NodeAdd", Of: queue.PodOfGroup}: 3 * arrived, {Queue: "active", Event: "NodeAdd", Of: queue.WholeGroup}: arrived},
		}
	}
	s.Refresh(group(1))
	s.Refresh(group(2))
	s.step(machine.ScheduleOne{}, machine.PodGroupDone{Result: decision.ResultScheduled, Profile: "default-scheduler", Waited: 3 * time.Second})
	s.step(machine.ScheduleOne{}, machine.PodGroupDone{Result: decision.ResultScheduled, Profile: "default-scheduler"})
	expect(t, registry, `
# HELP scheduler_queued_entities [ALPHA] What waits and is scheduled as one, by queue: pods, and pod groups.
# TYPE scheduler_queued_entities gauge
scheduler_queued_entities{queue="active",type="pod"} 1
scheduler_queued_entities{queue="active",type="podgroup"} 0
scheduler_queued_entities{queue="backoff",type="pod"} 0
scheduler_queued_entities{queue="backoff",type="podgroup"} 1
scheduler_queued_entities{queue="gated",type="pod"} 0
scheduler_queued_entities{queue="gated",type="podgroup"} 1
scheduler_queued_entities{queue="unschedulable",type="pod"} 1
scheduler_queued_entities{queue="unschedulable",type="podgroup"} 2
# HELP scheduler_queue_incoming_pods_total [STABLE] Pods that came to a queue, by the event that brought them.
# TYPE scheduler_queue_incoming_pods_total counter
scheduler_queue_incoming_pods_total{event="NodeAdd",queue="active"} 6
# HELP scheduler_queue_incoming_entities_total [ALPHA] What came to a queue and is scheduled as one, by the event that brought it: pods, and pod groups.
# TYPE scheduler_queue_incoming_entities_total counter
scheduler_queue_incoming_entities_total{event="NodeAdd",queue="active",type="podgroup"} 2
# HELP berth_pod_group_oldest_wait_seconds [ALPHA] Time since a pod of a group could first be tried, of the group in each queue that has waited longest; 0 for none. Groups that are gated do not count.
# TYPE berth_pod_group_oldest_wait_seconds gauge
berth_pod_group_oldest_wait_seconds{queue="active"} 0
berth_pod_group_oldest_wait_seconds{queue="backoff"} 0
berth_pod_group_oldest_wait_seconds{queue="unschedulable"} 300
# HELP berth_pod_groups_waiting [ALPHA] Pod groups of which pods wait, by queue, and by the plugin that holds back the group (gated) or rejected a pod of it; an empty one for none.
# TYPE berth_pod_groups_waiting gauge
berth_pod_groups_waiting{plugin="",queue="backoff"} 1
berth_pod_groups_waiting{plugin="GangScheduling",queue="gated"} 1
berth_pod_groups_waiting{plugin="NodeResourcesFit",queue="unschedulable"} 2
`, "scheduler_queued_entities", "scheduler_queue_incoming_pods_total", "scheduler_queue_incoming_entities_total", "berth_pod_groups_waiting", "berth_pod_group_oldest_wait_seconds")
	if n, err := testutil.GetHistogramVecFromGatherer(registry, "berth_pod_group_placement_seconds", nil); err != nil || n.GetAggregatedSampleCount() != 1 {
		t.Errorf("%d groups placed (%v)", n.GetAggregatedSampleCount(), err)
	}
}

// What ElasticQuotas have is shown in the units of Prometheus. One that is gone leaves no
// series. Only pods of another quota are reclaimed.
func TestQuotas(t *testing.T) {
	s, registry := newStory(t)
	amounts := func(cpu int64) object.Amounts {
		return object.Amounts{{Name: "cpu", Value: cpu}, {Name: "gpu", Value: 2}}
	}
	s.Refresh(Snapshot{Quotas: []Quota{{Quota: &object.ElasticQuota{Meta: object.Meta{Namespace: "gone", Name: "q"}, Min: amounts(1)}}}})
	s.Refresh(Snapshot{Quotas: []Quota{{Quota: &object.ElasticQuota{Meta: object.Meta{Namespace: "ns", Name: "q"}, Min: amounts(1000), Max: amounts(2000)}, Used: amounts(500)}}})
	s.step(machine.ScheduleOne{}, machine.Evict{Victim: pending("a"), Preemptor: pending("b")}, machine.Evict{Victim: pending("c"), Preemptor: pending("d"), Reclaims: true})
	expect(t, registry, `
# HELP berth_elastic_quota [ALPHA] What an ElasticQuota guarantees (min), allows at most (max), and what its pods use (used), in cores, bytes or pieces.
# TYPE berth_elastic_quota gauge
berth_elastic_quota{elasticquota="q",quota_namespace="ns",resource="cpu",type="max"} 2
berth_elastic_quota{elasticquota="q",quota_namespace="ns",resource="cpu",type="min"} 1
berth_elastic_quota{elasticquota="q",quota_namespace="ns",resource="cpu",type="used"} 0.5
berth_elastic_quota{elasticquota="q",quota_namespace="ns",resource="gpu",type="max"} 2
berth_elastic_quota{elasticquota="q",quota_namespace="ns",resource="gpu",type="min"} 2
berth_elastic_quota{elasticquota="q",quota_namespace="ns",resource="gpu",type="used"} 2
# HELP berth_reclaimed_pods_total [ALPHA] Pods of a namespace that were preempted for pods of another ElasticQuota, which has its min back from them.
# TYPE berth_reclaimed_pods_total counter
berth_reclaimed_pods_total{quota_namespace="ns"} 1
`, "berth_elastic_quota", "berth_reclaimed_pods_total")
}
