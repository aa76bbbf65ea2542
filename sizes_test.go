package berth

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	maxFunction = 100 // lines
	p90Function = 35
	maxFile     = 500
	maxMethods  = 60 // of a type
	maxFields   = 40 // of a struct; an embedded one of the same package counts with its own
)

// large are the types beyond maxMethods or maxFields, by package and name. Each must be
// as large as it is said here: whoever makes one smaller writes the new figures down,
// and whoever makes one larger has a reason that a reviewer accepts.
var large = map[string]size{
	"core/machine.Machine": {33, 68}, // with the types that it is composed of
	"core/queue.Queue":     {75, 16}, // with the groups of pods that wait together
	"core/table.Table":     {75, 19},
	"edge/fix.search":      {118, 21},
	"edge/manifest.Set":    {40, 43},
	"edge/metrics.Metrics": {39, 50},
	"edge/why.facts":       {74, 8},
	"lab/attack.stage":     {67, 12},
}

// size counts the methods and fields of a type.
type size struct{ methods, fields int }

// The code keeps the sizes that CONTRIBUTING.md promises.
func TestSizes(t *testing.T) {
	var lengths []int
	sizes := map[string]size{}
	structs := map[string]*ast.StructType{}
	eachSource(t, func(path string, set *token.FileSet, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") || ast.IsGenerated(file) {
			return
		}
		if n := set.File(file.Pos()).LineCount(); n > maxFile {
			t.Errorf("%s has %d lines, more than %d", path, n, maxFile)
		}
		name := func(n string) string { return filepath.ToSlash(filepath.Dir(path)) + "." + n }
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				lines := set.Position(n.End()).Line - set.Position(n.Pos()).Line + 1
				if lengths = append(lengths, lines); lines > maxFunction {
					t.Errorf("%s: %s has %d lines, more than %d", path, n.Name.Name, lines, maxFunction)
				}
				if n.Recv != nil {
					of := name(typeName(n.Recv.List[0].Type))
					s := sizes[of]
					s.methods++
					sizes[of] = s
				}
				return false
			case *ast.TypeSpec:
				if s, is := n.Type.(*ast.StructType); is {
					structs[name(n.Name.Name)] = s
				}
			}
			return true
		})
	})
	for name, s := range structs {
		size := sizes[name]
		size.fields = fieldsOf(name, s, structs)
		sizes[name] = size
	}
	checkTypes(t, sizes)
	slices.Sort(lengths)
	if p90 := lengths[len(lengths)*9/10]; p90 > p90Function {
		t.Errorf("one function of ten has more than %d lines; at most %d are meant", p90, p90Function)
	}
}

func checkTypes(t *testing.T, sizes map[string]size) {
	for name, s := range sizes {
		if over := s.methods > maxMethods || s.fields > maxFields; over && large[name] != s {
			t.Errorf("%s has %d methods and %d fields; %d and %d are meant, or what `large` says: %v", name, s.methods, s.fields, maxMethods, maxFields, large[name])
		} else if _, listed := large[name]; listed && !over {
			t.Errorf("%s has no need to be in `large`: %v", name, s)
		}
	}
	for name := range large {
		if _, there := sizes[name]; !there {
			t.Errorf("`large` names %s, which is not there", name)
		}
	}
}

// fieldsOf counts the fields of a struct, those of embedded structs of its package instead
// of the embedding.
func fieldsOf(name string, s *ast.StructType, structs map[string]*ast.StructType) (n int) {
	pkg := name[:strings.LastIndexByte(name, '.')+1]
	for _, f := range s.Fields.List {
		embedded := pkg + typeName(f.Type)
		switch inner := structs[embedded]; {
		case len(f.Names) > 0:
			n += len(f.Names)
		case inner != nil:
			n += fieldsOf(embedded, inner, structs)
		default:
			n++
		}
	}
	return n
}

// byAnother matches a comment that explains a function by another one, as in "passes is
// fits for rows that have changed".
var byAnother = regexp.MustCompile(`^\w+ (?:is|does) (?:the \w+'s )?(\w+)(?:'s)?,? (?:for|except|but|where|without|with|of|that|save|besides|as|in)\b`)

// A comment says what a function does, and needs no other function for it.
func TestCommentsStandAlone(t *testing.T) {
	type doc struct{ path, function, by, text string }
	var docs []doc
	functions := map[string]bool{} // by folder and name
	eachSource(t, func(path string, _ *token.FileSet, file *ast.File) {
		folder := filepath.Dir(path)
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || strings.HasSuffix(path, "_test.go") {
				continue
			}
			functions[filepath.Join(folder, f.Name.Name)] = true
			text := strings.Join(strings.Fields(f.Doc.Text()), " ")
			if m := byAnother.FindStringSubmatch(text); m != nil && m[1] != f.Name.Name {
				docs = append(docs, doc{path, f.Name.Name, filepath.Join(folder, m[1]), text})
			}
		}
	})
	for _, d := range docs {
		if functions[d.by] {
			t.Errorf("%s: %s is explained by another function: %s", d.path, d.function, d.text)
		}
	}
}

// sleepers names the test files without testing/synctest that may sleep, and why.
var sleepers = map[string]string{
	"edge/daemon/reach_test.go":       "a benchmark: it measures real time",
	"edge/kube/audit_test.go":         "audited starts virtual time",
	"edge/kube/shown_test.go":         "follows starts virtual time",
	"lab/bench/steady_test.go":        "a deadline, which no passing test reaches",
	"edge/kube/serverversion_test.go": "polls a server in real time until it answers so",
	"lab/e2e/field_test.go":           "polls an API server in real time",
	"lab/e2e/scene_test.go":           "polls an API server in real time",
	"lab/e2e/skew_test.go":            "polls an API server in real time",
	"lab/e2e/binding_test.go":         "its webhook is slow on purpose: an API server keeps real time",
	"tool/browser_test.go":            "a deadline, which no passing test reaches",
	"tool/view_bench_test.go":         "a benchmark: it measures real time",
	"tool/view_states_test.go":        "its daemon polls what a browser is to see, in real time",
}

// sleeping are the functions of package time by which a test sleeps.
var sleeping = map[string]bool{"Sleep": true, "After": true, "NewTicker": true, "NewTimer": true, "Tick": true}

// No test sleeps in real time: it uses testing/synctest or waits for a condition.
func TestNoTestSleeps(t *testing.T) {
	eachSource(t, func(path string, _ *token.FileSet, file *ast.File) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		sleeps, synctest := false, false
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				x, is := n.X.(*ast.Ident)
				sleeps = sleeps || is && x.Name == "time" && sleeping[n.Sel.Name]
			case *ast.ImportSpec:
				synctest = synctest || n.Path.Value == `"testing/synctest"`
			}
			return true
		})
		_, known := sleepers[filepath.ToSlash(path)]
		switch {
		case sleeps && !synctest && !known:
			t.Errorf("%s sleeps and does not import testing/synctest", path)
		case known && (!sleeps || synctest):
			t.Errorf("`sleepers` names %s for nothing", path)
		}
	})
}

// eachSource parses every Go file of every module here.
func eachSource(t *testing.T, f func(path string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.Contains(filepath.ToSlash(path), "/testdata/") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, src, parser.ParseComments)
		if err != nil {
			return err
		}
		f(path, set, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// typeName returns the name of a type of the same package, without pointer and type
// parameters.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "" // of another package
}
