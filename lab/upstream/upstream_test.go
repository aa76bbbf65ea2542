package upstream

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The lists that Berth's tests compare with its own tables are those of the version
// that go.mod names: make upstream writes them.
func TestListsAreUpToDate(t *testing.T) {
	version, err := Linked()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Load(version)
	if err != nil {
		t.Fatal(err)
	}
	for module, why := range s.Missing {
		t.Errorf("%s: %s", module, why)
	}
	for _, l := range s.Lists() {
		kept, err := os.ReadFile(filepath.Join("../..", l.File))
		if err != nil {
			t.Errorf("%v: run make upstream", err)
			continue
		}
		before := List{Lines: strings.Split(strings.TrimSuffix(string(kept), "\n"), "\n")}
		if changed := Compare(before, l); len(changed) > 0 || string(kept) != l.Text() {
			t.Errorf("%s is not that of %s, run make upstream:\n%s", l.File, version, strings.Join(changed, "\n"))
		}
		if len(l.Lines) < 10 {
			t.Errorf("%s has %d lines", l.Name, len(l.Lines))
		}
	}
}

// A package of sources is read with its constants, those of other packages included.
func TestText(t *testing.T) {
	s := &Sources{dirs: map[string]string{"example.com/m": "testdata"}, packages: map[string]*pkg{}}
	p := s.load("example.com/m/a")
	if p == nil {
		t.Fatal("no package")
	}
	for name, want := range map[string]string{
		"Plain": "plain", "Sum": "prefix_name", "Other": "of b", "Number": "600", "Pointed": "3",
		"List": "{{Name: of b, Weight: 1}}", "Converted": "plain", "Unknown": "Missing",
	} {
		v, ok := p.consts[name]
		if !ok {
			t.Errorf("%s is not read", name)
			continue
		}
		if got := s.text(v.in, v.expr); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// What a package declares is found under the gates that guard it.
func TestMetrics(t *testing.T) {
	s := &Sources{dirs: map[string]string{kubernetes: "testdata/kubernetes"}, packages: map[string]*pkg{}}
	want := []string{
		"scheduler_a_total: counter BETA of x, y; deprecated in 1.37.0",
		"scheduler_b_seconds: histogram ALPHA; ExponentialBuckets(0.001, 2, 15); under SomeGate",
	}
	if got := s.metrics(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Compare shows what is gone and what came, a line that changed beside the former one.
func TestCompare(t *testing.T) {
	got := Compare(List{Lines: []string{"a: 1", "b: 1", "c"}}, List{Lines: []string{"a: 2", "c", "d"}})
	if want := []string{"- a: 1", "+ a: 2", "- b: 1", "+ d"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A version that is none, or that no module has, is refused.
func TestLoadRefuses(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	for _, version := range []string{"", "1.37.2", "main", "v1.999.0"} {
		if _, err := Load(version); err == nil {
			t.Errorf("%q was loaded", version)
		}
	}
}
