package breaks

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/sim/generate"
)

// Each fault can still be made in today's code, and names mixes that there are.
func TestListIsOfThisCode(t *testing.T) {
	list, err := List()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, b := range list {
		if _, err := b.broken("../.."); err != nil {
			t.Errorf("%s: %s: %v", b.Plugin, b.What, err)
		}
		if key := b.File + b.Old + b.New; seen[key] {
			t.Errorf("%s: %s: stands there twice", b.Plugin, b.What)
		} else {
			seen[key] = true
		}
		for _, m := range b.Mixes {
			if !slices.Contains(slices.Concat(generate.Mixes(), generate.GateMixes(), simulations, []string{unit, stories, "groups"}), m) {
				t.Errorf("%s: %s: there is no mix %s", b.Plugin, b.What, m)
			}
			if b.tests() != "" && len(b.Mixes) > 1 {
				t.Errorf("%s: %s: a program has the tests of %s alone", b.Plugin, b.What, m)
			}
		}
	}
	t.Logf("%d faults", len(list))
}

// testdata/seen.md has a row for each fault of daemon.txt, and no other.
func TestSeenIsOfTheList(t *testing.T) {
	list, err := parse(simulated)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/seen.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "|---|---|---|---|\n")
	var want, got []string
	for _, b := range list {
		want = append(want, b.Plugin+" | "+b.What)
	}
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(row, "| \n"), " | ")
		if len(cells) != 4 {
			t.Fatalf("not four cells: %s", row)
		}
		got = append(got, cells[0]+" | "+cells[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("testdata/seen.md has\n%s\nand daemon.txt\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A block of the list is read, and one with a part missing is an error that
// names the block.
func TestParse(t *testing.T) {
	list, err := parse("# words\n\nA | b | taints ports | 1-60\ncore/a.go\n- x\n+ y\n\n# more\nB | c | all\nb.go\n- z\n+ w\n")
	if err != nil || len(list) != 2 || list[0].Seeds != "1-60" || len(list[0].Mixes) != 2 || list[1].Seeds != defaultSeeds || list[1].Old != "z" {
		t.Errorf("%+v, %v", list, err)
	}
	for _, bad := range []string{"A | b\nf\n- x\n+ y", "A | b | all\nf\n- x", "A | b | all\n- x\n+ y\n+ z", "A | b |  \nf\n- x\n+ y"} {
		if _, err := parse(bad); err == nil || !strings.HasPrefix(err.Error(), "A | b") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
