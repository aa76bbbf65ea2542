package upstream

import (
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// plugins are: the default plugins in their order, with their weights and the gates they
// are under, in one line; then lines "NAME: Interface, Interface", the parts of the
// plugin contract that each implements.
func (s *Sources) plugins() []string {
	lines, parts := []string{"default order: " + strings.Join(s.defaultPlugins(), ", ")}, s.implemented()
	for _, name := range sorted(parts) {
		lines = append(lines, name+": "+strings.Join(parts[name], ", "))
	}
	return lines
}

// defaultPlugins are the plugins in the order in which the source has them: those under a
// gate follow, wherever they are put.
func (s *Sources) defaultPlugins() (order []string) {
	p := s.load(kubernetes + "/pkg/scheduler/apis/config/v1")
	if p == nil {
		return nil
	}
	gates := map[string]string{} // by function
	functions([]*pkg{p}, func(f *file, d *ast.FuncDecl) {
		s.guarded(f, d.Body, "", func(n ast.Node, gate string) {
			if call, ok := n.(*ast.CallExpr); ok && gate != "" {
				gates[s.last(call.Fun)] = gate
			}
		})
	})
	functions([]*pkg{p}, func(f *file, d *ast.FuncDecl) {
		if !strings.HasSuffix(f.path, "/default_plugins.go") {
			return
		}
		s.guarded(f, d.Body, gates[d.Name.Name], func(n ast.Node, gate string) {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || fields(lit)["Name"] == nil {
				return
			}
			text := s.text(f, fields(lit)["Name"])
			if text == "Name" { // a plugin of the user
				return
			}
			if w := fields(lit)["Weight"]; w != nil {
				text += "=" + s.text(f, w)
			}
			if gate != "" {
				text += " under " + gate
			}
			if !slices.Contains(order, text) {
				order = append(order, text)
			}
		})
	})
	return order
}

// plugin is a type with methods in a package of plugins.
type plugin struct {
	name     string
	methods  map[string]*ast.FuncDecl
	embedded []string
	in       *file
}

// pluginTypes returns the types of kube-scheduler's plugins by name of the plugin.
func (s *Sources) pluginTypes() map[string]*plugin {
	all := map[string]*plugin{}
	for _, p := range s.under(kubernetes + "/pkg/scheduler/framework/plugins") {
		ofPackage := map[string]*plugin{}
		functions([]*pkg{p}, func(f *file, d *ast.FuncDecl) {
			if d.Recv == nil {
				return
			}
			name := strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*")
			if ofPackage[name] == nil {
				ofPackage[name] = &plugin{methods: map[string]*ast.FuncDecl{}, in: f}
			}
			ofPackage[name].methods[d.Name.Name] = d
			if d.Name.Name == "Name" && len(d.Body.List) == 1 {
				if r, ok := d.Body.List[0].(*ast.ReturnStmt); ok {
					ofPackage[name].name, ofPackage[name].in = s.text(f, r.Results[0]), f
				}
			}
		})
		embed(p, ofPackage)
		for _, t := range ofPackage {
			for _, e := range t.embedded {
				if from := ofPackage[e]; from != nil {
					maps.Copy(t.methods, from.methods)
				}
			}
			if t.name != "" {
				all[t.name] = t
			}
		}
	}
	return all
}

// embed records the embedded types of the structs.
func embed(p *pkg, all map[string]*plugin) {
	for _, f := range p.files {
		ast.Inspect(f.File, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || all[spec.Name.Name] == nil {
				return true
			}
			if st, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range st.Fields.List {
					if len(field.Names) == 0 {
						all[spec.Name.Name].embedded = append(all[spec.Name.Name].embedded, strings.TrimPrefix(types.ExprString(field.Type), "*"))
					}
				}
			}
			return true
		})
	}
}

// implemented returns, by plugin, the interfaces of the contract whose methods it has.
func (s *Sources) implemented() map[string][]string {
	contract := map[string][]string{}
	s.interfaces(func(name string, methods []*ast.Field) {
		if !strings.HasSuffix(name, "Plugin") && name != "EnqueueExtensions" || name == "Plugin" {
			return
		}
		for _, m := range methods {
			if len(m.Names) == 1 {
				contract[name] = append(contract[name], m.Names[0].Name)
			}
		}
	})
	all := map[string][]string{}
	for name, t := range s.pluginTypes() {
		for _, part := range sorted(contract) {
			lacks := func(method string) bool { return t.methods[method] == nil }
			if !slices.ContainsFunc(contract[part], lacks) {
				all[name] = append(all[name], part)
			}
		}
	}
	return all
}

// interfaces calls see with each interface of the plugin contract.
func (s *Sources) interfaces(see func(name string, methods []*ast.Field)) {
	p := s.load("k8s.io/kube-scheduler/framework")
	if p == nil {
		return
	}
	for _, f := range p.files {
		ast.Inspect(f.File, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if i, ok := spec.Type.(*ast.InterfaceType); ok {
					see(spec.Name.Name, i.Methods.List)
				}
			}
			return true
		})
	}
}

// contract are lines "Interface.Method(parameters) results" of the plugin contract.
func (s *Sources) contract() (lines []string) {
	s.interfaces(func(name string, methods []*ast.Field) {
		for _, m := range methods {
			if f, ok := m.Type.(*ast.FuncType); ok && len(m.Names) == 1 {
				lines = append(lines, name+"."+m.Names[0].Name+strings.TrimPrefix(types.ExprString(f), "func"))
			} else {
				lines = append(lines, name+" has "+types.ExprString(m.Type))
			}
		}
	})
	slices.Sort(lines)
	return lines
}

// wakeups are lines "PLUGIN: Resource Action|Action": the events that each plugin
// registers, under whichever condition.
func (s *Sources) wakeups() (lines []string) {
	for name, t := range s.pluginTypes() {
		d := t.methods["EventsToRegister"]
		if d == nil {
			continue
		}
		ast.Inspect(d.Body, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || lit.Type == nil || s.last(lit.Type) != "ClusterEvent" {
				return true
			}
			event := fields(lit)
			lines = append(lines, name+": "+s.last(event["Resource"])+" "+actions(event["ActionType"]))
			return true
		})
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// actions is a set of actions without the name of their package.
func actions(e ast.Expr) string {
	if e == nil {
		return ""
	}
	if b, ok := e.(*ast.BinaryExpr); ok {
		return actions(b.X) + b.Op.String() + actions(b.Y)
	}
	text := types.ExprString(e)
	return text[strings.LastIndex(text, ".")+1:]
}
