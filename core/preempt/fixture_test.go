package preempt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

var now = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// world is a table with a filter of its own: room for CPU, a host port that
// only one pod can have, and nodes that are closed for good.
type world struct {
	table       *table.Table
	pod         *object.Pod
	closed      map[string]bool
	failing     map[string]string // where a filter fails, and how
	silent      map[string]bool   // where only a try tells
	nominated   map[string][]*object.Pod
	evicting    map[types.UID]bool
	renominated []string
	budgets     []*object.Budget
	own         string // the pod's nomination
	draw        int
	tried       func(node string)
	kept        any
	quotas      *framework.QuotaRules
	spread      bool    // what the filter says of a row depends on others
	priorities  []int32 // of drawn pods
}

func newWorld(p *object.Pod) *world {
	return &world{table: table.New(), pod: p, closed: map[string]bool{}, silent: map[string]bool{},
		nominated: map[string][]*object.Pod{}, evicting: map[types.UID]bool{}}
}

func (w *world) node(name string, cpu int64, pods ...*object.Pod) *world {
	w.table.SetNode(&object.Node{Name: name, Allocatable: resource.Vector{MilliCPU: cpu}})
	for _, p := range pods {
		w.table.AddPod(p, name)
	}
	return w
}

// budget adds a budget for the pods of the apps, which commas separate.
func (w *world) budget(namespace, apps string, allowed int32, disrupted ...string) *world {
	selector, err := labels.Parse("app in (" + apps + ")")
	if err != nil {
		panic(err)
	}
	b := &object.Budget{Namespace: namespace, Name: fmt.Sprint(len(w.budgets)), Allowed: allowed,
		Selector: selector, Disrupted: map[string]bool{}}
	for _, name := range disrupted {
		b.Disrupted[name] = true
	}
	w.budgets = append(w.budgets, b)
	slices.SortStableFunc(w.budgets, func(a, b *object.Budget) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return w
}

func (w *world) call() *framework.PostFilterCall {
	// What the filters said of the nodes as they are, as in a cycle.
	codes := map[table.Row]decision.Code{}
	for r := range w.table.Rows() {
		if w.table.Node(table.Row(r)) == nil {
			continue
		}
		if b := w.refit(table.Row(r)); b != nil {
			codes[table.Row(r)] = b.Code
		}
	}
	return &framework.PostFilterCall{
		Now: now, Table: w.table, Pod: w.pod,
		Filters: framework.FilterResults{
			Code: func(r table.Row) decision.Code { return codes[r] },
			Run: func(r table.Row) *decision.Blocker {
				if w.tried != nil {
					w.tried(w.table.Name(r))
				}
				return w.refit(r)
			},
			Unschedulable: func() (nodes int) {
				for _, code := range codes { // any order: a sum
					if code == decision.Unschedulable {
						nodes++
					}
				}
				return nodes
			},
			RunWithoutLower: func(r table.Row, kept []*object.Pod) (*decision.Blocker, bool) {
				if w.silent[w.table.Name(r)] {
					return nil, false
				}
				lower := lowerPods(&call{PostFilterCall: &framework.PostFilterCall{Table: w.table, Pod: w.pod}}, r)
				b := w.refitWithout(r, slices.DeleteFunc(lower, func(p *object.Pod) bool { return slices.Contains(kept, p) }))
				if b != nil && b.Code == decision.Error {
					return nil, false
				}
				return b, true
			},
			Local:     !w.spread,
			Shortfall: func(r table.Row, shortfall []int64) []int64 { return append(shortfall, w.shortfall(r)) },
			Frees:     func(p *object.Pod, frees []int64) []int64 { return append(frees, p.Demand.Usage.MilliCPU) },
		},
		Nominations: framework.Nominations{
			NodeName: w.own, PreemptedNodeName: w.own,
			PodsForNode: func(node string) []*object.Pod { return w.nominated[node] },
			ChangedSince: func(since uint64) ([]string, uint64, bool) {
				return w.renominated[since:], uint64(len(w.renominated)), true
			},
		},
		Disruption: framework.Disruption{
			Budgets:  w.budgets,
			Evicting: func(uid types.UID) bool { return w.evicting[uid] },
		},
		Quotas: w.quotas,
		Cache:  &w.kept,
		Draw:   func(n int) int { return w.draw % max(n, 1) },
	}
}

func (w *world) refit(r table.Row) *decision.Blocker { return w.refitWithout(r, nil) }

func (w *world) refitWithout(r table.Row, gone []*object.Pod) *decision.Blocker {
	if w.closed[w.table.Name(r)] {
		return &decision.Blocker{Plugin: "Closed", Code: decision.UnschedulableAndUnresolvable, Reasons: []string{"closed"}}
	}
	pods := slices.Clone(w.nominated[w.table.Name(r)])
	pods = slices.DeleteFunc(pods, func(p *object.Pod) bool { return p.Priority < w.pod.Priority || p.UID == w.pod.UID })
	for _, pl := range w.table.Pods(r) {
		if !slices.Contains(gone, pl.Pod) {
			pods = append(pods, pl.Pod)
		}
	}
	b := block(w.table.Node(r), w.pod, pods)
	if b == nil && w.spread && w.crowd(gone) > 5 {
		b = &decision.Blocker{Plugin: "Crowd", Code: decision.Unschedulable, Reasons: []string{"crowded"}}
	}
	if why := w.failing[w.table.Name(r)]; b == nil && why != "" {
		b = &decision.Blocker{Plugin: "Devices", Code: decision.Error, Reasons: []string{why}}
	}
	return b
}

// crowd is how many pods of one app there are on all rows, without those that are gone.
func (w *world) crowd(gone []*object.Pod) (n int) {
	for r := range w.table.Rows() {
		for _, pl := range w.table.Pods(table.Row(r)) {
			if pl.Pod.Labels["app"] == "b" && !slices.Contains(gone, pl.Pod) {
				n++
			}
		}
	}
	return n
}

// shortfall is the CPU that is missing on the row as it stands.
func (w *world) shortfall(r table.Row) int64 {
	return w.pod.Demand.Usage.MilliCPU - (w.table.Node(r).Allocatable.MilliCPU - w.table.Used(table.CPU)[r])
}

// block says why the pod does not fit on the node beside the others.
func block(n *object.Node, p *object.Pod, others []*object.Pod) *decision.Blocker {
	room := n.Allocatable.MilliCPU
	for _, o := range others {
		room -= o.Demand.Usage.MilliCPU
	}
	if p.Demand.Usage.MilliCPU > room {
		return &decision.Blocker{Plugin: "Room", Code: decision.Unschedulable, Reasons: []string{"Insufficient cpu"}}
	}
	for _, o := range others {
		if len(p.HostPorts) > 0 && slices.Equal(p.HostPorts, o.HostPorts) {
			return &decision.Blocker{Plugin: "Ports", Code: decision.Unschedulable, Reasons: []string{"port taken"}}
		}
	}
	return nil
}

// pod makes a pod "namespace/name" (namespace "" is "default").
func pod(key string, priority int32, cpu int64, options ...func(*object.Pod)) *object.Pod {
	namespace, name, ok := strings.Cut(key, "/")
	if !ok {
		namespace, name = "default", key
	}
	p := &object.Pod{UID: types.UID(key), Namespace: namespace, Name: name, Priority: priority, Started: now.Add(-time.Hour)}
	p.Demand.Usage.MilliCPU = cpu
	for _, o := range options {
		o(p)
	}
	return p
}

func app(name string) func(*object.Pod) {
	return func(p *object.Pod) { p.Labels = map[string]string{"app": name} }
}

func startedAt(minute int) func(*object.Pod) {
	return func(p *object.Pod) { p.Started = now.Add(time.Duration(minute) * time.Minute) }
}

func notStarted(p *object.Pod) { p.Started = time.Time{} }

func port(n int32) func(*object.Pod) {
	return func(p *object.Pod) { p.HostPorts = []object.HostPort{{IP: "0.0.0.0", Protocol: "TCP", Port: n}} }
}

// picture is all that the table holds, for comparison.
func picture(tb *table.Table) string {
	var b strings.Builder
	for r := range tb.Rows() {
		row := table.Row(r)
		var pods []string
		for _, pl := range tb.Pods(row) {
			pods = append(pods, pl.Pod.Key())
		}
		slices.Sort(pods)
		fmt.Fprintln(&b, tb.Name(row), tb.Used(table.CPU)[r], pods)
	}
	return b.String()
}

// find runs Find and checks that it leaves the table alone.
func (w *world) find(t interface {
	Helper()
	Fatalf(string, ...any)
}, limits Limits) (*Plan, []decision.Tally, error) {
	t.Helper()
	before, c := picture(w.table), w.call()
	plan, refused, err := new(Finder).Find(c, limits)
	if after := picture(w.table); after != before {
		t.Fatalf("Find changed the table from\n%s\nto\n%s", before, after)
	}
	if err := w.table.Check(); err != nil {
		t.Fatalf("after Find: %v", err)
	}
	return plan, refused, err
}

func (p *Plan) text() string {
	if p == nil {
		return ""
	}
	var names []string
	for _, v := range p.Victims {
		names = append(names, v.Name)
	}
	return fmt.Sprintf("%s: %s, %d violations", p.Node, strings.Join(names, " "), p.NumPDBViolations)
}

// quota gives the namespace an ElasticQuota, or takes it.
func (w *world) quota(namespace string, there bool) {
	if !there {
		w.table.Objects().Remove(object.ElasticQuotas, namespace, "q")
		return
	}
	w.table.Objects().Set(&object.ElasticQuota{Meta: object.Meta{Kind: object.ElasticQuotas, Namespace: namespace, Name: "q"}})
}

// mayGo reports whether the pod may preempt p, which has no queue unless the pod has one.
func (w *world) mayGo(p *object.Pod) bool {
	return p.Priority < w.pod.Priority && (w.quotas == nil || quota.Of(w.table).Queue(p.Namespace) == nil)
}

var everything = Limits{Percentage: 100}
