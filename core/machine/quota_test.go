package machine_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/sim"
)

// withQuotas enables CapacityScheduling.
const withQuotas = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: CapacityScheduling}]}
`

// quotaMachine returns a machine that follows quotas, with a node of 4 CPUs.
func quotaMachine(t testing.TB, check bool) *machine.Machine {
	t.Helper()
	c, err := config.Decode([]byte(withQuotas), "test")
	if err != nil {
		t.Fatal(err)
	}
	options, err := sim.Options(c)
	if err != nil {
		t.Fatal(err)
	}
	options.Check = check
	return machine.New(options)
}

// elastic returns an ElasticQuota of the namespace that guarantees and shows so much CPU.
func elastic(namespace string, least, shown int64) *object.ElasticQuota {
	return &object.ElasticQuota{Meta: object.Meta{Kind: object.ElasticQuotas, Namespace: namespace, Name: "q", UID: types.UID(namespace)},
		Created: sim.Epoch, Min: object.Amounts{{Name: "cpu", Value: least}}, Used: object.Amounts{{Name: "cpu", Value: shown}}}
}

// in returns the pod in another namespace, with a priority.
func in(namespace string, priority int32, p *object.Pod) *object.Pod {
	p.Namespace, p.Priority, p.UID = namespace, priority, types.UID(namespace+"/"+p.Name)
	return p
}

// statuses describes the statuses of quotas in the effects, and the faults.
func statuses(effects []machine.Effect) (texts []string) {
	for _, e := range effects {
		switch e := e.(type) {
		case machine.PatchQuotaStatus:
			texts = append(texts, e.Quota.Namespace+" uses "+e.Used.String())
		case machine.ReportQuotaFaults:
			texts = append(texts, e.Quota.Key()+": "+e.Faults)
		}
	}
	return texts
}

// The status is put right by a process that begins to lead, also if no pod waits; and again if
// somebody writes another one while that is on its way. What is on its way is not asked for
// twice.
func TestQuotaStatusIsTrue(t *testing.T) {
	m := quotaMachine(t, true)
	step := func(e machine.Event, want string) {
		t.Helper()
		if got := fmt.Sprint(statuses(m.Step(sim.Epoch, e))); got != want {
			t.Errorf("%T: %s, want %s", e, got, want)
		}
	}
	set := func(shown int64) machine.Event { return machine.ObjectSet{Object: elastic("a", 4000, shown)} }
	step(machine.NodeSet{Node: node("n", "4", false)}, "[]")
	step(set(9000), "[]")
	step(machine.PodSet{Pod: bound(in("a", 0, pod("1", "1")), "n")}, "[]")
	step(machine.ScheduleOne{}, "[a uses cpu 1]")
	step(machine.ScheduleOne{}, "[]")
	step(set(9000), "[]")             // it is on its way
	step(set(8000), "[a uses cpu 1]") // somebody else wrote that, before or after
	step(set(1000), "[]")             // it is shown
	step(set(3000), "[a uses cpu 1]") // somebody else wrote that
	step(set(1000), "[]")
	step(machine.PodSet{Pod: bound(in("a", 0, pod("2", "1")), "n")}, "[a uses cpu 2]")
	step(machine.PodGone{UID: "a/2"}, "[a uses cpu 1]")
	step(machine.PodSet{Pod: bound(in("a", 0, pod("2", "1")), "n")}, "[a uses cpu 2]")
}

// What is wrong with a quota is reported once, by itself or with others, until it is another
// or gone.
func TestQuotaFaultsAreReported(t *testing.T) {
	m := quotaMachine(t, true)
	m.Step(sim.Epoch, machine.ScheduleOne{})
	older, younger := elastic("a", 1000, 0), elastic("a", 2000, 0)
	younger.Name, younger.UID, younger.Created = "late", "late", sim.Epoch.Add(time.Hour)
	step := func(e machine.Event, want string) {
		t.Helper()
		if got := fmt.Sprint(statuses(m.Step(sim.Epoch, e))); got != want {
			t.Errorf("%T: %s, want %s", e, got, want)
		}
	}
	const why = "[a/late: ElasticQuota a/q is older and counts for the namespace; this one does not]"
	step(machine.ObjectSet{Object: older}, "[]")
	step(machine.ObjectSet{Object: younger}, why)
	step(machine.ObjectSet{Object: elastic("b", 1000, 0)}, "[]")
	step(machine.ObjectGone{Kind: object.ElasticQuotas, Namespace: "a", Name: "late"}, "[]")
	step(machine.ObjectSet{Object: younger}, why)
	worse := elastic("b", 1000, 0)
	worse.Faults = []string{"spec.min of cpu, -1, is negative and counts as 0"}
	step(machine.ObjectSet{Object: worse}, "[b/q: spec.min of cpu, -1, is negative and counts as 0]")
}

// A pod that its quota lets through and that fits nowhere is tried again as soon as a quota
// lets it take something back, and not for others.
func TestQuotaWakesWhoMayReclaim(t *testing.T) {
	m := quotaMachine(t, true)
	now := sim.Epoch
	step := func(e machine.Event) {
		t.Helper()
		now = now.Add(time.Minute)
		m.Step(now, e)
		for m.Ready() {
			m.Step(now, machine.ScheduleOne{})
		}
	}
	step(machine.NodeSet{Node: node("n", "4", false)})
	step(machine.ObjectSet{Object: elastic("a", 6000, 0)})
	step(machine.ObjectSet{Object: elastic("b", 1000, 0)})
	step(machine.PodSet{Pod: bound(in("a", 0, pod("1", "4")), "n")})
	step(machine.PodSet{Pod: in("b", 0, pod("waits", "2"))})
	step(machine.PodSet{Pod: in("none", 0, pod("other", "2"))})
	attempts := func(name string) int { return m.Entry(types.UID(name)).Attempts() }
	b, other := attempts("b/waits"), attempts("none/other")
	step(machine.ObjectSet{Object: elastic("c", 1000, 0)})
	if attempts("b/waits") != b {
		t.Error("a quota of others calls the pod")
	}
	step(machine.ObjectSet{Object: elastic("b", 2000, 0)})
	if attempts("b/waits") == b {
		t.Error("a min that covers the pod does not call it")
	}
	if m.Entry("none/other").Attempts() != other {
		t.Error("a pod without a queue is called")
	}
	step(machine.ObjectGone{Kind: object.ElasticQuotas, Namespace: "c", Name: "q"})
	if attempts("none/other") == other {
		t.Error("a quota that is gone does not call pods without a queue")
	}
}

// A pod that another one's nomination keeps above the sum of all mins is tried again when
// the nomination ends, also if its priority is higher.
func TestEndOfANominationOfAnotherQueue(t *testing.T) {
	m := quotaMachine(t, true)
	now := sim.Epoch
	m.Step(now, machine.NodeSet{Node: node("n", "4", false)})
	m.Step(now, machine.NodeSet{Node: node("m", "4", false)})
	m.Step(now, machine.ObjectSet{Object: elastic("a", 2000, 0)})
	m.Step(now, machine.ObjectSet{Object: elastic("b", 2000, 0)})
	nominated := in("b", 0, pod("nominated", "2"))
	nominated.NominatedNode = "n"
	nominated.Gates = []string{"held"}
	m.Step(now, machine.PodSet{Pod: nominated})
	m.Step(now, machine.PodSet{Pod: in("a", 5, pod("waits", "4"))})
	for m.Ready() {
		m.Step(now, machine.ScheduleOne{})
	}
	if at := m.Entry("a/waits").Place(); at != queue.Unschedulable {
		t.Fatalf("the pod is %s", at)
	}
	m.Step(now.Add(time.Minute), machine.PodGone{UID: nominated.UID})
	if at := m.Entry("a/waits").Place(); at == queue.Unschedulable {
		t.Error("the pod was not called")
	}
}

// A victim of another queue is reclaimed, one of the pod's own is not.
func TestReclaims(t *testing.T) {
	for _, borrower := range []string{"a", "b"} {
		m := quotaMachine(t, true)
		m.Step(sim.Epoch, machine.NodeSet{Node: node("n", "4", false)})
		m.Step(sim.Epoch, machine.ObjectSet{Object: elastic("a", 4000, 0)})
		m.Step(sim.Epoch, machine.ObjectSet{Object: elastic("b", 0, 0)})
		m.Step(sim.Epoch, machine.PodSet{Pod: bound(in(borrower, 0, pod("1", "4")), "n")})
		m.Step(sim.Epoch, machine.PodSet{Pod: in("a", 5, pod("asks", "4"))})
		evicted := 0
		for _, e := range m.Step(sim.Epoch, machine.ScheduleOne{}) {
			if e, is := e.(machine.Evict); is {
				if evicted++; e.Reclaims != (borrower == "b") {
					t.Errorf("%s/1: got %+v", borrower, e)
				}
			}
		}
		if evicted != 1 {
			t.Errorf("%d pods of %s are evicted", evicted, borrower)
		}
	}
}

// A pod for which the process that led before has preempted is tried once its victims are gone,
// and loses its nomination if its quota does not admit it any more.
func TestNominatedByAnotherUnderQuota(t *testing.T) {
	m := quotaMachine(t, true)
	m.Step(sim.Epoch, machine.NodeSet{Node: node("n", "4", false)})
	m.Step(sim.Epoch, machine.ObjectSet{Object: elastic("a", 0, 0)})
	leaving := bound(in("a", 0, pod("victim", "1")), "n")
	leaving.Terminating, leaving.Disrupted = true, true
	m.Step(sim.Epoch, machine.PodSet{Pod: leaving})
	waits := in("a", 9, pod("waits", "1"))
	waits.NominatedNode = "n"
	m.Step(sim.Epoch, machine.PodSet{Pod: waits})
	m.Step(sim.Epoch, machine.ScheduleOne{})
	if e := m.Entry(waits.UID); e.NominatedNode() != "n" || e.Place() != queue.Unschedulable {
		t.Fatalf("the pod is %s and nominated to %q while its victim leaves", e.Place(), e.NominatedNode())
	}
	m.Step(sim.Epoch.Add(time.Second), machine.PodGone{UID: leaving.UID})
	m.Step(sim.Epoch.Add(time.Second), machine.ScheduleOne{})
	if e := m.Entry(waits.UID); e.NominatedNode() != "" {
		t.Errorf("the pod is %s and nominated to %q once its victim is gone", e.Place(), e.NominatedNode())
	}
}
