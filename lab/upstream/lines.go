package upstream

import (
	"fmt"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Line is a log line in kube-scheduler's source. Level is "V4", "E" for an error, and
// "V?" where the verbosity is in a variable. Keys are those that are constants.
type Line struct{ Level, Message, Keys, Path string }

// Lines returns the log lines of kube-scheduler's own code, each once and in order.
func (s *Sources) Lines() []Line {
	all := map[Line]bool{}
	calls(s.scheduler(), func(f *file, call *ast.CallExpr, function *ast.SelectorExpr) {
		args, level := call.Args, ""
		switch function.Sel.Name {
		case "Info":
			level = verbosity(function.X)
		case "Error":
			if len(args) > 0 {
				args, level = args[1:], "E"
			}
		case "HandleErrorWithContext", "HandleErrorWithLogger":
			args, level = args[2:], "E"
		}
		if level == "" || len(args) == 0 || s.stringOf(f, args[0]) == "" {
			return
		}
		var keys []string
		for i := 1; i < len(args); i += 2 {
			if k := s.stringOf(f, args[i]); k != "" {
				keys = append(keys, k)
			}
		}
		all[Line{level, s.stringOf(f, args[0]), strings.Join(keys, ", "), f.path}] = true
	})
	return slices.SortedFunc(maps.Keys(all), func(a, b Line) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// verbosity is that of a logger: what V was called with.
func verbosity(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "V" {
			if l, ok := e.Args[0].(*ast.BasicLit); ok {
				return "V" + l.Value
			}
		}
		return "V0"
	case *ast.Ident:
		switch e.Name {
		case "logger", "lg":
			return "V0"
		case "loggerV", "loggerVTen":
			return "V?"
		}
	case *ast.SelectorExpr:
		if e.Sel.Name == "logger" {
			return "V0"
		}
	}
	return ""
}

// logLines are lines "V4 | message | key, key | file".
func (s *Sources) logLines() (lines []string) {
	for _, l := range s.Lines() {
		lines = append(lines, strings.Join([]string{l.Level, oneLine(l.Message), l.Keys, l.Path}, " | "))
	}
	return lines
}

// Events returns the reasons of the events that kube-scheduler's own code publishes, with
// their type and action.
func (s *Sources) Events() map[string]string {
	found := map[string]string{}
	calls(s.scheduler(), func(f *file, call *ast.CallExpr, function *ast.SelectorExpr) {
		if function.Sel.Name == "Eventf" && len(call.Args) > 4 && s.stringOf(f, call.Args[3]) != "" {
			found[s.stringOf(f, call.Args[3])] = strings.TrimPrefix(s.last(call.Args[2]), "EventType") + ", action " + s.text(f, call.Args[4])
		}
	})
	return found
}

// events are lines "REASON: TYPE, action ACTION", and the labels of the events in the
// cluster that metrics and log lines show.
func (s *Sources) events() (lines []string) {
	found := s.Events()
	for _, reason := range sorted(found) {
		lines = append(lines, reason+": "+found[reason])
	}
	p := s.load("k8s.io/kube-scheduler/framework")
	if p == nil {
		return lines
	}
	for _, f := range p.files {
		for _, d := range f.Decls {
			lines = append(lines, labels(s, f, d)...)
		}
	}
	return lines
}

// labels are the parts of a label that a declaration names: resources and actions.
func labels(s *Sources, f *file, d ast.Decl) (lines []string) {
	g, ok := d.(*ast.GenDecl)
	if !ok {
		return nil
	}
	of := ""
	for _, spec := range g.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		if v.Type != nil {
			of = s.last(v.Type)
		}
		for i, name := range v.Names {
			switch {
			case of == "EventResource" && i < len(v.Values):
				lines = append(lines, "label, resource "+s.text(f, v.Values[i]))
			case of == "ActionType":
				lines = append(lines, "label, action "+name.Name)
			}
		}
	}
	return lines
}

var reasonName = regexp.MustCompile(`(?i)^(err)?(reason|message|err)`)

// reasons are lines "PACKAGE: text": the texts that a pod's message can have, from
// statuses and from constants that are named after reasons.
func (s *Sources) reasons() []string {
	all := map[string]bool{}
	add := func(f *file, text string) {
		if strings.Contains(text, " ") {
			all[within(f)+": "+oneLine(text)] = true
		}
	}
	plugins := slices.Concat(s.under(kubernetes+"/pkg/scheduler"), s.under("k8s.io/dynamic-resource-allocation/structured"))
	calls(plugins, func(f *file, call *ast.CallExpr, function *ast.SelectorExpr) {
		switch function.Sel.Name {
		case "NewStatus", "statusUnschedulable", "statusError":
			for _, arg := range call.Args {
				ast.Inspect(arg, func(n ast.Node) bool {
					if e, ok := n.(ast.Expr); ok {
						add(f, s.stringOf(f, e))
					}
					return true
				})
			}
		}
	})
	for _, p := range plugins {
		for name, v := range p.consts {
			if reasonName.MatchString(name) {
				add(v.in, s.text(v.in, v.expr))
			}
		}
	}
	return sorted(all)
}

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", `\n`) }
