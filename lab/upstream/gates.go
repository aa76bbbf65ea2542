package upstream

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// gatePackages declare the gates that kube-scheduler's command line knows. Those of the
// logging and metrics libraries are not among them: the libraries add them.
var gatePackages = []string{
	kubernetes + "/pkg/features", "k8s.io/apiserver/pkg/features", "k8s.io/client-go/features", "k8s.io/component-base/zpages/features",
}

// gates are lines "NAME: 1.34 alpha off, 1.36 GA on locked; needs OTHER", as
// edge/config/features reads them: the stages of each gate by version.
func (s *Sources) gates() []string {
	specs, needs := map[string]string{}, map[string][]string{}
	for _, path := range gatePackages {
		p := s.load(path)
		if p == nil {
			continue
		}
		for _, f := range p.files {
			ast.Inspect(f.File, func(n ast.Node) bool {
				lit, ok := n.(*ast.CompositeLit)
				if !ok {
					return true
				}
				of, ok := lit.Type.(*ast.MapType)
				if !ok || !strings.HasSuffix(types.ExprString(of.Key), "Feature") {
					return true
				}
				for _, e := range lit.Elts {
					kv := e.(*ast.KeyValueExpr)
					name := s.text(f, kv.Key)
					switch list, is := kv.Value.(*ast.CompositeLit); {
					case !is:
					case strings.HasSuffix(types.ExprString(of.Value), "VersionedSpecs"):
						specs[name] = s.stages(f, list)
					default:
						for _, other := range list.Elts {
							needs[name] = append(needs[name], s.text(f, other))
						}
					}
				}
				return false
			})
		}
	}
	var lines []string
	for _, name := range sorted(specs) {
		line := name + ": " + specs[name]
		if len(needs[name]) > 0 {
			slices.Sort(needs[name])
			line += "; needs " + strings.Join(needs[name], " ")
		}
		lines = append(lines, line)
	}
	return lines
}

// stages is the history of a gate: "1.34 alpha off, 1.36 GA on locked".
func (s *Sources) stages(f *file, list *ast.CompositeLit) string {
	var all []string
	for _, e := range list.Elts {
		lit, ok := e.(*ast.CompositeLit)
		if !ok {
			continue
		}
		spec := fields(lit)
		stage := s.last(spec["PreRelease"])
		if stage != "GA" {
			stage = strings.ToLower(stage)
		}
		text := fmt.Sprintf("%s %s %s", s.text(f, spec["Version"]), stage, map[bool]string{true: "on", false: "off"}[s.last(spec["Default"]) == "true"])
		if s.last(spec["LockToDefault"]) == "true" {
			text += " locked"
		}
		if e := spec["MinCompatibilityVersion"]; e != nil {
			text += " min-compatibility " + s.text(f, e)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// last returns the last name of an expression, "" without one.
func (s *Sources) last(e ast.Expr) string {
	if e == nil {
		return ""
	}
	name := types.ExprString(e)
	return name[strings.LastIndex(name, ".")+1:]
}

// Gates returns the gates that kube-scheduler's own code reads, each with the packages
// that do, within pkg/scheduler or cmd/kube-scheduler.
func (s *Sources) Gates() map[string][]string {
	read := map[string][]string{}
	calls(s.scheduler(), func(f *file, call *ast.CallExpr, function *ast.SelectorExpr) {
		if function.Sel.Name != "Enabled" {
			return
		}
		for _, arg := range call.Args {
			sel, ok := arg.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			if x, ok := sel.X.(*ast.Ident); !ok || !strings.HasSuffix(f.imports[x.Name], "features") {
				continue
			}
			name, where := s.text(f, sel), within(f)
			if !slices.Contains(read[name], where) {
				read[name] = append(read[name], where)
			}
		}
	})
	return read
}

// within is the folder of a file without what all have in front.
func within(f *file) string {
	dir := strings.TrimPrefix(f.pkg.path, kubernetes+"/")
	dir = strings.TrimPrefix(dir, "pkg/scheduler/")
	return strings.TrimPrefix(dir, "framework/plugins/")
}

// readGates are lines "NAME: package, package".
func (s *Sources) readGates() []string {
	read := s.Gates()
	var lines []string
	for _, name := range sorted(read) {
		slices.Sort(read[name])
		lines = append(lines, name+": "+strings.Join(read[name], ", "))
	}
	return lines
}
