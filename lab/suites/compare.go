package suites

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// class is what a case says of Berth.
type class string

const (
	passes  class = "pass"          // on Berth
	allowed class = "allowed"       // it fails on Berth, with a reason
	fault   class = "FAULT"         // it fails on Berth alone, without a reason
	both    class = "fails on both" // the machine's doing, or the suite's
	byHand  class = "no scheduler"  // it passes, and Berth has no part in it
	flaky   class = "flaky"         // it passes on Berth the second time
	skip    class = "skipped"       // by the test itself
)

// classes in the order of the table.
var classes = []class{passes, flaky, allowed, both, fault, byHand, skip}

// result is a case.
type result struct {
	pkg, name string
	class     class
	control   verdict // on kube-scheduler; "": not run
	reason    string
	log       string
}

// compare compares what a test gave on Berth, when it was run again, and on
// kube-scheduler; again and control are nil where there was no need.
func compare(pkg string, rules []*rule, first, again, control *outcome) []result {
	var list []result
	for _, name := range slices.Sorted(maps.Keys(first.cases)) {
		r, rule := result{pkg: pkg, name: name, log: first.log}, find(rules, pkg, name)
		if rule != nil {
			rule.tried = true
		}
		if control != nil {
			r.control = control.of(name)
		}
		switch v := first.cases[name]; {
		case v == skipped:
			r.class = skip
		case v == passed && !first.onBerth(name):
			r.class = byHand
		case v == passed:
			r.class = passes
		case again != nil && again.of(name) == passed:
			r.class = flaky
		case rule != nil:
			rule.needed = true
			r.class, r.reason = allowed, rule.reason
		case r.control == failed:
			r.class = both
		default:
			r.class = fault
		}
		list = append(list, r)
	}
	return list
}

// failing names the cases that fail and that no rule names.
func (o *outcome) failing(pkg string, rules []*rule) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(o.cases)) {
		if o.cases[name] == failed && find(rules, pkg, name) == nil {
			names = append(names, name)
		}
	}
	return names
}

func counts(list []result) map[class]int {
	n := map[class]int{}
	for _, r := range list {
		n[r.class]++
	}
	return n
}

// inWords counts the cases.
func inWords(list []result) string {
	n, words := counts(list), ""
	for _, c := range classes {
		if n[c] > 0 {
			words += fmt.Sprintf(" %d %s", n[c], c)
		}
	}
	return words
}

// summarise prints a table of the packages, the reasons of what is allowed, and the
// cases to look at.
func summarise(out io.Writer, list []result) {
	packages := map[string][]result{}
	for _, r := range list {
		packages[r.pkg] = append(packages[r.pkg], r)
	}
	heads := make([]string, len(classes))
	for i, c := range classes {
		heads[i] = string(c)
	}
	fmt.Fprintf(out, "\n| Package | %s |\n|---%s|\n", strings.Join(heads, " | "), strings.Repeat("|---", len(classes)))
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		fmt.Fprintf(out, "| %s |%s\n", pkg, row(packages[pkg]))
	}
	fmt.Fprintf(out, "| together |%s\n\n", row(list))
	for _, r := range list {
		switch r.class {
		case allowed:
			fmt.Fprintf(out, "allowed: %s %s: %s\n", r.pkg, r.name, r.reason)
		case fault, both, flaky:
			fmt.Fprintf(out, "%s: %s %s: %s\n", r.class, r.pkg, r.name, r.log)
		}
	}
}

func row(list []result) string {
	n, cells := counts(list), ""
	for _, c := range classes {
		cells += fmt.Sprintf(" %d |", n[c])
	}
	return cells
}
