package berth

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each function that the walk in docs/overview.md names is called by one that it named
// before. Machine.Step is the door.
func TestOverviewWalksAlongCalls(t *testing.T) {
	text, err := os.ReadFile("docs/overview.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walk, _ := strings.Cut(string(text), "## A walk")
	walk, _, _ = strings.Cut(walk, "### ")
	bodies := map[string][]map[string]bool{} // by name as the walk has it: what the functions of that name mention
	for _, pkg := range []string{"core/machine", "core/engine", "core/queue", "core/foresight"} {
		mentions(t, pkg, bodies)
	}
	steps := 0
	mentioned := map[string]bool{"Step": true}
	for _, span := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(walk, -1) {
		of, isFunction := bodies[span[1]]
		if !isFunction {
			continue
		}
		if _, name, qualified := strings.Cut(span[1], "."); !mentioned[span[1]] && !(qualified && mentioned[name]) {
			t.Errorf("the walk comes to %s, which no function calls that it named before", span[1])
		}
		for _, body := range of {
			maps.Copy(mentioned, body)
		}
		steps++
	}
	if steps < 30 {
		t.Errorf("the walk has %d functions; where are they?", steps)
	}
}

// mentions adds the names that the functions of the package mention in their bodies, under
// the function's name: alone, after the package's name, and after its type's.
func mentions(t *testing.T, pkg string, into map[string][]map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(pkg, len(files), err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			d, ok := d.(*ast.FuncDecl)
			if !ok || d.Body == nil {
				continue
			}
			body := map[string]bool{}
			ast.Inspect(d.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					body[id.Name] = true
				}
				return true
			})
			name := d.Name.Name
			for _, as := range []string{name, filepath.Base(pkg) + "." + name, receiver(d) + "." + name} {
				into[as] = append(into[as], body)
			}
		}
	}
}

// The walk in docs/overview.md names functions, types and files that are there, and
// its table of folders names folders that are there, and all of core.
func TestOverviewNamesWhatIsThere(t *testing.T) {
	text, err := os.ReadFile("docs/overview.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walk, found := strings.Cut(string(text), "## A walk")
	walk, _, ends := strings.Cut(walk, "### ")
	table, _, _ := strings.Cut(string(text), "## A walk")
	if !found || !ends {
		t.Fatal("docs/overview.md has no walk")
	}
	declared := map[string]bool{}
	for _, pkg := range []string{"core/machine", "core/engine", "core/queue", "core/foresight", "edge/kube", "edge/loop"} {
		declarations(t, pkg, declared)
	}
	names := 0
	for _, span := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(walk, -1) {
		name := span[1]
		switch {
		case strings.HasSuffix(name, ".go"):
			name = filepath.Join("core/machine", name)
			fallthrough
		case strings.Contains(name, "/"):
			if _, err := os.Stat(name); err != nil {
				t.Errorf("the walk names %s: %v", name, err)
			}
		case !declared[name]:
			t.Errorf("the walk names %s, which is not there", name)
		}
		names++
	}
	if names < 30 {
		t.Errorf("the walk has %d names; where are they?", names)
	}
	for _, span := range regexp.MustCompile("`([a-z/-]+)`").FindAllStringSubmatch(table, -1) {
		if top, _, sub := strings.Cut(span[1], "/"); sub && top != "" {
			if _, err := os.Stat(span[1]); err != nil {
				t.Errorf("the table of folders: %v", err)
			}
		}
	}
	for _, pattern := range []string{"core/*/*.go", "core/index/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			if pkg := filepath.ToSlash(filepath.Dir(file)); pkg != "core/index" && !strings.Contains(table, "`"+pkg+"`") {
				t.Errorf("the table of folders does not have %s", pkg)
			}
		}
	}
}

// declarations notes the names of a package's functions and types: alone, after the
// package's name, and methods after their type's.
func declarations(t *testing.T, pkg string, into map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(pkg, len(files), err)
	}
	note := func(name, of string) {
		into[name], into[filepath.Base(pkg)+"."+name] = true, true
		if of != "" {
			into[of+"."+name] = true
		}
	}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				note(d.Name.Name, receiver(d))
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						note(s.Name.Name, "")
					}
				}
			}
		}
	}
}

// receiver is the name of a method's type, "" of a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}
