package tool

import (
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/records"
)

// wanting is a pod without a node that asks for a scheduler, and was made some time ago.
func wanting(scheduler string, ago time.Duration) v1.Pod {
	p := podOn("data", "report-1", "", nil)
	p.Spec.SchedulerName, p.Status.Phase = scheduler, v1.PodPending
	p.CreationTimestamp = metav1.Time{Time: time.Now().Add(-ago)}
	return p
}

// Pods that ask for a scheduler that no profile is are named. They need attention if a profile has
// nearly that name or nobody has looked at them for a minute, unless a scheduler of that name leads
// or has looked at them.
func TestStatusOfPodsThatNobodyServes(t *testing.T) {
	const hour = time.Hour
	unserved := regexp.MustCompile(`UNSERVED +1 pod wants the scheduler \S+, which Berth does not serve\n`)
	looked := wanting("berht", hour)
	looked.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable}}
	for name, c := range map[string]struct {
		pod  v1.Pod
		also func(*apiWithLeases)
		want string // attention
	}{
		"a typo":         {wanting("berht", 0), nil, "1 pod wants the scheduler berht, which no profile serves; the configuration has the profile \"berth\": one of the two names is misspelt"},
		"forgotten":      {wanting("volcano", hour), nil, "1 pod wants the scheduler volcano, which Berth does not serve, and no scheduler has looked at them for up to 1h0m"},
		"new":            {wanting("volcano", 0), nil, ""},
		"looked at":      {looked, nil, ""},
		"served":         {wanting("berth", hour), nil, ""},
		"by its lease":   {wanting("berht", hour), func(a *apiWithLeases) { lead(a, "volcano-system/berht") }, ""},
		"of old":         {wanting("berht", hour), func(a *apiWithLeases) { a.set("volcano-system/berht", "x", "", 0) }, "1 pod wants the scheduler berht, which no profile serves"},
		"kube-scheduler": {wanting("", hour), func(a *apiWithLeases) { lead(a, "kube-system/kube-scheduler") }, ""},
	} {
		a := teamA()
		a.pods = append(a.pods, c.pod)
		if c.also != nil {
			c.also(a)
		}
		status, out := statusBeside(t, a, statusOfDaemon())
		if (c.want == "") != (status == 0) || !strings.Contains(out, c.want) || strings.Contains(out, "ATTENTION") != (c.want != "") || unserved.MatchString(out) != (name != "served") {
			t.Errorf("%s: %d, want %q\n%s", name, status, c.want, out)
		}
	}
}

// lead has somebody other than Berth hold a lease.
func lead(a *apiWithLeases, key string) {
	a.set(key, "other", "", 0)
	seconds := int32(3600)
	a.leases[key].Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	a.leases[key].Spec.LeaseDurationSeconds = &seconds
}

// A victim whose grace period ended a while ago is named with what it keeps and who waits for it.
// One that may still take its time is not, and neither is a pod of another node.
func TestStatusOfVictimsThatDoNotGo(t *testing.T) {
	a := teamA()
	p := wanting("berth", 0)
	p.Status.NominatedNodeName = "n7"
	victim := func(name, node string, ended time.Duration) v1.Pod {
		v := podOn("data", name, node, nil)
		v.DeletionTimestamp, v.Finalizers = &metav1.Time{Time: time.Now().Add(-ended)}, []string{"example.com/flush"}
		return v
	}
	a.pods = append(a.pods, p, victim("cache-0", "n7", time.Hour), victim("cache-1", "n7", -time.Hour), victim("cache-2", "n8", time.Hour))
	status, out := statusBeside(t, a, statusOfDaemon())
	if want := "ATTENTION  data/report-1 waits for data/cache-0 to leave n7, whose grace period ended 1h0m"; status != exitAttention || !strings.Contains(out, want) || !strings.Contains(out, "ago; it keeps example.com/flush\n") || strings.Contains(out, "cache-1") || strings.Contains(out, "cache-2") {
		t.Errorf("%d, no %q in\n%s", status, want, out)
	}
}

// Evictions count by the families of the pods, and many need attention.
func TestStatusOfAStormOfPreemptions(t *testing.T) {
	s := statusOfDaemon()
	s.Rates.Seconds, s.Rates.Evicted = 37, 24
	for _, by := range []string{"data/reindex-1-44sdv", "data/reindex-1-p5flt", "data/reindex-2-75rxv"} {
		s.Rates.Preemptions = append(s.Rates.Preemptions, records.Preemption{For: by, Node: "n1", Evicted: 8, Victims: []string{"shop/checkout-5bc54dccdd-5vhx5", "shop/checkout-5bc54dccdd-vr7dp"}})
	}
	const storm = "24 pods of shop/checkout-* for 3 pods of data/reindex-*"
	if status, out := statusBeside(t, teamA(), s); status != exitAttention || !strings.Contains(out, "ATTENTION  24 pods evicted in the last 37s: "+storm+"\n") {
		t.Errorf("%d\n%s", status, out)
	}
	summary := summaryOf("a")
	summary.Rates = s.Rates
	if out := summaryText(summary); !strings.Contains(out, "EVICTED   "+storm+"\n") || strings.Count(out, "EVICTED") != 1 {
		t.Errorf("top:\n%s", out)
	}
	s.Rates.Evicted = manyEvicted - 1
	if status, out := statusBeside(t, teamA(), s); status != 0 {
		t.Errorf("a few: %d\n%s", status, out)
	}
}
