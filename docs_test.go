package berth

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// evidence finds, in a document, the end of a cell or a line, a package in
// backquotes, and the name of a test.
var evidence = regexp.MustCompile("[|\n]|`([a-z/0-9]+)`|\\b((?:Test|Fuzz)[A-Z]\\w+)")

// Tests that a document names as evidence are there. In "`core/queue`, TestHeap,
// TestNext" both tests are of core/queue; a test before any package of its cell
// may be anywhere.
func TestNamedTestsExist(t *testing.T) {
	tests := testsByPackage(t)
	for _, doc := range documents(t) {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		pkg := ""
		for _, m := range evidence.FindAllStringSubmatch(string(text), -1) {
			switch name := m[2]; {
			case m[1] != "":
				if tests[m[1]] != nil {
					pkg = m[1]
				}
			case name == "":
				pkg = ""
			case !tests[pkg][name]:
				t.Errorf("%s names %s of package %q, which is not there", doc, name, pkg)
			}
		}
	}
}

// documents returns README, the pages of docs, and the lists of testdata.
func documents(t *testing.T) []string {
	t.Helper()
	var pages []string
	for _, pattern := range []string{"docs/*.md", "testdata/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || found == nil {
			t.Fatal(pattern, err)
		}
		pages = append(pages, found...)
	}
	return append(pages, "sim/chaos/README.md", "lab/conform/README.md", "lab/suites/README.md", "edge/recording/format.md", "README.md", "CONTRIBUTING.md", "SECURITY.md", "scenarios/README.md")
}

// named finds a path of a document, and a section that a document names in another:
// "Size" in `docs/operate.md`.
var named = regexp.MustCompile("(?:\"([A-Z][^\"\n]+)\" in )?`((?:docs|testdata|deploy|examples|scenarios|bench|cmd|lab|sim|core|edge|tools)/[^`{*<: ]+)`")

// The files, folders and sections that documents name are there.
func TestNamedFilesExist(t *testing.T) {
	for _, doc := range documents(t) {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			section, path := m[1], m[2]
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s names %s, which is not there", doc, path)
				continue
			}
			if section == "" || !strings.HasSuffix(path, ".md") {
				continue
			}
			page, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !regexp.MustCompile(`(?m)^#+ `+regexp.QuoteMeta(section)).Match(page) && !strings.Contains(string(page), "**"+section) {
				t.Errorf("%s names %q in %s, which has no such section", doc, section, path)
			}
		}
	}
}

// A story in which kube-scheduler differs is named by a page of differences.
func TestDifferencesAreListed(t *testing.T) {
	var listed strings.Builder
	for _, page := range []string{"docs/deviations.md", "docs/deviations-daemon.md", "docs/deviations-groups.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		listed.Write(text)
	}
	differing := 0
	err := filepath.WalkDir("scenarios", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".txt") {
			return err
		}
		text, err := os.ReadFile(path)
		if !strings.Contains(string(text), "\ndiffers ") {
			return err
		}
		differing++
		if !strings.Contains(listed.String(), "`"+d.Name()+"`") && !strings.Contains(listed.String(), "`"+path+"`") {
			t.Errorf("no page lists the difference that %s marks", path)
		}
		return err
	})
	if err != nil || differing < 20 {
		t.Errorf("%d stories, %v", differing, err)
	}
}

// Each page of docs and docs/design begins with whom it is for. Those of docs are short enough to be
// read: what a machine can make or check stands beside its test, what is design in docs/design.
func TestPagesAreShort(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	design, none := filepath.Glob("docs/design/*.md")
	if err != nil || none != nil || len(pages) == 0 || len(design) == 0 {
		t.Fatal(pages, err, design, none)
	}
	all := 0
	for _, page := range append(pages, design...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`^# .+\n\nFor `).Match(text) {
			t.Errorf("%s does not begin with whom it is for: a title, and a paragraph that begins with \"For\"", page)
		}
		if slices.Contains(design, page) {
			continue
		}
		words := len(strings.Fields(string(text)))
		if words > 4000 {
			t.Errorf("%s has %d words, more than 4,000", page, words)
		}
		all += words
	}
	if all > 45000 {
		t.Errorf("the pages of docs have %d words, more than 45,000", all)
	}
}

// namedVersion matches the version of kube-scheduler that a page is about.
var namedVersion = regexp.MustCompile(`kube-scheduler (v1\.\d+\.\d+)`)

// What the lab compares with, and what the pages say of it, is the kube-scheduler of
// lab/go.mod.
func TestOneVersionIsNamed(t *testing.T) {
	module, err := os.ReadFile("lab/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(module), "k8s.io/kubernetes ")
	want, _, _ := strings.Cut(rest, "\n")
	for _, path := range documents(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, named := range namedVersion.FindAllStringSubmatch(string(text), -1) {
			if named[1] != want {
				t.Errorf("%s names %s; lab/go.mod has %s", path, named[0], want)
			}
		}
	}
	options, err := os.ReadFile("lab/cluster/options.go")
	if err != nil || !strings.Contains(string(options), `KubernetesVersion = "`+want+`"`) {
		t.Errorf("lab/cluster/options.go: KubernetesVersion is not %s (%v)", want, err)
	}
}

// testsByPackage has the names of all tests and fuzz targets by their folder,
// and those of all folders together under the empty one.
func testsByPackage(t *testing.T) map[string]map[string]bool {
	t.Helper()
	found := map[string]map[string]bool{"": {}}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		if found[pkg] == nil {
			found[pkg] = map[string]bool{}
		}
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				found[pkg][fn.Name.Name], found[""][fn.Name.Name] = true, true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// goName finds a Go name in backquotes, after that of its package or type where it has one.
var goName = regexp.MustCompile("`((?:[A-Za-z]\\w*\\.)*[A-Za-z]\\w*)(?:\\(\\))?`")

// The Go names of the overview, the glossary and the pages of design are there: each part with a capital is a
// word of the code, and after the name of a package a word of that package.
func TestDesignNamesWhatIsThere(t *testing.T) {
	pages, err := filepath.Glob("docs/design/*.md")
	if err != nil || pages == nil {
		t.Fatal(err)
	}
	words := wordsByPackage(t)
	capital := regexp.MustCompile("[A-Z]")
	names := 0
	for _, page := range append(pages, "docs/overview.md", "docs/glossary.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range goName.FindAllStringSubmatch(string(text), -1) {
			in := words[""]
			for i, part := range strings.Split(m[1], ".") {
				if of := words[part]; i == 0 && of != nil {
					in = of
				} else if capital.MatchString(part) {
					names++
					if !in[part] {
						t.Errorf("%s names %s, and no code has the word %s there", page, m[1], part)
					}
				}
			}
		}
	}
	if names < 100 {
		t.Errorf("%d names; where are they?", names)
	}
}

// wordsByPackage has the words of the code, not of its comments, by the last part of the folder's name,
// and all together under the empty one.
func wordsByPackage(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]bool{}
	found := map[string]map[string]bool{"": all}
	word := regexp.MustCompile(`\w+`)
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pkg := filepath.Base(filepath.Dir(path))
		if found[pkg] == nil {
			found[pkg] = map[string]bool{}
		}
		var s scanner.Scanner
		s.Init(token.NewFileSet().AddFile(path, -1, len(text)), text, nil, 0)
		for {
			_, kind, literal := s.Scan()
			if kind == token.EOF {
				return nil
			}
			for _, w := range word.FindAllString(literal, -1) {
				found[pkg][w], all[w] = true, true
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
