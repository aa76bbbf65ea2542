package framework_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

func named(name string, priority int32) *object.Pod {
	return &object.Pod{UID: types.UID(name), Name: name, Priority: priority}
}

// crowded returns a plugin whose verdict is the number of pods on the node.
func crowded(l framework.Locality) *framework.Plugin {
	return &framework.Plugin{SignPlugin: framework.SignPlugin{Locality: l}, FilterPlugin: framework.FilterPlugin{
		Filter: func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
			for i, r := range rows {
				out[i] = framework.Verdict(len(in.Table.Pods(r)))
			}
		},
	}}
}

// The verdict after an exchange of pods comes from rules that are data, or from the node
// alone. It is unknown for other filters.
func TestExchanged(t *testing.T) {
	tb := table.New()
	row := tb.SetNode(&object.Node{Name: "n", AllowedPods: 3})
	for uid, priority := range map[string]int32{"low": 0, "lower": 1, "equal": 2} {
		tb.AddPod(named(uid, priority), "n")
	}
	full := framework.Rules{Sums: []sums.Sum{sums.New(tb, v1.ResourcePods, 1, false)}}
	against := func(name string) framework.Rules {
		return framework.Rules{Conflicts: func(p *object.Pod) bool { return p.Name == name }}
	}
	one := []*object.Pod{named("came", 0)}
	for what, c := range map[string]struct {
		l     framework.Locality
		rules framework.Rules
		below int32
		came  []*object.Pod
		want  framework.Verdict
		known bool
	}{
		"the node alone":              {l: framework.NodeOnly, below: 2, came: one, want: 3, known: true},
		"the pods, without rules":     {l: framework.NodeAndPods, below: 2, came: one},
		"anything":                    {l: framework.Anything, below: 2, came: one},
		"sums, all stay":              {l: framework.NodeAndPods, rules: full, below: framework.Nobody, want: 1, known: true},
		"sums, two go and one comes":  {l: framework.NodeAndPods, rules: full, below: 2, came: one, known: true},
		"against one that goes":       {l: framework.NodeAndPods, rules: against("lower"), below: 2, known: true},
		"against one that stays":      {l: framework.NodeAndPods, rules: against("equal"), below: 2, want: framework.Conflict, known: true},
		"against one that does, too":  {l: framework.NodeAndPods, rules: against("lower"), below: 1, want: framework.Conflict, known: true},
		"against one that comes":      {l: framework.NodeAndPods, rules: against("came"), below: 2, came: one, want: framework.Conflict, known: true},
		"against one that is nowhere": {l: framework.NodeAndPods, rules: against("came"), below: 2, known: true},
	} {
		in := &framework.Input{Table: tb, Pod: named("p", 2), Rules: c.rules}
		if v, known := crowded(c.l).Exchanged(in, row, c.below, c.came); v != c.want || known != c.known {
			t.Errorf("%s: verdict %d, known %t, want %d, %t", what, v, known, c.want, c.known)
		}
	}
}
