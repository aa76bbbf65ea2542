package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// Which plugins count as rejecting a pod, and with which status and reason, is as in
// kube-scheduler's RunPreFilterPlugins, in whatever way PreFilter ends. So it is if each
// plugin is hosted.
func TestRejectingPluginsOfPreFilter(t *testing.T) {
	success := framework.PreFilterResult{}
	skip := framework.PreFilterResult{Skip: true, NodeNames: []string{}}
	nodes := func(names ...string) framework.PreFilterResult {
		return framework.PreFilterResult{NodeNames: append([]string{}, names...)}
	}
	status := func(code decision.Code, reason string) framework.PreFilterResult {
		return framework.PreFilterResult{Status: &decision.Status{Code: code, Reasons: []string{reason}, Err: errors.New(reason)}}
	}
	unresolvable := func(reason string) framework.PreFilterResult {
		return status(decision.UnschedulableAndUnresolvable, reason)
	}
	unschedulable := func(reason string) framework.PreFilterResult { return status(decision.Unschedulable, reason) }
	for name, c := range map[string]struct {
		answers []framework.PreFilterResult // of the plugins A, B, C
		want    string                      // code: plugins: reason
	}{
		"all succeed, and no filter rejects":        {[]framework.PreFilterResult{success, success}, "Success: : "},
		"a plugin that skips narrows nothing":       {[]framework.PreFilterResult{skip, success}, "Success: : "},
		"narrowed to a node that is there":          {[]framework.PreFilterResult{nodes("n1"), success}, "Success: A: node(s) didn't satisfy plugin(s) [A]"},
		"unresolvable":                              {[]framework.PreFilterResult{success, unresolvable("no")}, "UnschedulableAndUnresolvable: B: no"},
		"narrowed, then unresolvable":               {[]framework.PreFilterResult{nodes("n1"), unresolvable("no")}, "UnschedulableAndUnresolvable: B: no"},
		"narrowed twice, then unresolvable":         {[]framework.PreFilterResult{nodes("n1", "n2"), nodes("n1"), unresolvable("no")}, "UnschedulableAndUnresolvable: C: no"},
		"unresolvable, then nobody is asked":        {[]framework.PreFilterResult{unresolvable("no"), nodes("n1"), unschedulable("never")}, "UnschedulableAndUnresolvable: A: no"},
		"unschedulable":                             {[]framework.PreFilterResult{unschedulable("no"), success}, "Unschedulable: A: no"},
		"narrowed, then unschedulable":              {[]framework.PreFilterResult{nodes("n1"), unschedulable("no")}, "Unschedulable: A B: no"},
		"unschedulable, then narrowed":              {[]framework.PreFilterResult{unschedulable("no"), nodes("n1")}, "Unschedulable: A B: no"},
		"unschedulable twice":                       {[]framework.PreFilterResult{unschedulable("no"), unschedulable("neither"), skip}, "Unschedulable: B: neither"},
		"unschedulable, then unresolvable":          {[]framework.PreFilterResult{unschedulable("no"), nodes("n1"), unresolvable("never")}, "UnschedulableAndUnresolvable: C: never"},
		"narrowed to no node":                       {[]framework.PreFilterResult{success, nodes()}, "UnschedulableAndUnresolvable: B: node(s) didn't satisfy plugin B"},
		"narrowed to no node between them":          {[]framework.PreFilterResult{nodes("n1"), nodes("n2"), unresolvable("no")}, "UnschedulableAndUnresolvable: A B: node(s) didn't satisfy plugin(s) [A B] simultaneously"},
		"unschedulable, then narrowed to no node":   {[]framework.PreFilterResult{unschedulable("no"), nodes("n1"), nodes("n2")}, "UnschedulableAndUnresolvable: B C: node(s) didn't satisfy plugin(s) [B C] simultaneously"},
		"narrowed to a node that is not there":      {[]framework.PreFilterResult{nodes("n9"), success}, "Success: A: node(s) didn't satisfy plugin(s) [A]"},
		"an error":                                  {[]framework.PreFilterResult{success, status(decision.Error, "broken")}, `Error: B: running PreFilter plugin "B": broken`},
		"narrowed and unschedulable, then an error": {[]framework.PreFilterResult{nodes("n1"), unschedulable("no"), status(decision.Error, "broken")}, `Error: C: running PreFilter plugin "C": broken`},
	} {
		for _, hosted := range []int{0, 1, 2, 4, 7} { // bits: A, B, C
			t.Run(fmt.Sprintf("%s/%b", name, hosted), func(t *testing.T) {
				if got := rejectedInPreFilter(t, c.answers, hosted); got != c.want {
					t.Errorf("%s\nnot %s", got, c.want)
				}
			})
		}
	}
}

// rejectedInPreFilter decides on a pod with two nodes, n1 and n2, for plugins that answer so.
func rejectedInPreFilter(t *testing.T, answers []framework.PreFilterResult, hosted int) string {
	t.Helper()
	tb := table.New()
	tb.SetNode(newNode("n1", nil, 4000, 4000))
	tb.SetNode(newNode("n2", nil, 4000, 4000))
	p := &profile.Profile{Name: "default-scheduler"}
	for i, answer := range answers {
		pl := &framework.Plugin{Name: string(rune('A' + i))}
		pl.PreFilter = func(*table.Table, *object.Pod) framework.PreFilterResult { return answer }
		if hosted>>i&1 == 1 {
			pl.Hosted, pl.Locality = &framework.HostedPlugin{Host: noHost{}}, framework.Anything
			p.Host = noHost{}
		}
		p.PreFilter = append(p.PreFilter, pl)
	}
	o := New(tb, seed, 1).Decide(For(p, newPod("p", nil, 1, 1)), nil)
	code, reason := decision.Success, ""
	for _, tally := range o.Tallies() {
		reason = strings.Join(tally.Reasons, ", ")
	}
	if o.Rejected != nil {
		code, reason = o.Rejected.Code, strings.Join(o.Rejected.Reasons, ", ")
		if o.Rejected.Err != nil && code == decision.Error {
			reason = o.Rejected.Err.Error()
		}
	}
	return fmt.Sprintf("%v: %s: %s", code, strings.Join(o.RejectedBy(), " "), reason)
}
