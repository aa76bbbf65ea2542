package why

import (
	"strings"
	"testing"
)

// Causes are compared, not sentences: what the scheduler said agrees with an answer that has
// one of its plugins, however the counts and the words of versions differ. What no plugin here
// says never agrees. Where the pod would be placed, only as many nodes as load explains and
// another number of nodes are taken for changes since.
func TestAgreement(t *testing.T) {
	blocked := []NodeGroup{{Nodes: 3, Blockers: []Blocker{{Plugin: "NodeResourcesFit"}, {Plugin: "TaintToleration"}}}}
	for name, c := range map[string]struct {
		verdict         PodState
		reason, message string
		agrees          bool
		moved           string
	}{
		"the same":              {Waiting, "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.", true, ""},
		"words of 1.34":         {Misconfigured, "Unschedulable", "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {team: a, b}. no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.", true, ""},
		"another cause":         {Waiting, "Unschedulable", "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.", false, ""},
		"another number":        {Waiting, "Unschedulable", "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.", true, ""},
		"a hosted plugin":       {Waiting, "Unschedulable", "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) have no licence.", false, ""},
		"a hosted prefilter":    {Waiting, "Unschedulable", "0/3 nodes are available: the queue of team a is full. not found", false, ""},
		"an error":              {Waiting, "SchedulerError", "running Bind plugin \"DefaultBinder\": denied", false, ""},
		"fits, of load":         {WouldBePlaced, "Unschedulable", "0/3 nodes are available: 2 Insufficient memory, 1 Too many pods.", true, "room came"},
		"fits, of a taint":      {WouldBePlaced, "Unschedulable", "0/3 nodes are available: 3 node(s) had untolerated taint(s).", false, ""},
		"fits, not in a rack":   {WouldBePlaced, "Unschedulable", "0/2 nodes of rack a/r1 are available: 2 Insufficient cpu.", true, "in one topology domain"},
		"not in a rack":         {Misconfigured, "Unschedulable", "0/3 nodes of rack a/r1 are available: 3 node(s) didn't match Pod's node affinity/selector.", true, ""},
		"fits, of mixed":        {WouldBePlaced, "Unschedulable", "0/3 nodes are available: 2 Insufficient cpu, 1 node(s) were unschedulable.", true, "room came"},
		"fits, beyond load":     {WouldBePlaced, "Unschedulable", "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.", false, ""},
		"fits, a node came":     {WouldBePlaced, "Unschedulable", "0/2 nodes are available: 2 node(s) had untolerated taint(s).", true, "from 2 to 3"},
		"fits, there were none": {WouldBePlaced, "Unschedulable", "no nodes available to schedule pods", true, "from 0 to 3"},
		"fits, denied":          {WouldBePlaced, "FailedScheduling", "binding rejected: pods \"p\" is forbidden", false, ""},
		"gates are gone":        {WouldBePlaced, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates", true, "gates were removed"},
		"gated":                 {Gated, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates", true, ""},
		"of another scheduler":  {Failed, "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.", false, ""},
		"preempting":            {Preempting, "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.", true, ""},
		"absurd":                {Waiting, "Unschedulable", "0/99999999999999999999999 nodes are available: 1", false, ""},
	} {
		a := &Answer{Verdict: c.verdict, NodesTotal: 3, NodesFeasible: 2, Groups: blocked}
		agrees, moved := a.agreesWith(&Observed{Reason: c.reason, Message: c.message})
		if agrees != c.agrees || c.moved == "" != (moved == "") || !strings.Contains(moved, c.moved) {
			t.Errorf("%s: agrees %t, %q; want %t, %q", name, agrees, moved, c.agrees, c.moved)
		}
	}
}
