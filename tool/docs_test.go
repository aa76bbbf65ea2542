package tool

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/sim/day"
	"github.com/berth-scheduler/berth/sim/replay"
)

const shown = "    $ berth "

// The documents show what the tool prints: each call of theirs that needs no cluster
// is made. A line "..." stands for what is left out.
func TestDocs(t *testing.T) {
	t.Setenv("BERTH_CHECK", "") // of a whole day's steps: sim/replay checks smaller ones
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	recordDay(t, filepath.Join(dir, "record"), day.Size{Nodes: 100, Pods: 4000, Length: 24 * time.Hour, Heartbeat: 5 * time.Minute, Controllers: true, Seed: 1})
	t.Chdir(dir)
	for doc, calls := range map[string]int{"batch.md": 5, "batch-from-volcano.md": 2, "batch-from-kai.md": 2, "what-if.md": 17, "why.md": 6, "config.md": 1, "replay.md": 2} {
		checkDocument(t, filepath.Join(root, "docs", doc), shown, calls)
	}
	t.Chdir(root)
	checkDocument(t, filepath.Join(root, "README.md"), "    $ bin/berth ", 3)
}

// checkDocument makes the calls that a document shows behind a prompt. So many of them
// are to be made.
func checkDocument(t *testing.T, path, prompt string, calls int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for at := 0; at < len(lines); at++ {
		call, ok := strings.CutPrefix(lines[at], prompt)
		elsewhere := func(part string) bool { return strings.Contains(call, part) }
		if !ok || slices.ContainsFunc([]string{"|", ">", "--daemon", "record --to", "cut/", "flipped/"}, elsewhere) {
			continue // what it shows is of a cluster, or of a record that is damaged
		}
		calls--
		end := endOfBlock(lines, at+1)
		got, want := printed(call), lines[at+1:end]
		if *update && !slices.Contains(want, "    ...") {
			lines = slices.Replace(lines, at+1, end, got...)
		} else if !same(got, want) {
			t.Errorf("%s: %s\n%s\n  but the document shows\n%s", path, call, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if calls != 0 {
		t.Errorf("%s: %d calls fewer than were to be checked", path, calls)
	}
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The sample record in examples/day is replayed without a difference. -update makes it
// anew, where this version decides otherwise on purpose.
func TestSampleDay(t *testing.T) {
	const sample = "../examples/day"
	if *update {
		if err := os.RemoveAll(sample); err != nil {
			t.Fatal(err)
		}
		recordDay(t, sample, day.Size{Nodes: 30, Pods: 600, Length: 24 * time.Hour, Controllers: true, Seed: 1})
	}
	if status, out, errs := berth("", "replay", sample); status != 0 || errs != "" || !strings.Contains(out, "All 600 decisions, and all other effects, are the same as recorded.") {
		t.Errorf("%d %s%s", status, out, errs)
	}
}

// recordDay records a generated day.
func recordDay(t *testing.T, dir string, size day.Size) {
	t.Helper()
	midnight := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	h := headerOf(t, midnight)
	o, err := replay.Options(&h)
	if err != nil {
		t.Fatal(err)
	}
	r, err := recording.Start(recording.Options{Dir: dir, Limit: 1 << 30, Wait: true, Header: h, Logger: klog.Background()})
	if err != nil {
		t.Fatal(err)
	}
	c := day.NewCluster(machine.New(o), midnight)
	c.Objects, c.Observe = recording.NewObjects(nil), r.Observe
	day.Generate(c, size, nil)
	r.Close(context.Background())
}

// endOfBlock is the line behind the output that begins at a line.
func endOfBlock(lines []string, at int) int {
	end := at
	for i := at; i < len(lines) && (lines[i] == "" || strings.HasPrefix(lines[i], "    ")) && !strings.HasPrefix(lines[i], "    $ "); i++ {
		if lines[i] != "" {
			end = i + 1
		}
	}
	return end
}

// printed is what a call prints, as a document shows it.
func printed(call string) []string {
	var out bytes.Buffer
	run(append([]string{"berth"}, words(call)...), nil, &out, &out)
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(out.String())) {
		line = strings.TrimRight("    "+line, " \n")
		lines = append(lines, line)
	}
	return lines
}

// words returns the words of a call. Single quotes hold one.
func words(call string) (all []string) {
	for i, part := range strings.Split(call, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

// same compares lines; "..." stands for any.
func same(got, want []string) bool {
	for len(want) > 0 && strings.TrimSpace(want[0]) != "..." {
		if len(got) == 0 || got[0] != want[0] {
			return false
		}
		got, want = got[1:], want[1:]
	}
	if len(want) == 0 {
		return len(got) == 0
	}
	for i := range len(got) + 1 {
		if same(got[i:], want[1:]) {
			return true
		}
	}
	return false
}

// The configurations that the documents show are valid.
func TestDocsShowValidConfigurations(t *testing.T) {
	docs, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(text), "\n```yaml\n")[1:] {
			block, _, _ = strings.Cut(block, "\n```")
			if !strings.Contains(block, "kind: KubeSchedulerConfiguration") {
				continue
			}
			checked++
			if code, out, errs := berth(block, "config", "check", "--plugins", "Tier,TeamLimit", "-"); code != exitPlaced {
				t.Errorf("%s: %s%s\n%s", doc, out, errs, block)
			}
		}
	}
	if checked < 4 {
		t.Errorf("%d configurations were checked", checked)
	}
}
