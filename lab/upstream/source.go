package upstream

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const kubernetes = "k8s.io/kubernetes"

// libraries are the other modules that kube-scheduler consists of: those that decide or
// that declare what it shows.
var libraries = []string{
	"k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiserver", "k8s.io/client-go", "k8s.io/component-base", "k8s.io/component-helpers",
	"k8s.io/dynamic-resource-allocation", "k8s.io/kube-scheduler",
}

// Sources are the modules of one version of Kubernetes. They belong to one caller.
type Sources struct {
	Version string
	// Versions is, for each module that was found, its version.
	Versions map[string]string
	// Missing says, for each other module, why.
	Missing map[string]string

	dirs     map[string]string // by module
	packages map[string]*pkg   // by import path; nil where none was found
}

// Load finds the modules of a version ("v1.37.2"), and downloads those that the module
// cache lacks. Of a pre-release it takes, for a library that has not this version, the
// one before it in the same minor: not all are published each time.
func Load(version string) (*Sources, error) {
	minor, ok := strings.CutPrefix(version, "v1.")
	if !ok {
		return nil, fmt.Errorf("%q is no version of Kubernetes: v1.37.2 is one", version)
	}
	s := &Sources{Version: version, Versions: map[string]string{}, Missing: map[string]string{}, dirs: map[string]string{}, packages: map[string]*pkg{}}
	s.find(kubernetes, version)
	for _, module := range libraries {
		s.find(module, "v0."+minor)
	}
	if len(s.dirs) == 0 {
		return nil, fmt.Errorf("no module of %s can be had: %s", version, s.Missing[kubernetes])
	}
	return s, nil
}

// Without returns the sources without some modules: for a comparison with a version that
// lacks them.
func (s *Sources) Without(modules map[string]string) *Sources {
	rest := &Sources{Version: s.Version, Versions: maps.Clone(s.Versions), Missing: maps.Clone(s.Missing), dirs: maps.Clone(s.dirs), packages: map[string]*pkg{}}
	for module, why := range modules {
		rest.Missing[module] = why
		delete(rest.Versions, module)
		delete(rest.dirs, module)
	}
	return rest
}

// find records where the module lies, or why it cannot be had.
func (s *Sources) find(module, version string) {
	dir, err := download(module, version)
	if err != nil && strings.Contains(version, "-") {
		if before := published(module, version); before != "" {
			version = before
			dir, err = download(module, version)
		}
	}
	if err != nil {
		s.Missing[module] = err.Error()
		return
	}
	s.Versions[module], s.dirs[module] = version, dir
}

// download returns the folder of a module in the module cache. A module that needs a newer
// Go than the one at hand is read all the same: go fetches that one, too.
func download(module, version string) (string, error) {
	get := exec.Command("go", "mod", "download", "-json", module+"@"+version)
	get.Env = append(os.Environ(), "GOTOOLCHAIN=auto")
	out, err := get.Output()
	var answer struct{ Dir, Error string }
	if e := json.Unmarshal(out, &answer); e != nil {
		return "", fmt.Errorf("go mod download %s@%s: %w", module, version, err)
	}
	if answer.Dir == "" {
		return "", fmt.Errorf("%s", answer.Error)
	}
	return answer.Dir, nil
}

// published returns the last version that the proxy lists before the given one in its
// minor, "" if there is none.
func published(module, version string) string {
	out, err := exec.Command("go", "list", "-m", "-versions", "-f", "{{join .Versions \"\\n\"}}", module).Output()
	if err != nil {
		return ""
	}
	series, _, _ := strings.Cut(version, "-") // v0.38.0
	last := ""
	for v := range strings.Lines(string(out)) {
		if v = strings.TrimSpace(v); strings.HasPrefix(v, series+"-") && v < version {
			last = v
		}
	}
	return last
}

// pkg is a package of the sources: its files without tests, and its constants.
type pkg struct {
	path   string
	files  []*file
	consts map[string]value
}

// file is a source file with the import paths of the names that it uses.
type file struct {
	*ast.File
	path    string // within the module, with slashes
	pkg     *pkg
	imports map[string]string
}

// value is the expression that a constant or variable is declared with.
type value struct {
	in   *file
	expr ast.Expr
}

// load returns the package of an import path, nil if the sources do not have it.
func (s *Sources) load(path string) *pkg {
	if p, known := s.packages[path]; known {
		return p
	}
	s.packages[path] = nil
	for module, root := range s.dirs {
		if rest, ok := strings.CutPrefix(path, module); ok && (rest == "" || rest[0] == '/') {
			s.packages[path] = parsePackage(path, root, filepath.Join(root, rest))
		}
	}
	return s.packages[path]
}

// parsePackage returns the package with that path in the folder dir, nil if there is none.
// Tests are left out. Files are named relative to root, the folder of the module.
func parsePackage(path, root, dir string) *pkg {
	p := &pkg{path: path, consts: map[string]value{}}
	names, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		short, _ := filepath.Rel(root, name)
		f := &file{File: parsed, path: filepath.ToSlash(short), pkg: p, imports: map[string]string{}}
		for _, spec := range parsed.Imports {
			f.addImport(spec)
		}
		p.files = append(p.files, f)
		f.declare()
	}
	if len(p.files) == 0 {
		return nil
	}
	return p
}

// addImport records the import's path under the name that the file has for it.
func (f *file) addImport(spec *ast.ImportSpec) {
	path := unquote(spec.Path.Value)
	name := path[strings.LastIndex(path, "/")+1:]
	if spec.Name != nil {
		name = spec.Name.Name
	}
	f.imports[name] = path
}

// declare records the constants and variables of the file that have a value.
func (f *file) declare() {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range g.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && len(v.Values) == len(v.Names) {
				for i, name := range v.Names {
					f.pkg.consts[name.Name] = value{f, v.Values[i]}
				}
			}
		}
	}
}

// under returns the packages in a folder of a module and below, in order of their
// paths, without those of tests.
func (s *Sources) under(path string) (list []*pkg) {
	for module, root := range s.dirs {
		rest, ok := strings.CutPrefix(path+"/", module+"/")
		if !ok {
			continue
		}
		_ = filepath.WalkDir(filepath.Join(root, rest), func(dir string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil
			}
			if d.Name() == "testing" || d.Name() == "testdata" || d.Name() == "test" {
				return fs.SkipDir
			}
			short, _ := filepath.Rel(root, dir)
			if p := s.load(module + "/" + filepath.ToSlash(short)); p != nil {
				list = append(list, p)
			}
			return nil
		})
	}
	return list
}

// scheduler are the packages of kube-scheduler's own code.
func (s *Sources) scheduler() []*pkg {
	return slices.Concat(s.under(kubernetes+"/cmd/kube-scheduler"), s.under(kubernetes+"/pkg/scheduler"))
}

// calls calls see with each call of a function of a package or value.
func calls(packages []*pkg, see func(f *file, call *ast.CallExpr, function *ast.SelectorExpr)) {
	for _, p := range packages {
		for _, f := range p.files {
			ast.Inspect(f.File, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if function, ok := call.Fun.(*ast.SelectorExpr); ok {
						see(f, call, function)
					}
				}
				return true
			})
		}
	}
}

// functions calls see with each function of the packages that has a body.
func functions(packages []*pkg, see func(f *file, d *ast.FuncDecl)) {
	for _, p := range packages {
		for _, f := range p.files {
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
					see(f, d)
				}
			}
		}
	}
}

// fields returns the values of a composite literal by key. A literal without keys has
// none.
func fields(lit *ast.CompositeLit) map[string]ast.Expr {
	all := map[string]ast.Expr{}
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok {
				all[key.Name] = kv.Value
			}
		}
	}
	return all
}

// sorted returns the keys in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func unquote(lit string) string {
	return constant.StringVal(constant.MakeFromLiteral(lit, token.STRING, 0))
}

// Modules returns the modules of a version.
func Modules() []string { return append([]string{kubernetes}, libraries...) }

// Linked returns the version of Kubernetes that the module in the working directory
// requires.
func Linked() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", kubernetes).Output()
	if err != nil {
		return "", fmt.Errorf("go list -m %s: %w", kubernetes, err)
	}
	return strings.TrimSpace(string(out)), nil
}
