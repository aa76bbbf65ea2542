package berth

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The walk in docs/overview.md names functions, types and files that are there, and
// its table of folders names folders that are there.
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
	for _, pkg := range []string{"core/machine", "core/engine", "core/queue", "edge/kube", "edge/loop"} {
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
