package dropin

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/drop-in.md")

// row is a thing that kube-scheduler shows.
type row struct{ kind, name, theirs, ours, test string }

const page = "../../docs/drop-in.md"

const intro = `# What kube-scheduler v1.36.3 shows, and what Berth does

This page lists every flag, configuration field, endpoint, metric, event, log line and feature gate of kube-scheduler v1.36.3. "same" means: the same name with the same meaning. ` + "`docs/deviations.md`" + ` says more about what differs. The page is made by ` + "`go test ./dropin -update`" + ` in ` + "`lab/`" + `, out of kube-scheduler's own code; the test fails when the page is out of date, or something in kube-scheduler has no row.

`

// The page is what kube-scheduler and Berth say today, and no cell of it is empty.
func TestPageIsUpToDate(t *testing.T) {
	var b strings.Builder
	b.WriteString(intro)
	for _, part := range []struct {
		title, each string
		rows        []row
	}{
		{"Flags", "Flag", flags(t)}, {"Configuration", "Field", fields()}, {"Endpoints", "Endpoint", listed(t, "endpoints.txt", "endpoint")},
		{"Metrics", "Metric", metrics(t)}, {"Events", "Event", events(t)}, {"Log lines", "Log line", lines(t)}, {"Feature gates", "Gate", gates(t)},
	} {
		fmt.Fprintf(&b, "## %s\n\n| %s | v1.36.3 | Berth | Test |\n|---|---|---|---|\n", part.title, part.each)
		for _, r := range part.rows {
			checkTest(t, r.test)
			cells := []string{r.name, r.theirs, r.ours, r.test}
			if slices.Contains(cells, "") {
				t.Errorf("%s %q has an empty cell: %q", r.kind, r.name, cells)
			}
			for i := range cells {
				cells[i] = strings.ReplaceAll(cells[i], "|", "\\|")
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		}
		b.WriteString("\n")
	}
	made := strings.TrimSpace(b.String()) + "\n"
	old, err := os.ReadFile(page)
	if err != nil && !*update {
		t.Fatal(err)
	}
	switch {
	case string(old) == made:
	case !*update:
		t.Error("docs/drop-in.md is out of date: run go test ./dropin -update in lab")
	case !t.Failed():
		if err := os.WriteFile(page, []byte(made), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var testCell = regexp.MustCompile("^`([a-z0-9/]+)`, (Test[A-Za-z]+(, Test[A-Za-z]+)*)$")

// checked are the tests of a package that were looked up.
var checked = map[string]bool{}

// checkTest tells whether the tests are there that a cell names.
func checkTest(t *testing.T, cell string) {
	if checked[cell] {
		return
	}
	checked[cell] = true
	m := testCell.FindStringSubmatch(cell)
	if m == nil {
		t.Errorf("no test: %q", cell)
		return
	}
	var source strings.Builder
	files, _ := filepath.Glob(filepath.Join("../..", m[1], "*_test.go"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	for name := range strings.SplitSeq(m[2], ", ") {
		if !strings.Contains(source.String(), "func "+name+"(") {
			t.Errorf("there is no test %s in %s", name, m[1])
		}
	}
}

func byName(a, b row) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.theirs, b.theirs))
}

func code(s string) string { return "`" + s + "`" }

// listed reads rows from a file: "name | v1.36.3 | Berth | test".
func listed(t *testing.T, file, kind string) (rows []row) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSpace(line), " | ")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if len(f) != 4 {
			t.Fatalf("%s: %s", file, line)
		}
		rows = append(rows, row{kind, f[0], f[1], f[2], f[3]})
	}
	return rows
}
