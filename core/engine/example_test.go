package engine_test

import (
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// The decision of the package's comment, and the one before it: two pods of a Deployment. For the
// second pod only Fit is asked, and only about the node of the first.
func Example() {
	deploy(os.Stdout)

	// Output:
	// web-1 asks: taints n1 n2 n3, room n1 n2, score n1 n2
	//   index n1 170 n2 174 n3 closed
	//   bonus 100
	//   Outcome{Row: n2, Score: 274, Ties: 1, Feasible: 2}
	// web-2 asks: room n2, score n2
	//   index n1 170 n2 164 n3 closed
	//   bonus 100
	//   Outcome{Row: n1, Score: 270, Ties: 1, Feasible: 2}
}

// deploy writes the two decisions to w.
func deploy(w io.Writer) {
	t := table.New()
	for i, used := range []int64{1000, 800, 0} { // n3 has a taint
		n := &object.Node{Name: fmt.Sprint("n", i+1), Labels: map[string]string{"tainted": []string{"", "", "yes"}[i]}}
		n.Allocatable.MilliCPU = 10000
		t.SetNode(n)
		t.AddPod(podOf("other-"+n.Name, used), n.Name)
	}
	e, asked := engine.New(t, 0, 1), questions{}
	p := asked.profile()
	for _, pod := range []*object.Pod{podOf("web-1", 500), podOf("web-2", 500)} {
		asked.list = nil
		o := e.Decide(engine.For(p, pod), nil)
		fmt.Fprintln(w, pod.Name, "asks:", strings.Join(asked.list, ", "))
		fmt.Fprint(w, "  index")
		for _, row := range t.All() {
			if n := o.Node(row); n.Feasible {
				fmt.Fprintf(w, " %s %d", n.Name, n.Scores[1].Weight*n.Scores[1].Score)
			} else {
				fmt.Fprintf(w, " %s closed", n.Name)
			}
		}
		fmt.Fprintf(w, "\n  bonus %d\n", o.Node(o.Row).Scores[0].Score)
		fmt.Fprintf(w, "  Outcome{Row: %s, Score: %d, Ties: %d, Feasible: %d}\n", t.Name(o.Row), o.Score, o.Ties, o.Feasible)
		t.AddPod(pod, t.Name(o.Row))
	}
}

func podOf(name string, milliCPU int64) *object.Pod {
	v := resource.Vector{MilliCPU: milliCPU}
	return &object.Pod{UID: types.UID(name), Name: name, Demand: resource.Demand{Requests: v, Usage: v}}
}

// questions records what plugins are asked.
type questions struct{ list []string }

func (q *questions) record(what string, t *table.Table, rows []table.Row) {
	for _, row := range rows {
		what += " " + t.Name(row)
	}
	q.list = append(q.list, what)
}

// profile returns one with the filters Taints and Fit, which score as well: Taints, which is
// normalised, rates all nodes the same, and Fit rates by the percentage of CPU that stays free.
func (q *questions) profile() *profile.Profile {
	explain := func(*framework.Input, table.Row, framework.Verdict) decision.Blocker {
		return decision.Blocker{Code: decision.Unschedulable, Reasons: []string{"a reason"}}
	}
	taints := &framework.Plugin{Name: "Taints",
		SignPlugin: framework.SignPlugin{Locality: framework.NodeOnly, Sign: func(key []byte, _ *table.Table, _ *object.Pod) []byte {
			return key // all pods tolerate the same taints: none
		}},
		FilterPlugin: framework.FilterPlugin{Explain: explain, Filter: func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
			q.record("taints", in.Table, rows)
			for i, row := range rows {
				if out[i] = framework.Fits; in.Table.Node(row).Labels["tainted"] != "" {
					out[i] = 1
				}
			}
		}},
		ScorePlugin: framework.ScorePlugin{
			Score:          func(_ *framework.Input, _ []table.Row, out []int64) { clear(out) },
			NormalizeScore: func(_, _, _ int64) int64 { return 100 },
		},
	}
	free := func(in *framework.Input, row table.Row) int64 {
		return in.Table.Allocatable(table.CPU)[row] - in.Table.Used(table.CPU)[row] - in.Pod.Demand.Requests.MilliCPU
	}
	fit := &framework.Plugin{Name: "Fit",
		SignPlugin: framework.SignPlugin{Locality: framework.NodeAndPods, Sign: func(key []byte, _ *table.Table, p *object.Pod) []byte {
			return p.Demand.Requests.AppendKey(key)
		}},
		FilterPlugin: framework.FilterPlugin{Explain: explain, Filter: func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
			q.record("room", in.Table, rows)
			for i, row := range rows {
				if out[i] = framework.Fits; free(in, row) < 0 {
					out[i] = 1
				}
			}
		}},
		ScorePlugin: framework.ScorePlugin{Score: func(in *framework.Input, rows []table.Row, out []int64) {
			q.record("score", in.Table, rows)
			for i, row := range rows {
				out[i] = free(in, row) * 100 / in.Table.Allocatable(table.CPU)[row]
			}
		}},
	}
	return &profile.Profile{Name: "default", Filter: []*framework.Plugin{taints, fit}, Score: []profile.Scorer{{Plugin: taints, Weight: 1}, {Plugin: fit, Weight: 2}}}
}
