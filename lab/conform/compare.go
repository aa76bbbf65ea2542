package conform

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/lab/oracle"
)

// compare lists what two records of the same attempt disagree on; the first
// line is the most telling one.
func compare(want, got oracle.Record) []string {
	var diffs []string
	differ := func(what string, want, got any) {
		diffs = append(diffs, fmt.Sprintf("%s: kube-scheduler %v, Berth %v", what, want, got))
	}
	if want.Result != got.Result {
		differ("result", want.Result, got.Result)
	}
	if want.Result == oracle.Failed && got.Result == oracle.Failed && failedAlike(want, got) {
		return nil
	}
	diffs = append(diffs, compareNodes(want.Nodes, got.Nodes)...)
	switch {
	case want.Result != oracle.Scheduled || got.Result != oracle.Scheduled:
	case !slices.Contains(want.Best, got.Node):
		differ("choice", "one of "+strings.Join(want.Best, " "), got.Node)
	case len(want.Nodes) == len(got.Nodes) && !slices.Equal(want.Best, got.Best):
		differ("best nodes", want.Best, got.Best)
	}
	if planned(want.Plans, got) { // of plans that are as good kube-scheduler takes any
		want.Message = strings.Replace(want.Message, "on node "+want.Nominated+", ", "on node "+got.Nominated+", ", 1)
	}
	if settled(want.Message) != settled(got.Message) {
		differ("message", fmt.Sprintf("%q", want.Message), fmt.Sprintf("%q", got.Message))
	}
	if !slices.Equal(want.Plugins, got.Plugins) {
		differ("rejecting plugins", want.Plugins, got.Plugins)
	}
	if want.Nominated != "" && got.Nominated != "" && !planned(want.Plans, got) {
		differ("preemption", want.Plans, oracle.Plan{Node: got.Nominated, Victims: got.Victims})
	}
	return diffs
}

// settled is a message with the errors of preemption in order: kube-scheduler
// begins at a random node.
func settled(message string) string {
	before, list, several := strings.Cut(message, "preemption: [")
	if !several {
		return message
	}
	errs := strings.Split(strings.TrimSuffix(list, "]"), ", ")
	slices.Sort(errs)
	return before + "preemption: [" + strings.Join(errs, ", ") + "]"
}

// failsForPool reports whether kube-scheduler's attempt, or its preemption, failed because the
// pod asks for all devices while a pool of some node is incomplete or not valid. Berth leaves
// that node out (docs/deviations.md).
func failsForPool(want oracle.Record) bool {
	return strings.Contains(want.Message, ": asks for all devices, but resource pool ")
}

// failedAlike tells whether kube-scheduler failed as Berth does on some node:
// it stops at the first that it comes across.
func failedAlike(want, got oracle.Record) bool {
	return want.Message == got.Message || slices.ContainsFunc(got.Nodes, func(n oracle.Node) bool {
		return n.Code == "Error" && strings.HasSuffix(want.Message, ": "+strings.Join(n.Reasons, ", "))
	})
}

// planned tells whether what a record does is one of the plans.
func planned(plans []oracle.Plan, got oracle.Record) bool {
	return slices.ContainsFunc(plans, func(p oracle.Plan) bool {
		return p.Node == got.Nominated && slices.Equal(p.Victims, got.Victims)
	})
}

// compareNodes compares the nodes that kube-scheduler looked at: of a pod that
// goes to its nominated node that node alone.
func compareNodes(want, got []oracle.Node) []string {
	if len(want) == 1 && len(got) > 1 {
		got = slices.DeleteFunc(slices.Clone(got), func(n oracle.Node) bool { return n.Name != want[0].Name })
	}
	if len(want) != len(got) {
		return []string{fmt.Sprintf("nodes: kube-scheduler %d, Berth %d", len(want), len(got))}
	}
	feasible := 0
	for _, n := range want {
		if n.Feasible {
			feasible++
		}
	}
	var diffs []string
	for i := range want {
		diffs = append(diffs, compareNode(want[i], got[i], feasible > 1)...)
	}
	return diffs
}

// compareNode compares two answers for one node. Where a single node is
// feasible kube-scheduler scores nothing, and scores are not compared.
func compareNode(want, got oracle.Node, scored bool) []string {
	var diffs []string
	differ := func(what string, wanted, gotten any) {
		diffs = append(diffs, fmt.Sprintf("%s, node %s: kube-scheduler %v, Berth %v", what, want.Name, wanted, gotten))
	}
	switch {
	case want.Name != got.Name:
		differ("node name", want.Name, got.Name)
	case want.Feasible != got.Feasible:
		differ("feasible", verdict(want), verdict(got))
	case !want.Feasible:
		if !blockedAlike(want, got) {
			differ("first blocker", verdict(want), verdict(got))
		}
	case scored:
		for _, plugin := range scorers(want, got) {
			if a, b := score(want, plugin), score(got, plugin); a != b {
				differ("score of "+plugin, a, b)
			}
		}
		if want.Total != got.Total {
			differ("total", want.Total, got.Total)
		}
	}
	return diffs
}

// blockedAlike reports whether Berth's blocker for a node is kube-scheduler's. Where several
// plugins leave no common node, kube-scheduler names all of them, and Berth one.
func blockedAlike(want, got oracle.Node) bool {
	if slices.Contains(strings.Split(want.Plugin, ","), got.Plugin) {
		want.Plugin = got.Plugin
	}
	return verdict(want) == verdict(got)
}

// verdict is a node's answer in a line. kube-scheduler gathers the reasons for
// extended resources from a map, so their order means nothing.
func verdict(n oracle.Node) string {
	if n.Feasible {
		return "yes"
	}
	return fmt.Sprintf("no (%s %s %q)", n.Plugin, n.Code, slices.Sorted(slices.Values(n.Reasons)))
}

func scorers(nodes ...oracle.Node) []string {
	var names []string
	for _, n := range nodes {
		for _, s := range n.Scores {
			names = append(names, s.Plugin)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// score is a plugin's score and weight in a word. A plugin that does not score
// (skipped by PreScore) says the same as one that scores 0.
func score(n oracle.Node, plugin string) string {
	for _, s := range n.Scores {
		if s.Plugin == plugin && s.Score != 0 {
			return fmt.Sprintf("%dx%d", s.Score, s.Weight)
		}
	}
	return "0"
}
