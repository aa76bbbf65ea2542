package upstream

import (
	"go/ast"
	"go/types"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// configuration are lines "TYPE.field: type" of KubeSchedulerConfiguration, and lines
// "default of TYPE.Field: value, under GATE" of what is filled in.
func (s *Sources) configuration() []string {
	var lines []string
	for _, path := range []string{"k8s.io/kube-scheduler/config/v1", "k8s.io/component-base/config/v1alpha1"} {
		if p := s.load(path); p != nil {
			for _, f := range p.files {
				lines = append(lines, jsonFields(f)...)
			}
		}
	}
	for _, path := range []string{kubernetes + "/pkg/scheduler/apis/config/v1", "k8s.io/component-base/config/v1alpha1"} {
		if p := s.load(path); p != nil {
			lines = append(lines, s.defaults(p)...)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// jsonFields are the fields of the structs of a file that have a name in JSON.
func jsonFields(f *file) (lines []string) {
	ast.Inspect(f.File, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		st, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range st.Fields.List {
			if field.Tag == nil {
				continue
			}
			tag, _ := strconv.Unquote(field.Tag.Value)
			name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
			if name != "" {
				lines = append(lines, spec.Name.Name+"."+name+": "+types.ExprString(field.Type))
			}
		}
		return true
	})
	return lines
}

var defaulting = regexp.MustCompile(`^(SetDefaults_|RecommendedDefault)`)

// defaults are what the defaulting functions of a package set.
func (s *Sources) defaults(p *pkg) (lines []string) {
	functions([]*pkg{p}, func(f *file, d *ast.FuncDecl) {
		if !defaulting.MatchString(d.Name.Name) {
			return
		}
		of := defaulting.ReplaceAllString(d.Name.Name, "")
		s.guarded(f, d.Body, "", func(n ast.Node, gate string) {
			a, ok := n.(*ast.AssignStmt)
			if !ok || len(a.Lhs) != 1 || a.Tok.String() != "=" {
				return
			}
			_, field, ok := strings.Cut(types.ExprString(a.Lhs[0]), ".")
			if !ok {
				return
			}
			line := "default of " + of + "." + field + ": " + s.text(f, a.Rhs[0])
			if gate != "" {
				line += ", under " + gate
			}
			lines = append(lines, line)
		})
	})
	return lines
}

// flagFiles have the flags of kube-scheduler's command line.
var flagFiles = regexp.MustCompile(`^(cmd/kube-scheduler/|pkg/server/options/(serving|authentication|authorization)[a-z_]*\.go|logs/api/|metrics/|compatibility/|config/options/|version/|cli/globalflag/)`)

var flagCall = regexp.MustCompile(`^(Bool|String|Int|Int32|Int64|Uint|Float32|Float64|Duration|StringSlice|StringArray|Int32Slice|IP|StringToString)?(Var|VarP|VarPF)$`)

// flags are lines "--name", with "deprecated" and the reason where it is.
func (s *Sources) flags() []string {
	all := map[string]string{}
	packages := slices.Concat(s.under(kubernetes+"/cmd/kube-scheduler"), s.under("k8s.io/apiserver/pkg/server/options"), s.under("k8s.io/component-base"))
	calls(packages, func(f *file, call *ast.CallExpr, function *ast.SelectorExpr) {
		if !flagFiles.MatchString(f.path) || len(call.Args) < 2 {
			return
		}
		switch {
		case flagCall.MatchString(function.Sel.Name) && isName(s.text(f, call.Args[1])):
			all["--"+s.text(f, call.Args[1])] += ""
		case function.Sel.Name == "MarkDeprecated":
			all["--"+s.text(f, call.Args[0])] = ": deprecated, " + oneLine(s.text(f, call.Args[1]))
		}
	})
	var lines []string
	for _, name := range sorted(all) {
		lines = append(lines, name+all[name])
	}
	return lines
}

var flagName = regexp.MustCompile(`^[a-z][a-z0-9-]+$`)

func isName(text string) bool { return flagName.MatchString(text) }
