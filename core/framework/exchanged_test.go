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

// The verdict after an exchange of pods comes from the sums, from the node alone, or from
// a trial that leaves the table as it was. It is unknown for costly filters, and for those
// that look beyond the node.
func TestExchanged(t *testing.T) {
	tb := table.New()
	row := tb.SetNode(&object.Node{Name: "n", AllowedPods: 3})
	for uid, priority := range map[string]int32{"low": 0, "lower": 1, "equal": 2} {
		tb.AddPod(named(uid, priority), "n")
	}
	costly := crowded(framework.NodeAndPods)
	costly.Costly = true
	full := []sums.Sum{sums.New(tb, v1.ResourcePods, 1, false)}
	for what, c := range map[string]struct {
		pl    *framework.Plugin
		sums  []sums.Sum
		want  framework.Verdict
		known bool
	}{
		"the node alone":        {crowded(framework.NodeOnly), nil, 3, true},
		"the pods, by a trial":  {crowded(framework.NodeAndPods), nil, 2, true},
		"the pods, by sums":     {crowded(framework.NodeAndPods), full, 0, true},
		"the pods, at a cost":   {costly, nil, 0, false},
		"anything":              {crowded(framework.Anything), nil, 0, false},
		"domains, without more": {&framework.Plugin{FilterPlugin: framework.FilterPlugin{CellFilter: &framework.CellFilter{}}}, nil, 0, false},
	} {
		in := &framework.Input{Table: tb, Pod: named("p", 2), Sums: c.sums}
		v, known := c.pl.Exchanged(in, row, 2, []*object.Pod{named("came", 0)})
		if v != c.want || known != c.known || len(tb.Pods(row)) != 3 {
			t.Errorf("%s: verdict %d, known %t, want %d, %t; %d pods are left", what, v, known, c.want, c.known, len(tb.Pods(row)))
		}
	}
	in := &framework.Input{Table: tb, Pod: named("p", 2)}
	if v, _ := crowded(framework.NodeAndPods).Exchanged(in, row, framework.Nobody, []*object.Pod{named("came", 0)}); v != 4 {
		t.Errorf("with one more pod there are %d", v)
	}
	in.Sums = full
	if v, _ := crowded(framework.NodeAndPods).Exchanged(in, row, framework.Nobody, nil); v == framework.Fits {
		t.Error("the pod fits on a node that is full")
	}
}
