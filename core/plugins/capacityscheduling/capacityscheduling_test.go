package capacityscheduling

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

func pod(namespace, name string, cpu int64) *object.Pod {
	u := resource.Vector{MilliCPU: cpu}
	return &object.Pod{UID: types.UID(name), Namespace: namespace, Name: name, Demand: resource.Demand{Requests: u, Usage: u}}
}

func elastic(namespace string, least, most int64) *object.ElasticQuota {
	return &object.ElasticQuota{Meta: object.Meta{Kind: object.ElasticQuotas, Namespace: namespace, Name: "q"}, Created: time.Unix(1, 0),
		Min: object.Amounts{{Name: v1.ResourceCPU, Value: least}}, Max: object.Amounts{{Name: v1.ResourceCPU, Value: most}}}
}

// cluster has two queues: web uses 6 CPUs of 4 to 8, batch 3 of 6.
func cluster() *table.Table {
	t := table.New()
	t.SetNode(&object.Node{Name: "n"})
	t.Objects().Set(elastic("web", 4000, 8000))
	t.Objects().Set(elastic("batch", 6000, 6000))
	t.AddPod(pod("web", "w", 6000), "n")
	t.AddPod(pod("batch", "b", 3000), "n")
	return t
}

func newPlugin(t *testing.T, args string) *framework.Plugin {
	t.Helper()
	pl, err := New(json.RawMessage(args), framework.Plugin{})
	if err != nil {
		t.Fatal(err)
	}
	return pl
}

// A pod that exceeds a limit is rejected with the peer's reason and the amounts.
func TestRejectPod(t *testing.T) {
	nominated := pod("web", "n", 500)
	for name, c := range map[string]struct {
		pod       *object.Pod
		nominated quota.Nominated
		want      string
		depends   bool
	}{
		"no queue": {pod("other", "p", 9000), quota.Nominated{}, "", false},
		"it fits":  {pod("web", "p", 1000), quota.Nominated{}, "", true},
		"its max": {pod("web", "p", 2500), quota.Nominated{},
			"Pod web/p is rejected in PreFilter because ElasticQuota web is more than Max; ElasticQuota web/q: of CPU 6 used, 2500m requested, 8 at most", true},
		"all mins": {pod("batch", "p", 2000), quota.Nominated{},
			"Pod batch/p is rejected in PreFilter because total ElasticQuota used is more than min; all ElasticQuotas: of CPU 9 used, 2 requested, 10 guaranteed", true},
		"nominated": {pod("web", "p", 2000), quota.Nominated{All: slices.Values([]*object.Pod{nominated})},
			"Pod web/p is rejected in PreFilter because ElasticQuota web is more than Max; ElasticQuota web/q: of CPU 6 used, 500m kept for nominated pods, 2 requested, 8 at most", true},
	} {
		s, depends := newPlugin(t, "").RejectPod(cluster(), c.pod, c.nominated)
		got := ""
		if s != nil {
			got = strings.Join(s.Reasons, "; ")
			if s.Code != decision.Unschedulable {
				t.Errorf("%s: code %s", name, s.Code)
			}
		}
		if got != c.want || depends != c.depends {
			t.Errorf("%s: got %q, depends %t; want %q, %t", name, got, depends, c.want, c.depends)
		}
	}
}

// Only what lets the rejected pod through wakes it.
func TestEvents(t *testing.T) {
	gone := func(namespace, name string) (framework.Event, func(*table.Table)) {
		return framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: pod(namespace, name, 0)},
			func(t *table.Table) { t.RemovePod(types.UID(name)) }
	}
	changed := func(q *object.ElasticQuota) (framework.Event, func(*table.Table)) {
		return framework.Event{Resource: framework.ResourceOf(object.ElasticQuotas), ActionType: framework.UpdateOther, OldObject: elastic(q.Namespace, 4000, 8000), NewObject: q},
			func(t *table.Table) { t.Objects().Set(q) }
	}
	for name, c := range map[string]struct {
		rejected *object.Pod
		event    func() (framework.Event, func(*table.Table))
		want     bool
	}{
		"a pod of its queue leaves":       {pod("web", "p", 2500), func() (framework.Event, func(*table.Table)) { return gone("web", "w") }, true},
		"a pod of another queue leaves":   {pod("web", "p", 2000), func() (framework.Event, func(*table.Table)) { return gone("batch", "b") }, true},
		"and it still exceeds its max":    {pod("web", "p", 2500), func() (framework.Event, func(*table.Table)) { return gone("batch", "b") }, false},
		"a pod without a queue leaves":    {pod("web", "p", 1000), func() (framework.Event, func(*table.Table)) { return gone("other", "o") }, false},
		"its max is raised":               {pod("web", "p", 3000), func() (framework.Event, func(*table.Table)) { return changed(elastic("web", 6000, 9000)) }, true},
		"its max is raised by too little": {pod("web", "p", 3000), func() (framework.Event, func(*table.Table)) { return changed(elastic("web", 6000, 8500)) }, false},
		"the max of another queue":        {pod("web", "p", 0), func() (framework.Event, func(*table.Table)) { return changed(elastic("batch", 4000, 9000)) }, false},
		"the status alone":                {pod("web", "p", 1000), func() (framework.Event, func(*table.Table)) { return changed(elastic("web", 4000, 8000)) }, false},
	} {
		tb := cluster()
		e, happen := c.event()
		happen(tb)
		e.Table = tb
		got := false
		for _, w := range newPlugin(t, "").EventsToRegister {
			got = got || w.Matches(&e) && w.QueueingHintFn(c.rejected, &e)
		}
		if got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestArgs(t *testing.T) {
	for args, want := range map[string]string{
		"": "<nil>", "{}": "<nil>", `{"unlisted":"zero"}`: "<nil>", `{"apiVersion":"a","kind":"b"}`: "<nil>",
		`{"unlisted":"one"}`:  `args.unlisted: Unsupported value: "one": supported values: "zero"`,
		`{"unlistet":"zero"}`: `args: json: unknown field "unlistet"`,
	} {
		if _, err := New(json.RawMessage(args), framework.Plugin{}); fmt.Sprint(err) != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	zero := newPlugin(t, `{"unlisted":"zero"}`)
	p := pod("web", "p", 0)
	p.Demand.Usage.Memory = 1
	if s, _ := newPlugin(t, "").RejectPod(cluster(), p, quota.Nominated{}); s != nil {
		t.Errorf("memory, which is not listed, is bounded: %v", s)
	}
	if s, _ := zero.RejectPod(cluster(), p, quota.Nominated{}); s == nil || s.Reasons[1] != "ElasticQuota web/q: of memory 0 used, 1 requested, 0 at most, as spec.max does not name it" {
		t.Errorf("memory, which is not listed, is bounded so: %v", s)
	}
}
