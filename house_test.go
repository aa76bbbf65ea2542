package berth

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/berth-scheduler/berth/"

// layers lists the core's packages from the innermost outwards; a package may
// import only from layers before its own. Plugins stand beside the framework
// that they are written against, and nobody in core imports them.
var layers = [][]string{
	{"core/recovered"},
	{"core/resource", "core/match", "core/par", "core/shape"},
	{"core/object"},
	{"core/group"},
	{"core/table", "core/decision"},
	{"core/index/devicepools", "core/index/freevolumes", "core/index/images", "core/index/nodelabels", "core/index/nodetaints", "core/index/priorities", "core/index/volumes", "core/quota"},
	{"core/index/selected"},
	{"core/draw"},
	{"core/sums"},
	{"core/headroom", "core/ranking", "core/domain"},
	{"core/framework", "core/devices"},
	{"core/profile", "core/explain", "core/plugins/names", "core/plugins/feature", "core/preempt", "core/answers"},
	{"core/classes", "core/nominations"},
	{"core/engine", "core/queue"},
	{"core/foresight"},
	{"core/machine"},
}

// impure names what the core may not touch: I/O, clocks, randomness, logs.
var impure = map[string]string{
	"os": "I/O", "io/ioutil": "I/O", "net": "I/O", "net/http": "I/O", "os/exec": "I/O",
	"math/rand": "a random source", "math/rand/v2": "a random source", "crypto/rand": "a random source",
	"hash/maphash": "a random source", "log": "a log", "log/slog": "a log", "context": "a context",
	"sync": "a lock", "sync/atomic": "an atomic",
}

// impureCalls names the functions of pure packages that read the world.
var impureCalls = map[string]bool{
	"time.Now": true, "time.Since": true, "time.Until": true, "time.After": true, "time.AfterFunc": true,
	"time.NewTimer": true, "time.NewTicker": true, "time.Tick": true, "time.Sleep": true,
	"fmt.Print": true, "fmt.Println": true, "fmt.Printf": true,
}

func TestImportsPointInward(t *testing.T) {
	rank := map[string]int{}
	for i, layer := range layers {
		for _, p := range layer {
			rank[p] = i
		}
	}
	eachFile(t, ".", func(path string, f *ast.File) {
		pkg := filepath.ToSlash(filepath.Dir(path))
		for _, spec := range f.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if why := wrongImport(rank, pkg, imported); why != "" {
				t.Errorf("%s imports %s: %s", path, imported, why)
			}
		}
	})
}

func wrongImport(rank map[string]int, pkg, imported string) string {
	if strings.HasPrefix(imported, "k8s.io/kubernetes") && !strings.HasPrefix(pkg, "lab") {
		return "only the lab may link kube-scheduler"
	}
	if !strings.HasPrefix(pkg, "core/") {
		if strings.HasPrefix(imported, module+"cmd/") || (strings.HasPrefix(imported, module+"lab/") && !strings.HasPrefix(pkg, "lab")) {
			return "nobody imports a main or the lab"
		}
		if strings.HasPrefix(pkg, "edge/") && strings.HasPrefix(imported, module+"sim") {
			return "the daemon does not simulate"
		}
		if imported == module+"tool" && pkg != "scheduler" {
			return "package scheduler is the door to the tool"
		}
		if imported == module+"scheduler" && pkg != "cmd/berth-scheduler" && pkg != "cmd/berth" && !strings.HasPrefix(pkg, "examples/") && !strings.HasPrefix(pkg, "lab/cmd/") {
			return "only a main builds a scheduler"
		}
		return ""
	}
	if what, ok := impure[imported]; ok && !(pkg == "core/par" && strings.HasPrefix(imported, "sync")) {
		return "core is pure; this is " + what
	}
	for _, allowed := range []string{"k8s.io/client-go", "k8s.io/component-base", "k8s.io/apiserver", "k8s.io/klog"} {
		if strings.HasPrefix(imported, allowed) {
			return "core does no I/O"
		}
	}
	local, ours := strings.CutPrefix(imported, module)
	if !ours {
		return ""
	}
	if !strings.HasPrefix(local, "core/") {
		return "this points outward"
	}
	if plugin(local) {
		if pkg == "core/plugins" {
			return ""
		}
		return "nobody in core imports a plugin"
	}
	from, known := rank[pkg]
	if plugin(pkg) || pkg == "core/plugins" {
		from, known = rank["core/engine"], true
	}
	to, knownTo := rank[local]
	switch {
	case !known || !knownTo:
		return "the package has no layer yet; give it one in house_test.go"
	case to >= from:
		return "this points outward, or sideways"
	}
	return ""
}

func plugin(pkg string) bool {
	return strings.HasPrefix(pkg, "core/plugins/") && pkg != "core/plugins/names" && pkg != "core/plugins/feature"
}

// TestCoreIsPure fails on a clock, a goroutine outside par, and a walk over a
// map in Go's random order that does not say, in a comment on the line before
// or on its own line, why any order will do ("any order: ...").
func TestCoreIsPure(t *testing.T) {
	for _, pkg := range loadCore(t) {
		for _, f := range pkg.Syntax {
			c := coreFile{t: t, pkg: pkg, excused: excuses(pkg.Fset, f)}
			ast.Inspect(f, c.inspect)
		}
	}
}

func loadCore(t *testing.T) []*packages.Package {
	t.Helper()
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps | packages.NeedExportFile,
	}, "./core/...")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pkgs {
		for _, e := range p.Errors {
			t.Fatal(e)
		}
	}
	return pkgs
}

// excuses lists the lines that an "any order" comment speaks for: its own and
// the next.
func excuses(fset *token.FileSet, f *ast.File) map[int]bool {
	lines := map[int]bool{}
	for _, group := range f.Comments {
		if strings.Contains(group.Text(), "any order") {
			last := fset.Position(group.End()).Line
			lines[last], lines[last+1] = true, true
		}
	}
	return lines
}

type coreFile struct {
	t       *testing.T
	pkg     *packages.Package
	excused map[int]bool
}

func (c *coreFile) inspect(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		if !strings.HasSuffix(c.pkg.PkgPath, "core/par") {
			c.errorf(n, "a goroutine outside core/par")
		}
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok && impureCalls[x.Name+"."+n.Sel.Name] {
			c.errorf(n, "calls "+x.Name+"."+n.Sel.Name)
		}
	case *ast.RangeStmt:
		if c.walksMap(n.X) && !c.excused[c.pkg.Fset.Position(n.Pos()).Line] {
			c.errorf(n, "walks a map unsorted and does not say why any order will do")
		}
	}
	return true
}

// walksMap tells whether x is a map, or maps.Keys, Values or All of one.
func (c *coreFile) walksMap(x ast.Expr) bool {
	if _, ok := c.pkg.TypesInfo.TypeOf(x).Underlying().(*types.Map); ok {
		return true
	}
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, ok := sel.X.(*ast.Ident)
	return ok && from.Name == "maps"
}

func (c *coreFile) errorf(n ast.Node, what string) {
	c.t.Errorf("%s: %s", c.pkg.Fset.Position(n.Pos()), what)
}

func TestEveryPackageHasADoc(t *testing.T) {
	documented := map[string]bool{}
	eachFile(t, ".", func(path string, f *ast.File) {
		dir := filepath.Dir(path)
		documented[dir] = documented[dir] || f.Doc != nil
	})
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment", dir)
		}
	}
}

// texts are the packages that write text for people.
var texts = []string{"tool/", "edge/why/", "sim/report/", "sim/replay/text.go", "edge/daemon/dump.go", "lab/up/"}

// TestTextIsEscaped fails where one of them formats onto a writer by itself: only
// terminal.Fprintf escapes the values that come from outside.
func TestTextIsEscaped(t *testing.T) {
	eachFile(t, ".", func(path string, f *ast.File) {
		if !slices.ContainsFunc(texts, func(p string) bool { return strings.HasPrefix(filepath.ToSlash(path), p) }) {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if call, is := n.(*ast.SelectorExpr); is {
				if x, is := call.X.(*ast.Ident); is && x.Name == "fmt" && (strings.HasPrefix(call.Sel.Name, "Fprint") || strings.HasPrefix(call.Sel.Name, "Print")) {
					t.Errorf("%s calls fmt.%s, which escapes nothing", path, call.Sel.Name)
				}
			}
			return true
		})
	})
}

// eachFile parses every Go file below dir that is not a test.
func eachFile(t *testing.T, dir string, f func(path string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		f(path, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
