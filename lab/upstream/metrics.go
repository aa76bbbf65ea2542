package upstream

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// metricPackages make kube-scheduler's own metrics.
func (s *Sources) metricPackages() []*pkg {
	return slices.Concat(s.scheduler(), s.under("k8s.io/dynamic-resource-allocation/resourceclaim"), s.under("k8s.io/component-base/metrics"))
}

var newMetric = regexp.MustCompile(`^New(Timing)?(Counter|Gauge|Histogram|Summary)(Vec|Func|WithContext)?$`)

// metrics are lines "NAME: histogram BETA of label, label; buckets; under GATE".
func (s *Sources) metrics() []string {
	packages := s.metricPackages()
	named, under := s.metricVariables(packages), map[string]string{}
	s.registered(packages, func(variable, gate string) { under[named[variable]] = gate })
	all := map[string]string{}
	calls(packages, func(f *file, call *ast.CallExpr, function *ast.SelectorExpr) {
		name, shape := s.metric(f, call, function)
		if name == "" {
			return
		}
		if under[name] != "" {
			shape += "; under " + under[name]
		}
		all[name] = shape
	})
	var lines []string
	for _, name := range sorted(all) {
		lines = append(lines, name+": "+all[name])
	}
	return lines
}

// metric returns the name and the shape of the metric that a call makes, "" if it makes
// none.
func (s *Sources) metric(f *file, call *ast.CallExpr, function *ast.SelectorExpr) (name, shape string) {
	m := newMetric.FindStringSubmatch(function.Sel.Name)
	if m == nil || len(call.Args) == 0 {
		return "", ""
	}
	ref, ok := call.Args[0].(*ast.UnaryExpr)
	if !ok {
		return "", ""
	}
	lit, ok := ref.X.(*ast.CompositeLit)
	if !ok {
		return "", ""
	}
	opts := fields(lit)
	if opts["Name"] == nil {
		return "", ""
	}
	var parts []string
	for _, key := range []string{"Namespace", "Subsystem", "Name"} {
		if e := opts[key]; e != nil && s.text(f, e) != "" {
			parts = append(parts, s.text(f, e))
		}
	}
	shape = strings.ToLower(m[2]) + " " + s.last(opts["StabilityLevel"])
	if len(call.Args) > 1 && m[3] == "Vec" {
		shape += " of " + strings.Trim(s.text(f, call.Args[1]), "{}")
	}
	if e := opts["Buckets"]; e != nil {
		shape += "; " + s.text(f, e)
	}
	if e := opts["DeprecatedVersion"]; e != nil {
		shape += "; deprecated in " + s.text(f, e)
	}
	return strings.Join(parts, "_"), shape
}

// metricVariables returns, by variable, the name of the metric that it is set to.
func (s *Sources) metricVariables(packages []*pkg) map[string]string {
	named := map[string]string{}
	set := func(f *file, to string, e ast.Expr) {
		if call, ok := e.(*ast.CallExpr); ok {
			if function, ok := call.Fun.(*ast.SelectorExpr); ok {
				if name, _ := s.metric(f, call, function); name != "" {
					named[to] = name
				}
			}
		}
		if sel, ok := e.(*ast.SelectorExpr); ok && named[sel.Sel.Name] != "" { // a metric of another package
			named[to] = named[sel.Sel.Name]
		}
	}
	for range 2 { // the second time all of other packages are known
		for _, p := range packages {
			for variable, v := range p.consts {
				set(v.in, variable, v.expr)
			}
		}
	}
	functions(packages, func(f *file, d *ast.FuncDecl) {
		ast.Inspect(d.Body, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == 1 && len(a.Rhs) == 1 {
				if id, ok := a.Lhs[0].(*ast.Ident); ok {
					set(f, id.Name, a.Rhs[0])
				}
			}
			return true
		})
	})
	return named
}

// registered calls see with each variable that is registered under a gate.
func (s *Sources) registered(packages []*pkg, see func(variable, gate string)) {
	functions(packages, func(f *file, d *ast.FuncDecl) {
		s.guarded(f, d.Body, "", func(n ast.Node, gate string) {
			call, ok := n.(*ast.CallExpr)
			if !ok || gate == "" {
				return
			}
			if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "RegisterMetrics" {
				for _, arg := range call.Args {
					if id, ok := arg.(*ast.Ident); ok {
						see(id.Name, gate)
					}
				}
			}
		})
	})
}

// guarded calls see with each node below, and with the gates that an if around it asks
// for: "A and B", "" for none.
func (s *Sources) guarded(f *file, n ast.Node, gate string, see func(n ast.Node, gate string)) {
	ast.Inspect(n, func(n ast.Node) bool {
		if branch, ok := n.(*ast.IfStmt); ok {
			inner := gate
			ast.Inspect(branch.Cond, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && s.last(call.Fun) == "Enabled" && len(call.Args) == 1 {
					inner = strings.TrimPrefix(inner+" and "+s.text(f, call.Args[0]), " and ")
				}
				return true
			})
			s.guarded(f, branch.Body, inner, see)
			if branch.Else != nil {
				s.guarded(f, branch.Else, gate, see)
			}
			return false
		}
		if n != nil {
			see(n, gate)
		}
		return true
	})
}
