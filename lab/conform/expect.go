package conform

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/lab/oracle"
)

// expect tells what kube-scheduler says of a pod, and as comments what Berth
// says instead.
func (s *story) expect(step Step, full bool) {
	if step.Want.Result == "" {
		return // a panic came between
	}
	want := expectations(key(step.Pod), step, step.Want, full)
	for _, line := range want {
		s.line("%s", line)
	}
	for _, line := range expectations(key(step.Pod), step, step.Got, full) {
		if !slices.Contains(want, line) {
			s.comment("Berth: %s", line)
		}
	}
}

// expectations says a record in the language of stories. Where both sides
// choose among equals they say the same, whatever they chose.
func expectations(pod string, step Step, rec oracle.Record, full bool) []string {
	var lines []string
	expect := func(format string, args ...any) {
		lines = append(lines, strings.TrimSpace("expect "+pod+" "+fmt.Sprintf(format, args...)))
	}
	switch {
	case rec.Result == oracle.Scheduled && slices.Contains(step.Want.Best, rec.Node):
		expect("-> %s", strings.Join(step.Want.Best, "|"))
	case rec.Result == oracle.Scheduled:
		expect("-> %s", rec.Node)
	case rec.Result == oracle.Gated:
		expect("gated%s", after(rec.Message))
	case !full || rec.Result == oracle.Failed && step.Want.Result == step.Got.Result:
		expect("pending") // a failure says what failed first, on one node or another
	default:
		expect("pending%s", after(rec.Message))
	}
	if rec.Result == oracle.Preempting {
		expect("preempts %s", plans(step.Want.Plans, rec))
	}
	if !full || rec.Result == oracle.Gated || rec.Result == oracle.Failed {
		return lines
	}
	if len(rec.Plugins) > 0 {
		expect("rejected by %s", strings.Join(rec.Plugins, " "))
	}
	if narrowed := len(step.Want.Nodes) == 1 && len(step.Got.Nodes) > 1; narrowed {
		return lines // kube-scheduler looked at the nominated node alone
	}
	expectNodes(rec.Nodes, scoring(slices.Concat(step.Want.Nodes, step.Got.Nodes)), expect)
	return lines
}

// after is a text that follows an expectation, if it can stand on a line.
func after(text string) string {
	if text == "" || strings.Contains(text, "\n") {
		return ""
	}
	return ": " + text
}

// scoring is the plugins that give any of the nodes more than 0, sorted.
func scoring(nodes []oracle.Node) []string {
	var names []string
	for _, n := range nodes {
		for _, s := range n.Scores {
			if s.Score != 0 {
				names = append(names, s.Plugin)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func expectNodes(nodes []oracle.Node, scorers []string, expect func(string, ...any)) {
	var fits []string
	for _, n := range nodes {
		if n.Feasible {
			fits = append(fits, n.Name)
		}
	}
	if len(nodes) > 0 {
		expect("fits %s", strings.Join(fits, " "))
	}
	for _, n := range nodes {
		switch {
		case !n.Feasible:
			reasons := strings.Join(slices.Sorted(slices.Values(n.Reasons)), ", ")
			expect("blocked %s first %s %s%s", n.Name, cmp.Or(n.Plugin, `""`), n.Code, after(reasons))
		case len(fits) > 1: // else kube-scheduler scores nothing
			scores := map[string]int64{}
			for _, s := range n.Scores {
				scores[s.Plugin] = s.Score
			}
			var words strings.Builder
			for _, plugin := range scorers {
				fmt.Fprintf(&words, "%s=%d ", plugin, scores[plugin])
			}
			expect("score %s %stotal=%d", n.Name, words.String(), n.Total)
		}
	}
}

// plans is the preemptions that are as good as the record's.
func plans(equals []oracle.Plan, rec oracle.Record) string {
	if !planned(equals, rec) {
		equals = []oracle.Plan{{Node: rec.Nominated, Victims: rec.Victims}}
	}
	var words []string
	for _, p := range equals {
		words = append(words, p.Node+"="+strings.Join(p.Victims, ","))
	}
	return strings.Join(words, " ")
}
