package upstream

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// List is one kind of thing that Berth states after upstream.
type List struct {
	Name  string
	File  string // where its lines are kept, from the root of the repository
	Lines []string
}

const folder = "testdata/upstream"

// VersionFile holds the version that the lists were made of.
const VersionFile = folder + "/version.txt"

// Lists returns all lists. Those of modules that are missing are empty.
func (s *Sources) Lists() []List {
	lists := []List{
		{Name: "gates", File: "edge/config/features/gates.txt", Lines: s.gates()},
		{Name: "gates-read", Lines: s.readGates()},
		{Name: "flags", Lines: s.flags()},
		{Name: "configuration", Lines: s.configuration()},
		{Name: "plugins", Lines: s.plugins()},
		{Name: "wakeups", Lines: s.wakeups()},
		{Name: "reasons", Lines: s.reasons()},
		{Name: "metrics", Lines: s.metrics()},
		{Name: "events", Lines: s.events()},
		{Name: "log-lines", Lines: s.logLines()},
		{Name: "rights", Lines: s.rights()},
		{Name: "contract", Lines: s.contract()},
	}
	for i := range lists {
		lists[i].File = cmp.Or(lists[i].File, folder+"/"+lists[i].Name+".txt")
	}
	return lists
}

// Text returns the lines as they stand in the file.
func (l List) Text() string { return strings.Join(l.Lines, "\n") + "\n" }

// Write writes the files of the lists, and the version, below the root of the repository.
func Write(root string, s *Sources) error {
	if len(s.Missing) > 0 {
		return fmt.Errorf("%s is not whole: %v", s.Version, s.Missing)
	}
	files := map[string]string{VersionFile: s.Version + "\n"}
	for _, l := range s.Lists() {
		files[l.File] = l.Text()
	}
	for _, name := range sorted(files) {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(files[name]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Compare returns what a list has lost and got: "- line" and "+ line", a line that
// changed beside the one it was.
func Compare(before, after List) (lines []string) {
	for _, l := range before.Lines {
		if !slices.Contains(after.Lines, l) {
			lines = append(lines, "- "+l)
		}
	}
	for _, l := range after.Lines {
		if !slices.Contains(before.Lines, l) {
			lines = append(lines, "+ "+l)
		}
	}
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(a[2:], b[2:]) })
	return lines
}
