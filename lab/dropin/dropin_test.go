package dropin

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/lab/cluster"
)

var update = flag.Bool("update", false, "write the lists in testdata, and what differs into docs/drop-in.md")

// row is a thing that kube-scheduler shows.
type row struct{ kind, name, theirs, ours, test string }

const page = "../../docs/drop-in.md"

// list is a kind of thing that kube-scheduler shows. Its rows stand in testdata/FILE.md.
type list struct {
	file, title, each string
	rows              []row
}

// The lists in testdata are what kube-scheduler and Berth say today, and no cell of
// them is empty. docs/drop-in.md counts them and has what differs.
func TestPageIsUpToDate(t *testing.T) {
	lists := []list{
		{"flags", "Flags", "Flag", flags(t)},
		{"configuration", "Configuration fields", "Field", fields()},
		{"endpoints", "Endpoints", "Endpoint", listed(t, "endpoints.txt", "endpoint")},
		{"metrics", "Metrics", "Metric", metrics(t)},
		{"events", "Events", "Event", events(t)},
		{"log-lines", "Log lines", "Log line", lines(t)},
		{"feature-gates", "Feature gates", "Gate", gates(t)},
	}
	made := contents(t, page)
	made = replaceBlock(t, made, "lists", summary(lists))
	for _, l := range lists {
		for _, r := range l.rows {
			checkTest(t, r.test)
			if slices.Contains([]string{r.name, r.theirs, r.ours, r.test}, "") {
				t.Errorf("%s has an empty cell: %q", r.kind, r)
			}
		}
		golden(t, filepath.Join("testdata", l.file+".md"), l.table())
		made = replaceBlock(t, made, l.file, l.differences())
	}
	golden(t, page, made)
}

// golden reports an error if the file has another text, or writes it with -update.
func golden(t *testing.T, file, made string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(made), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if contents(t, file) != made {
		t.Errorf("%s is out of date: run go test ./dropin -update in lab", file)
	}
}

func contents(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// replaceBlock returns the page with the text between the marks of the name replaced.
func replaceBlock(t *testing.T, page, name, text string) string {
	t.Helper()
	begin, end := fmt.Sprintf("<!-- %s: begin -->\n", name), fmt.Sprintf("<!-- %s: end -->", name)
	before, rest, found := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("docs/drop-in.md has no %q and %q", begin, end)
	}
	return before + begin + text + end + after
}

// table returns all rows of the list.
func (l list) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s of kube-scheduler %s\n\nMade by `go test ./dropin -update` in `lab/`. \"same\" means: the same name with the same meaning.\n\n", l.title, cluster.KubernetesVersion)
	fmt.Fprintf(&b, "| %s | kube-scheduler | Berth | Test |\n|---|---|---|---|\n", l.each)
	for _, r := range l.rows {
		writeRow(&b, r.name, r.theirs, r.ours, r.test)
	}
	return b.String()
}

// alike are the words for what Berth does as kube-scheduler does.
var alike = []string{"same", "same library", "same" + live, "same" + restart, readElsewhere}

// summary counts, for each list, the rows in which Berth differs.
func summary(lists []list) string {
	var b strings.Builder
	b.WriteString("| kube-scheduler's | Number | Berth differs in | All of them |\n|---|---|---|---|\n")
	for _, l := range lists {
		differ := 0
		for _, r := range l.rows {
			if !slices.Contains(alike, r.ours) {
				differ++
			}
		}
		writeRow(&b, strings.ToLower(l.title), fmt.Sprint(len(l.rows)), fmt.Sprint(differ), code("lab/dropin/testdata/"+l.file+".md"))
	}
	return b.String()
}

// differences lists what Berth does otherwise, and with which rows: by name if they
// are few. It returns "" if all rows are alike.
func (l list) differences() string {
	names := map[string][]string{}
	for _, r := range l.rows {
		if !slices.Contains(alike, r.ours) {
			names[r.ours] = append(names[r.ours], r.name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | Berth |\n|---|---|\n", l.each)
	for _, ours := range slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(len(names[b])-len(names[a]), strings.Compare(a, b))
	}) {
		which := strings.Join(names[ours], ", ")
		if len(names[ours]) > 6 {
			which = fmt.Sprintf("%d of them", len(names[ours]))
		}
		writeRow(&b, which, ours)
	}
	return b.String()
}

func writeRow(b *strings.Builder, cells ...string) {
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "|", "\\|")
	}
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

var testCell = regexp.MustCompile("^`([a-z0-9/]+)`, (Test[A-Za-z]+(, Test[A-Za-z]+)*)$")

// checked are the tests of a package that were looked up.
var checked = map[string]bool{}

// checkTest reports an error if a test that the cell names is not there.
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
		source.WriteString(contents(t, f))
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

// listed reads rows from a file: "name | kube-scheduler | Berth | test".
func listed(t *testing.T, file, kind string) (rows []row) {
	t.Helper()
	for line := range strings.Lines(contents(t, file)) {
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
