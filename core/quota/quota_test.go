package quota

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

const gpu = v1.ResourceName("example.com/gpu")

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// amounts reads "cpu 2, example.com/gpu 1"; "-" is an absent list.
func amounts(text string) object.Amounts {
	if text == "-" {
		return nil
	}
	list := object.Amounts{}
	for part := range strings.SplitSeq(text, ", ") {
		var a object.Amount
		if _, err := fmt.Sscan(part, &a.Name, &a.Value); err == nil {
			list = append(list, a)
		}
	}
	return list
}

// quotaOf is an ElasticQuota of the namespace, made so many seconds after the start.
func quotaOf(namespace, name string, made int, least, most, parent string) *object.ElasticQuota {
	return &object.ElasticQuota{Meta: object.Meta{Kind: object.ElasticQuotas, Namespace: namespace, Name: name, UID: types.UID(namespace + name)},
		Created: start.Add(time.Duration(made) * time.Second), Min: amounts(least), Max: amounts(most), Parent: parent, Parts: []string{"*"}}
}

// podOf is a pod that requests so much CPU, in thousandths, and so many GPUs.
func podOf(namespace, name string, cpu, gpus int64) *object.Pod {
	u := resource.Vector{MilliCPU: cpu}
	if gpus != 0 {
		u.Scalars = []resource.Scalar{{Name: gpu, Value: gpus}}
	}
	return &object.Pod{UID: types.UID(name), Namespace: namespace, Name: name, Demand: resource.Demand{Requests: u, Usage: u}}
}

// tableWith is a table with a node, the quotas and the pods.
func tableWith(quotas []*object.ElasticQuota, pods ...*object.Pod) *table.Table {
	t := table.New()
	t.SetNode(&object.Node{Name: "n"})
	for _, q := range quotas {
		t.Objects().Set(q)
	}
	for _, p := range pods {
		t.AddPod(p, "n")
	}
	return t
}

// exceeded describes the limit that the pod would exceed, "" for none.
func exceeded(t *table.Table, p *object.Pod, zero bool, nominated ...*object.Pod) string {
	e := Of(t).Exceeded(&Ask{Pod: p, Nominated: Nominated{All: slices.Values(nominated)}, UnlistedZero: zero})
	if e == nil {
		return ""
	}
	of := "total"
	if e.Queue != nil {
		of = e.Queue.Quota.Key()
	}
	if e.Resource == "" {
		return of + ": unreadable"
	}
	text := fmt.Sprintf("%s: %s %d+%d+%d>%d", of, e.Resource, e.Used, e.Nominated, e.Requested, e.Limit)
	if e.Unlisted {
		text += " unlisted"
	}
	return text
}

// memory is a pod that requests so many bytes.
func memory(namespace string, bytes int64) *object.Pod {
	u := resource.Vector{Memory: bytes}
	return &object.Pod{UID: "memory", Namespace: namespace, Name: "memory", Demand: resource.Demand{Requests: u, Usage: u}}
}

// used is what the queue of the namespace uses, as its status shows it.
func used(t *table.Table, namespace string) string {
	q := Of(t).Queue(namespace)
	if q == nil {
		return "no queue"
	}
	var parts []string
	for _, a := range q.Used() {
		parts = append(parts, fmt.Sprintf("%s %d", a.Name, a.Value))
	}
	return strings.Join(parts, ", ")
}

// Each limit rejects what exceeds it, and nothing else.
func TestExceeded(t *testing.T) {
	web, batch := quotaOf("web", "q", 0, "cpu 4000", "cpu 8000", ""), quotaOf("batch", "q", 0, "cpu 6000", "cpu 6000", "")
	two := []*object.ElasticQuota{web, batch}
	lent := []*object.Pod{podOf("web", "w", 6000, 0), podOf("batch", "b", 3000, 0)}
	for name, c := range map[string]struct {
		quotas    []*object.ElasticQuota
		placed    []*object.Pod
		pod       *object.Pod
		zero      bool
		nominated []*object.Pod
		want      string
	}{
		"no queue":              {two, lent, podOf("other", "p", 90000, 0), false, nil, ""},
		"what is free":          {two, lent, podOf("web", "p", 1000, 0), false, nil, ""},
		"the sum of the mins":   {two, lent, podOf("web", "p", 2000, 0), false, nil, "total: cpu 9000+0+2000>10000"},
		"its own as well":       {two, lent, podOf("batch", "p", 3000, 0), false, nil, "total: cpu 9000+0+3000>10000"},
		"the max":               {two, lent, podOf("web", "p", 3000, 0), false, nil, "web/q: cpu 6000+0+3000>8000"},
		"no request":            {two, append(lent, podOf("web", "x", 9000, 0)), podOf("web", "p", 0, 0), false, nil, ""},
		"a GPU is not named":    {two, lent, podOf("web", "p", 0, 50), false, nil, ""},
		"a GPU counts as 0":     {two, lent, podOf("web", "p", 0, 1), true, nil, "total: example.com/gpu 0+0+1>0 unlisted"},
		"CPU is not named":      {[]*object.ElasticQuota{quotaOf("a", "q", 0, "-", "example.com/gpu 2", "")}, nil, podOf("a", "p", 1000, 1), false, nil, ""},
		"CPU counts as 0":       {[]*object.ElasticQuota{quotaOf("a", "q", 0, "-", "example.com/gpu 2", "")}, nil, podOf("a", "p", 1000, 1), true, nil, "a/q: cpu 0+0+1000>0 unlisted"},
		"no list at all":        {[]*object.ElasticQuota{quotaOf("a", "q", 0, "-", "-", "")}, nil, podOf("a", "p", 1000, 1), false, nil, ""},
		"who has no min lends":  {[]*object.ElasticQuota{web, quotaOf("a", "q", 0, "-", "-", "")}, []*object.Pod{podOf("a", "x", 9000, 0)}, podOf("web", "p", 4000, 0), false, nil, ""},
		"nominated, its queue":  {two, lent, podOf("web", "p", 1000, 0), false, []*object.Pod{podOf("web", "n", 2000, 0)}, "web/q: cpu 6000+2000+1000>8000"},
		"nominated, another":    {two, lent, podOf("web", "p", 1000, 0), false, []*object.Pod{podOf("batch", "n", 1000, 0)}, "total: cpu 9000+1000+1000>10000"},
		"limits beyond 1Pi":     {[]*object.ElasticQuota{quotaOf("a", "q", 0, "cpu 2251799813685248", "-", "")}, []*object.Pod{podOf("a", "x", 1125899906842625, 0)}, podOf("a", "p", 1125899906842624, 0), false, nil, "total: cpu 1125899906842625+0+1125899906842624>2251799813685248"},
		"just within them":      {[]*object.ElasticQuota{quotaOf("a", "q", 0, "-", "cpu 2251799813685248", "")}, []*object.Pod{podOf("a", "x", 1125899906842624, 0)}, podOf("a", "p", 1125899906842624, 0), false, nil, ""},
		"the end of int64":      {[]*object.ElasticQuota{quotaOf("a", "q", 0, "-", "cpu 9223372036854775806", "")}, []*object.Pod{podOf("a", "x", math.MaxInt64, 0), podOf("a", "y", math.MaxInt64, 0)}, podOf("a", "p", math.MaxInt64, 0), false, nil, "a/q: cpu 9223372036854775807+0+9223372036854775807>9223372036854775806"},
		"what nobody knows":     {[]*object.ElasticQuota{quotaOf("a", "q", 0, "-", "cpu 2", "")}, []*object.Pod{podOf("a", "x", 2, 0)}, memory("a", 7), true, nil, "a/q: memory 0+0+7>0 unlisted"},
		"itself is nominated":   {two, lent, podOf("web", "p", 1000, 0), false, []*object.Pod{podOf("web", "p", 1000, 0)}, ""},
		"no queue is nominated": {two, lent, podOf("web", "p", 1000, 0), false, []*object.Pod{podOf("other", "n", 9000, 0)}, ""},
	} {
		if got := exceeded(tableWith(c.quotas, c.placed...), c.pod, c.zero, c.nominated...); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// A nominated pod that is less important does not count against a pod of its queue; one of
// another queue that is over its min does not count at all.
func TestNominatedThatDoNotCount(t *testing.T) {
	tb := tableWith([]*object.ElasticQuota{quotaOf("a", "q", 0, "cpu 4", "cpu 9", ""), quotaOf("b", "q", 0, "cpu 4", "-", "")}, podOf("b", "over", 5, 0))
	p := podOf("a", "p", 3, 0)
	p.Priority = 5
	less, other := podOf("a", "n", 2, 0), podOf("b", "m", 2, 0)
	if got := exceeded(tb, p, false, less, other); got != "" {
		t.Errorf("got %q", got)
	}
	less.Priority = 5
	if got, want := exceeded(tb, p, false, less, other), "total: cpu 5+2+3>8"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A queue that uses what its min does not list is over its min only where what is not listed
// counts as 0: pods that are nominated in it count otherwise.
func TestOverMinOfWhatIsListed(t *testing.T) {
	tb := tableWith([]*object.ElasticQuota{quotaOf("a", "q", 0, "example.com/gpu 4", "-", ""), quotaOf("b", "q", 0, "example.com/gpu 4", "-", "")},
		podOf("a", "1", 1000, 1), podOf("b", "2", 0, 1))
	p, other := podOf("b", "p", 0, 5), podOf("a", "n", 0, 3)
	if got, want := exceeded(tb, p, false, other), "total: example.com/gpu 2+3+5>8"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := exceeded(tb, p, true, other), ""; got != want {
		t.Errorf("with what is not listed counted as 0: got %q", got)
	}
}

// While a quota cannot be read, no pod of its queue and its parts is placed, it preempts
// nobody, and nobody is preempted from it for others.
func TestUnreadable(t *testing.T) {
	bad := quotaOf("a", "q", 0, "cpu 2", "-", "")
	bad.Unreadable = "spec.max: is not a list of amounts"
	tb := tableWith([]*object.ElasticQuota{bad, quotaOf("b", "q", 0, "-", "-", "a/q"), quotaOf("c", "q", 0, "cpu 9", "-", "")}, podOf("a", "1", 2, 0), podOf("a", "3", 3, 0), podOf("c", "2", 1, 0))
	for namespace, want := range map[string]string{"a": "a/q: unreadable", "b": "a/q: unreadable", "c": ""} {
		if got := exceeded(tb, podOf(namespace, "p", 1, 0), false); got != want {
			t.Errorf("%s: got %q, want %q", namespace, got, want)
		}
	}
	if got := preemptible(tb, podOf("c", "p", 1, 0)); got != "[]" {
		t.Errorf("from a quota that cannot be read: %s", got)
	}
	tb.RemovePod("1")
	tb.RemovePod("3")
	if Of(tb).Reclaim(&Ask{Pod: podOf("a", "p", 1, 0)}, nil).Entitled() {
		t.Error("a quota that cannot be read guarantees something")
	}
}

// A queue's use counts for its parent, whose max bounds all its parts; only queues without a
// parent share their mins.
func TestTree(t *testing.T) {
	tb := tableWith([]*object.ElasticQuota{
		quotaOf("org", "q", 0, "cpu 6", "cpu 8", ""), quotaOf("a", "q", 0, "cpu 3", "-", "org/q"), quotaOf("b", "q", 0, "cpu 3", "cpu 5", "org/q"),
		quotaOf("c", "q", 0, "cpu 4", "-", ""),
	}, podOf("a", "1", 4, 0), podOf("b", "2", 2, 0), podOf("org", "3", 1, 0))
	if got, want := used(tb, "org"), "cpu 7"; got != want {
		t.Errorf("org uses %s, want %s", got, want)
	}
	for pod, want := range map[*object.Pod]string{
		podOf("a", "p", 1, 0): "", podOf("a", "p", 2, 0): "org/q: cpu 7+0+2>8", podOf("b", "p", 4, 0): "b/q: cpu 2+0+4>5",
		podOf("c", "p", 3, 0): "", podOf("c", "p", 4, 0): "total: cpu 7+0+4>10",
	} {
		if got := exceeded(tb, pod, false); got != want {
			t.Errorf("%s with %d: got %q, want %q", pod.Namespace, pod.Demand.Usage.MilliCPU, got, want)
		}
	}
}

// A queue is a part of another one only if that admits its namespace.
func TestParentThatDoesNotAdmit(t *testing.T) {
	org, a, b := quotaOf("org", "q", 0, "cpu 6", "cpu 8", ""), quotaOf("a", "q", 0, "-", "-", "org/q"), quotaOf("b", "q", 0, "-", "-", "org/q")
	org.Parts = []string{"a"}
	tb := tableWith([]*object.ElasticQuota{org, a, b}, podOf("a", "1", 1, 0), podOf("b", "2", 5, 0))
	if got := used(tb, "org"); got != "cpu 1" {
		t.Errorf("org uses %s", got)
	}
	if got, want := fmt.Sprint(Of(tb).Faults(a), Of(tb).Faults(b)), "[] [its parent, ElasticQuota org/q, does not name the namespace b in its annotation berth.dev/part-quotas; it has none]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	all := *org
	all.Parts = []string{"*"}
	tb.Objects().Set(&all)
	if got := used(tb, "org"); got != "cpu 6" {
		t.Errorf("it admits all, and uses %s", got)
	}
	if err := tb.Check(); err != nil {
		t.Error(err)
	}
}

// What is wrong with an object costs that object alone, and is said.
func TestFaults(t *testing.T) {
	older, younger := quotaOf("a", "old", 1, "-", "cpu 5", ""), quotaOf("a", "new", 2, "-", "cpu 1", "")
	x, y, orphan := quotaOf("x", "q", 0, "cpu 1", "-", "y/q"), quotaOf("y", "q", 0, "cpu 1", "-", "x/q"), quotaOf("z", "q", 0, "-", "-", "gone/q")
	inside := quotaOf("w", "q", 0, "-", "-", "x/q") // of one that is in a cycle
	tb := tableWith([]*object.ElasticQuota{younger, older, x, y, orphan, inside}, podOf("a", "1", 3, 0))
	for q, want := range map[*object.ElasticQuota]string{
		older: "[]", younger: "[ElasticQuota a/old is older and counts for the namespace; this one does not]",
		x: "[its parent, ElasticQuota y/q, is a part of it; it has none]", y: "[its parent, ElasticQuota x/q, is a part of it; it has none]",
		orphan: "[its parent, ElasticQuota gone/q, does not exist or does not count; it has none]", inside: "[]",
	} {
		if got := fmt.Sprint(Of(tb).Faults(q)); got != want {
			t.Errorf("%s: %s, want %s", q.Key(), got, want)
		}
	}
	if got := exceeded(tb, podOf("a", "p", 2, 0), false); got != "" {
		t.Errorf("the younger quota counts: %s", got)
	}
	tb.Objects().Remove(object.ElasticQuotas, "a", "old")
	if got, want := exceeded(tb, podOf("a", "p", 2, 0), false), "a/new: cpu 3+0+2>1"; got != want {
		t.Errorf("with the older one gone: %q, want %q", got, want)
	}
}

// A quota that is made after its pods, removed and made again counts them all the same. A
// pod that is removed twice, or whose requests change, counts as it is.
func TestUsed(t *testing.T) {
	q := quotaOf("a", "q", 0, "cpu 1", "example.com/gpu 9", "")
	tb := tableWith(nil, podOf("a", "1", 3, 1), podOf("b", "2", 5, 5))
	want := func(step, want string) {
		t.Helper()
		if got := used(tb, "a"); got != want {
			t.Errorf("%s: %s, want %s", step, got, want)
		}
	}
	want("before", "no queue")
	tb.Objects().Set(q)
	want("made", "cpu 3, example.com/gpu 1")
	tb.AddPod(podOf("a", "3", 2, 0), "n")
	want("a pod more", "cpu 5, example.com/gpu 1")
	tb.AddPod(podOf("a", "3", 1, 0), "n")
	want("it shrinks", "cpu 4, example.com/gpu 1")
	tb.Objects().Remove(object.ElasticQuotas, "a", "q")
	tb.RemovePod("3")
	want("removed", "no queue")
	tb.Objects().Set(q)
	want("made again", "cpu 3, example.com/gpu 1")
	tb.RemovePod("1")
	tb.RemovePod("1")
	want("a pod is removed twice", "cpu 0, example.com/gpu 0")
	tb.AddPod(podOf("a", "4", 1<<62, 0), "n")
	tb.AddPod(podOf("a", "5", 1<<62, 0), "n")
	tb.RemovePod("4")
	tb.RemovePod("5")
	want("after absurd ones", "cpu 0, example.com/gpu 0")
}

// Only queues that changed are said to have.
func TestTakeChanged(t *testing.T) {
	tb := tableWith([]*object.ElasticQuota{quotaOf("a", "q", 0, "-", "-", ""), quotaOf("b", "q", 0, "-", "-", "a/q"), quotaOf("c", "q", 0, "-", "-", "")})
	changed := func() (keys []string) {
		all, _ := Of(tb).TakeChanged()
		for _, q := range all {
			keys = append(keys, q.Quota.Namespace)
		}
		slices.Sort(keys)
		return keys
	}
	if got := changed(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("at first %q", got)
	}
	tb.AddPod(podOf("b", "1", 1, 0), "n")
	tb.AddPod(podOf("other", "2", 1, 0), "n")
	if got := changed(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("with a pod of b %q", got)
	}
	shown := *quotaOf("c", "q", 0, "-", "-", "")
	shown.Used = amounts("cpu 7")
	tb.Objects().Set(&shown)
	if got := changed(); !slices.Equal(got, []string{"c"}) {
		t.Errorf("with another status of c %q", got)
	}
	if got := Of(tb).Queue("c").Quota; got != &shown {
		t.Error("the queue has an older state of its ElasticQuota")
	}
	tb.Objects().Set(quotaOf("c", "q", 0, "cpu 1", "-", ""))
	if got := changed(); !slices.Equal(got, []string{"c"}) {
		t.Errorf("with another min of c %q", got)
	}
	tb.Objects().Set(quotaOf("b", "q", 0, "-", "cpu 9", "a/q"))
	if got := changed(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("with another max of b %q", got)
	}
	tb.Objects().Set(quotaOf("b", "q", 0, "-", "cpu 9", "c/q"))
	if got := changed(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("with another parent of b %q", got)
	}
}

// Whatever comes and goes, the queues are those of a table that was given only what is
// there now, and trials that are undone leave nothing.
func TestIndexFollows(t *testing.T) {
	namespaces := []string{"a", "b", "c"}
	rapid.Check(t, func(rt *rapid.T) {
		of := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(rt, what) }
		tb := tableWith(nil)
		var marks []table.Mark
		for range rapid.IntRange(1, 40).Draw(rt, "changes") {
			switch what := rapid.IntRange(0, 8).Draw(rt, "what"); {
			case what < 2:
				tb.AddPod(podOf(of("namespace", namespaces...), of("pod", "1", "2", "3", "4"), rapid.Int64Range(0, 3).Draw(rt, "cpu"), rapid.Int64Range(0, 2).Draw(rt, "gpus")), of("node", "n", "m"))
			case what == 2:
				tb.RemovePod(types.UID(of("pod", "1", "2", "3", "4")))
			case what == 3:
				marks = append(marks, tb.Checkpoint())
			case what == 4 && len(marks) > 0:
				tb.Undo(marks[len(marks)-1])
				marks = marks[:len(marks)-1]
			case what == 5:
				Of(tb).Queue("a") // the queues are made
			case len(marks) > 0:
			case what == 8:
				tb.Objects().Remove(object.ElasticQuotas, of("namespace", namespaces...), of("name", "p", "q"))
			default:
				tb.Objects().Set(quotaOf(of("namespace", namespaces...), of("name", "p", "q"), rapid.IntRange(0, 2).Draw(rt, "made"),
					of("min", "-", "cpu 1", "cpu 2, example.com/gpu 1"), of("max", "-", "example.com/gpu 2"), of("parent", "", "a/p", "b/q", "c/p")))
			}
			if err := tb.Check(); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

// A pod may preempt those of its queue that are less important; of others it may take back
// what its queue is guaranteed, as long as they stay at their min.
func TestPreemptible(t *testing.T) {
	quotas := []*object.ElasticQuota{
		quotaOf("org", "q", 0, "cpu 10", "-", ""), quotaOf("a", "q", 0, "cpu 4", "-", "org/q"), quotaOf("b", "q", 0, "cpu 3, example.com/gpu 1", "-", "org/q"),
		quotaOf("c", "q", 0, "cpu 4", "-", ""),
	}
	placed := []*object.Pod{ // the most important first
		podOf("a", "a1", 3, 0), podOf("a", "a2", 2, 0), podOf("a", "a3", 2, 0), podOf("a", "gpu", 0, 1), podOf("c", "c1", 4, 0), podOf("c", "c2", 1, 0),
		podOf("b", "b1", 1, 0), podOf("none", "n1", 1, 0),
	}
	low := podOf("b", "low", 1, 0)
	low.Priority = -1
	placed = append(placed, low)
	for name, c := range map[string]struct {
		pod       *object.Pod
		nominated []*object.Pod
		want      string
	}{
		"its part of org, and org's": {podOf("b", "p", 1, 0), nil, "[a3 c2 low]"},
		"more than its part":         {podOf("b", "p", 2, 0), nil, "[low]"},
		"with one nominated":         {podOf("b", "p", 1, 0), []*object.Pod{podOf("b", "n", 1, 0)}, "[low]"},
		"a GPU":                      {podOf("b", "p", 0, 1), nil, "[gpu low]"},
		"no queue":                   {podOf("none", "p", 1, 0), nil, "[]"},
		"over its min, org is not":   {podOf("a", "p", 1, 0), nil, "[c2]"},
	} {
		if got := preemptible(tableWith(quotas, placed...), c.pod, c.nominated...); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// preemptible names the placed pods that the pod may preempt together, sorted by name. Names
// decide which of them is more important. evicted pods are leaving.
func preemptible(tb *table.Table, p *object.Pod, nominated ...*object.Pod) string {
	var placed []*object.Pod
	for _, row := range tb.All() {
		for _, pl := range tb.Pods(row) {
			placed = append(placed, pl.Pod)
		}
	}
	slices.SortFunc(placed, func(a, b *object.Pod) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
	})
	evicted := func(uid types.UID) bool { return strings.HasPrefix(string(uid), "evicted") }
	names := []string{}
	for _, victim := range Of(tb).Reclaim(&Ask{Pod: p, Nominated: Nominated{All: slices.Values(nominated)}}, evicted).Preemptible(nil, placed) {
		names = append(names, victim.Name)
	}
	slices.Sort(names)
	return fmt.Sprint(names)
}

// A queue that lends keeps its min of what is taken back, also while pods of it are leaving,
// and a pod that asks for several resources is entitled to each, or to none.
func TestLenderKeepsItsMin(t *testing.T) {
	terminating := podOf("a", "terminating", 1, 0)
	terminating.Terminating = true
	quotas := func(a, b string) []*object.ElasticQuota {
		return []*object.ElasticQuota{quotaOf("a", "q", 0, a, "-", ""), quotaOf("b", "q", 0, b, "-", "")}
	}
	for name, c := range map[string]struct {
		quotas []*object.ElasticQuota
		placed []*object.Pod
		pod    *object.Pod
		want   string
	}{
		"nobody leaves": {quotas("cpu 2", "cpu 9"), []*object.Pod{podOf("a", "a1", 1, 0), podOf("a", "a2", 1, 0), podOf("a", "a3", 1, 0)},
			podOf("b", "p", 1, 0), "[a3]"},
		"one is being evicted, and it is the one": {quotas("cpu 2", "cpu 9"), []*object.Pod{podOf("a", "a1", 1, 0), podOf("a", "a2", 1, 0), podOf("a", "evicted", 1, 0)},
			podOf("b", "p", 1, 0), "[evicted]"},
		"one is being deleted, and there is one more": {quotas("cpu 1", "cpu 9"), []*object.Pod{podOf("a", "a1", 1, 0), podOf("a", "a2", 1, 0), terminating},
			podOf("b", "p", 1, 0), "[a2 terminating]"},
		"of a part as well": {append(quotas("cpu 2", "cpu 9"), quotaOf("c", "q", 0, "-", "-", "a/q")), []*object.Pod{podOf("a", "a1", 1, 0), podOf("a", "a2", 1, 0), podOf("c", "evicted", 1, 0)},
			podOf("b", "p", 1, 0), "[evicted]"},
		"a GPU of who has less CPU than its min": {quotas("cpu 9, example.com/gpu 1", "example.com/gpu 2"), []*object.Pod{podOf("a", "a1", 1, 1), podOf("a", "a2", 1, 1)},
			podOf("b", "p", 1, 1), "[a2]"},
		"CPU and GPUs, and its min has no GPU left": {quotas("cpu 0", "cpu 9, example.com/gpu 1"), []*object.Pod{podOf("a", "a1", 1, 0), podOf("b", "b1", 0, 1)},
			podOf("b", "p", 1, 1), "[]"},
		"CPU alone": {quotas("cpu 0", "cpu 9, example.com/gpu 1"), []*object.Pod{podOf("a", "a1", 1, 0), podOf("b", "b1", 0, 1)},
			podOf("b", "p", 1, 0), "[a1]"},
	} {
		if got := preemptible(tableWith(c.quotas, c.placed...), c.pod); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Resources that nobody uses or limits any more take no room.
func TestResourcesThatLeft(t *testing.T) {
	tb := tableWith([]*object.ElasticQuota{quotaOf("a", "q", 0, "cpu 1", "-", ""), quotaOf("b", "q", 0, "cpu 1", "-", "a/q")})
	for i := range 100 {
		p := podOf("b", "p", 1, 0)
		p.Demand.Usage.Scalars = []resource.Scalar{{Name: v1.ResourceName(fmt.Sprintf("example.com/%d", i)), Value: 1}}
		tb.AddPod(p, "n")
		tb.Objects().Set(quotaOf("b", "q", 0, "cpu 1", fmt.Sprintf("example.com/most-%d 1", i), "a/q"))
		if err := tb.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(Of(tb).names); n > 6 {
		t.Errorf("%d resources are kept", n)
	}
}

// A queue has no more ancestors than are written to at little cost. Which of a long chain has
// none does not depend on the order in which they came.
func TestDeepTree(t *testing.T) {
	for name, order := range map[string]func(i, n int) int{"from above": func(i, _ int) int { return i }, "from below": func(i, n int) int { return n - 1 - i }} {
		tb, n := tableWith(nil), 40
		for i := range n {
			level, parent := order(i, n), ""
			if level > 0 {
				parent = fmt.Sprintf("n%02d/q", level-1)
			}
			tb.Objects().Set(quotaOf(fmt.Sprintf("n%02d", level), "q", 0, "cpu 1", "-", parent))
			Of(tb).Queues()
		}
		tb.AddPod(podOf("n39", "p", 1, 0), "n")
		if err := tb.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for level, q := range Of(tb).Queues() {
			if faults := Of(tb).Faults(q.Quota); (q.Parent() != nil) != (level > 0 && level <= 16) || (len(faults) == 0) != (level <= 16) {
				t.Errorf("%s: level %d: parent %v, faults %q", name, level, q.Parent() != nil, faults)
			}
		}
	}
}

// Quotas that come and go where nobody takes what changed leave nothing.
func TestQueuesThatLeft(t *testing.T) {
	tb := tableWith([]*object.ElasticQuota{quotaOf("a", "q", 0, "cpu 1", "-", "")})
	for i := range 100 {
		namespace := fmt.Sprint("n", i)
		tb.Objects().Set(quotaOf(namespace, "q", 0, "cpu 1", "-", ""))
		Of(tb).Queues()
		tb.Objects().Remove(object.ElasticQuotas, namespace, "q")
		Of(tb).Queues()
	}
	if n := len(Of(tb).changed); n > 10 {
		t.Errorf("%d queues are kept", n)
	}
	if changed, _ := Of(tb).TakeChanged(); len(changed) != 1 || changed[0].Quota.Namespace != "a" {
		t.Errorf("%d queues changed", len(changed))
	}
}

// Whoever can take something back from others and could not before is helped by what
// happened in between.
func TestRelief(t *testing.T) {
	namespaces := []string{"a", "b", "c"}
	rapid.Check(t, func(rt *rapid.T) {
		of := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(rt, what) }
		set := func(tb *table.Table, namespace string) {
			tb.Objects().Set(quotaOf(namespace, "q", 0, of("min", "-", "cpu 1", "cpu 2", "cpu 3, example.com/gpu 1"), "-", of("parent", "", "", "a/q", "b/q")))
		}
		pod := func() *object.Pod {
			return podOf(of("namespace", namespaces...), of("pod", "1", "2", "3", "4", "5", "6"), rapid.Int64Range(0, 2).Draw(rt, "cpu"), rapid.Int64Range(0, 1).Draw(rt, "gpus"))
		}
		tb := tableWith(nil)
		for _, namespace := range namespaces {
			set(tb, namespace)
		}
		for range rapid.IntRange(0, 8).Draw(rt, "placed") {
			tb.AddPod(pod(), "n")
		}
		Of(tb).TakeChanged()
		asks := podOf(of("namespace of who asks", namespaces...), "asks", rapid.Int64Range(0, 2).Draw(rt, "cpu"), rapid.Int64Range(0, 1).Draw(rt, "gpus"))
		placed := map[types.UID]bool{}
		for _, pl := range tb.Pods(0) {
			placed[pl.Pod.UID] = true
		}
		before := preemptible(tb, asks)
		switch rapid.IntRange(0, 3).Draw(rt, "what") {
		case 0:
			p := pod()
			delete(placed, p.UID)
			tb.AddPod(p, "n")
		case 1:
			tb.RemovePod(types.UID(of("pod", "1", "2", "3", "4", "5", "6")))
		case 2:
			set(tb, of("namespace", namespaces...))
		default:
			tb.Objects().Remove(object.ElasticQuotas, of("namespace", namespaces...), "q")
		}
		may := false
		for name := range strings.FieldsSeq(strings.Trim(preemptible(tb, asks), "[]")) {
			may = may || placed[types.UID(name)]
		}
		_, relief := Of(tb).TakeChanged()
		if helps := !relief.None() && relief.Concerns(asks.Namespace) && relief.Helps(&Ask{Pod: asks}); before == "[]" && may && !helps {
			rt.Fatalf("%s may take %s and is not told", asks.Namespace, preemptible(tb, asks))
		}
	})
}

// The nominated pods are walked once for a revision, and what counts is that of the revision.
func TestNominatedAreKept(t *testing.T) {
	tb := tableWith([]*object.ElasticQuota{quotaOf("a", "q", 0, "-", "cpu 9", "")})
	nominated, walks := []*object.Pod{podOf("a", "n", 5, 0)}, 0
	ask := Ask{Pod: podOf("a", "p", 5, 0), Nominated: Nominated{All: func(yield func(*object.Pod) bool) {
		walks++
		slices.Values(nominated)(yield)
	}}}
	for revision := range uint64(3) {
		ask.Nominated.Revision = Revision{Nominations: 1 + revision/2, Nodes: 7}
		if e := Of(tb).Exceeded(&ask); (e != nil) != (len(nominated) > 0) {
			t.Errorf("revision %d: %+v", revision, e)
		}
		if revision == 1 {
			nominated = nil
		}
	}
	if walks != 2 {
		t.Errorf("%d walks", walks)
	}
}
