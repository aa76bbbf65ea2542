package queue

import (
	"maps"
	"math/bits"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// The labels of kube-scheduler.
func TestLabels(t *testing.T) {
	for _, c := range []struct {
		r    framework.EventResource
		a    framework.ActionType
		want string
	}{
		{framework.AssignedPod, framework.Add, "AssignedPodAdd"},
		{framework.AssignedPod, framework.Delete, "AssignedPodDelete"},
		{framework.AssignedPod, framework.UpdatePodScaleDown, "AssignedPodUpdatePodScaleDown"},
		{framework.UnscheduledPod, framework.Add, "UnscheduledPodAdd"},
		{framework.UnscheduledPod, framework.UpdateOther, "UnscheduledPodUpdate"},
		{framework.TargetPod, framework.UpdateOther, "TargetPodUpdate"},
		{framework.TargetPod, framework.UpdatePodLabel, "TargetPodUpdatePodLabel"},
		{framework.TargetPod, framework.UpdatePodScaleUp, "TargetPodUpdatePodScaleUp"},
		{framework.TargetPod, framework.UpdatePodSchedulingGatesEliminated, "TargetPodUpdatePodSchedulingGatesEliminated"},
		{framework.TargetPod, framework.UpdatePodToleration, "TargetPodUpdatePodToleration"},
		{framework.Node, framework.Add, "NodeAdd"},
		{framework.Node, framework.Delete, "NodeDelete"},
		{framework.Node, framework.UpdateNodeAllocatable, "NodeUpdateNodeAllocatable"},
		{framework.Node, framework.UpdateNodeTaint | framework.UpdateNodeLabel, "NodeUpdateNodeLabel"},
		{framework.Node, framework.UpdateNodeTaint, "NodeUpdateNodeTaint"},
		{framework.Node, framework.UpdateNodeCondition, "NodeUpdateNodeCondition"},
		{framework.Node, framework.UpdateNodeAnnotation, "NodeUpdateNodeAnnotation"},
		{framework.Node, framework.UpdateNodePreemptionPolicy, "NodeUpdateNodePreemptionPolicy"},
		{framework.Node, framework.All, "NodeAll"},
		{framework.WildCard, framework.All, "*All"},
	} {
		if got := Label(c.r, c.a); got != c.want {
			t.Errorf("Label(%d, %b) = %s, want %s", c.r, c.a, got, c.want)
		}
	}
}

// No resource or action of the framework is without a name.
func TestLabelsAreComplete(t *testing.T) {
	for r := framework.EventResource(0); r <= framework.WildCard; r++ {
		if int(r) >= len(resourceLabels) || resourceLabels[r] == "" {
			t.Errorf("resource %d has no label", r)
		}
	}
	for bit := range bits.Len32(uint32(framework.UpdateNodePreemptionPolicy)) {
		if name := framework.ActionType(1 << bit).String(); name == strconv.Itoa(bit) {
			t.Errorf("action %d has no name", bit)
		}
	}
}

// stated keeps the API object of a pod, as extenders and hosted plugins see it. The
// scheduler has written the message into its condition, and a nomination; "": nothing yet.
func stated(message string, change ...func(*v1.Pod)) func(*object.Pod) {
	return func(p *object.Pod) {
		p.API = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.Name, ResourceVersion: message}}
		if message != "" {
			p.API.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: message}}
			p.API.Status.NominatedNodeName = message
			p.API.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Message: message}}
		}
		for _, f := range change {
			f(p.API)
		}
	}
}

func annotated(p *v1.Pod) { p.Annotations = map[string]string{"a": "b"} }

func disrupted(reason string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: reason})
	}
}

// The changes of a pod are named by what differs between its old and its new form. What the
// scheduler writes is no change.
func TestChanges(t *testing.T) {
	demand := func(v resource.Vector) func(*object.Pod) {
		return func(p *object.Pod) { p.Demand = resource.Demand{Requests: v, Usage: v} }
	}
	gpu := func(n int64) resource.Vector {
		return resource.Vector{MilliCPU: 100, Scalars: []resource.Scalar{{Name: "x/gpu", Value: n}}}
	}
	for _, c := range []struct {
		name     string
		old, new *object.Pod
		want     framework.ActionType
	}{
		{"nothing", pod("p"), pod("p"), framework.UpdateOther},
		{"nothing of the object", pod("p", stated("")), pod("p", stated("")), 0},
		{"its condition and nomination", pod("p", stated("full")), pod("p", stated("too full")), 0},
		{"its first condition", pod("p", stated("")), pod("p", stated("full")), 0},
		{"its condition, and a condition of others", pod("p", stated("full")), pod("p", stated("too full", func(p *v1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: "example.com/Ready", Status: v1.ConditionTrue})
		})), framework.UpdateOther},
		{"its condition and an annotation", pod("p", stated("full")), pod("p", stated("too full", annotated)), framework.UpdateOther},
		{"its condition and labels", pod("p", app("a"), stated("full")), pod("p", app("b"), stated("too full")), framework.UpdatePodLabel},
		{"that it is a victim", pod("p", stated("full")), pod("p", stated("full", disrupted(v1.PodReasonPreemptionByScheduler))), 0},
		{"that others evict it", pod("p", stated("full")), pod("p", stated("full", disrupted("EvictionByEvictionAPI"))), framework.UpdateOther},
		{"labels", pod("p", app("a")), pod("p", app("b")), framework.UpdatePodLabel},
		{"labels gone", pod("p", app("a")), pod("p"), framework.UpdatePodLabel},
		{"tolerations", pod("p"), pod("p", tolerant), framework.UpdatePodToleration},
		{"one gate gone", pod("p", gated), pod("p", gated, func(p *object.Pod) { p.Gates = []string{"h"} }), framework.UpdateOther},
		{"all gates gone", pod("p", gated), pod("p"), framework.UpdatePodSchedulingGatesEliminated},
		{"gated", pod("p"), pod("p", gated), framework.UpdateOther},
		{"less CPU", pod("p", demand(gpu(1))), pod("p", demand(resource.Vector{MilliCPU: 99, Scalars: gpu(1).Scalars})), framework.UpdatePodScaleDown},
		{"less memory", pod("p", demand(resource.Vector{Memory: 2})), pod("p", demand(resource.Vector{Memory: 1})), framework.UpdatePodScaleDown},
		{"less storage", pod("p", demand(resource.Vector{EphemeralStorage: 2})), pod("p", demand(resource.Vector{})), framework.UpdatePodScaleDown},
		{"fewer GPUs", pod("p", demand(gpu(2))), pod("p", demand(gpu(1))), framework.UpdatePodScaleDown},
		{"no GPU any more", pod("p", demand(gpu(1))), pod("p", demand(resource.Vector{MilliCPU: 100})), framework.UpdatePodScaleDown},
		{"more GPUs", pod("p", demand(gpu(1))), pod("p", demand(gpu(2))), framework.UpdatePodScaleUp},
		{"a first GPU", pod("p", demand(resource.Vector{MilliCPU: 100})), pod("p", demand(gpu(1))), framework.UpdatePodScaleUp},
		{"more memory, less CPU", pod("p", demand(resource.Vector{MilliCPU: 2, Memory: 1})), pod("p", demand(resource.Vector{MilliCPU: 1, Memory: 2})),
			framework.UpdatePodScaleDown | framework.UpdatePodScaleUp},
		{"several", pod("p", gated), pod("p", app("a"), tolerant), framework.UpdatePodLabel | framework.UpdatePodSchedulingGatesEliminated | framework.UpdatePodToleration},
	} {
		if got := Changes(c.old, c.new); got != c.want {
			t.Errorf("%s: changes are %b, want %b", c.name, got, c.want)
		}
	}
}

// The label of an event on an object ends in the object's kind and the action.
func TestKindsHaveLabels(t *testing.T) {
	for k := range object.Kinds {
		if got := Label(framework.ResourceOf(k), framework.Add); !strings.HasSuffix(got, k.ManifestName()+"Add") {
			t.Errorf("an event on a %s is called %q", k, got)
		}
	}
}

// Each name of kube-scheduler's is one of Berth's, and the other way round, but for those
// that are listed with the reason.
func TestLabelsAreUpstreams(t *testing.T) {
	unnamed := map[string]string{
		"action None":  "no event has no action",
		"action All":   "Label makes it",
		"resource Pod": "an event is about one of the three kinds of pods",
		"resource scheduling.k8s.io/CompositePodGroup": "only a refused gate has them",
	}
	own := map[string]string{
		"action UpdateNamespaceLabel":               "namespaceSelectors",
		"action UpdateSelector":                     "default constraints of PodTopologySpread",
		"resource Namespace":                        "namespaceSelectors",
		"resource SelectorOwner":                    "default constraints of PodTopologySpread",
		"resource resource.k8s.io/DeviceTaintRule":  "its taints stand in the slices, for kube-scheduler",
		"resource scheduling.x-k8s.io/ElasticQuota": "a kind of sigs.k8s.io/scheduler-plugins",
		"resource scheduling.x-k8s.io/PodGroup":     "a kind of sigs.k8s.io/scheduler-plugins",
		"resource Other":                            "objects that only hosted plugins know",
	}
	got := map[string]bool{}
	for bit := range bits.Len32(uint32(framework.UpdateNodePreemptionPolicy)) {
		got["action "+strings.TrimPrefix(Label(framework.Node, 1<<bit), "Node")] = true
	}
	for r := range framework.EventResource(framework.NumEventResources) {
		got["resource "+resourceLabel(r)] = true
	}
	text, err := os.ReadFile("../../testdata/upstream/events.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, is := strings.CutPrefix(strings.TrimSpace(line), "label, ")
		if !is {
			continue
		}
		if got[name] == (unnamed[name] != "") {
			t.Errorf("%s: Berth has it %v, listed as unnamed %q", name, got[name], unnamed[name])
		}
		delete(got, name)
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if own[name] == "" {
			t.Errorf("%s is not kube-scheduler's", name)
		}
	}
}

// Only pods of the namespaces that are concerned are asked about, equal ones once, and one in
// flight when it comes back.
func TestMoveInNamespaces(t *testing.T) {
	q := New(options(&door{}))
	add := func(namespace, name, like string) *Entry {
		p := pod(name, app(like))
		p.Namespace = namespace
		q.Add(start, p)
		return q.Pop(start)
	}
	var entries []*Entry
	for _, p := range [][3]string{{"a", "1", "x"}, {"a", "2", "x"}, {"a", "no", "y"}, {"b", "3", "z"}} {
		e := add(p[0], p[1], p[2])
		q.Requeue(start, e, []string{"Deaf"}, nil)
		entries = append(entries, e)
	}
	flies, now, asked := add("a", "4", "x"), start.Add(time.Minute), 0
	q.MoveInNamespaces(now, "Event", func(namespace string) bool { return namespace == "a" }, func(p *object.Pod) bool {
		asked++
		return p.Name != "no"
	})
	q.Requeue(now, flies, []string{"Deaf"}, nil)
	var places []string
	for _, e := range append(entries, flies) {
		places = append(places, e.Place().String())
	}
	if want := []string{"active", "active", "unschedulable", "unschedulable", "backoff"}; !slices.Equal(places, want) || asked != 2 {
		t.Errorf("%q, want %q; asked %d times", places, want, asked)
	}
	if err := q.Check(); err != nil {
		t.Error(err)
	}
}
