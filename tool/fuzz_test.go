package tool

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/sim/generate"
)

var mutations = flag.Uint64("mutations", 8, "how many seeds FuzzCommands has without fuzzing")

// Commands on clusters that are like known ones with parts exchanged neither crash nor go
// on without end. Whether their fixes hold is for TestFixesOfMutatedCasesHold of
// sim/whatif.
func FuzzCommands(f *testing.F) {
	paths, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatal(paths, err)
	}
	for seed := range *mutations {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		file, err := os.ReadFile(paths[seed%uint64(len(paths))])
		if err != nil {
			t.Fatal(err)
		}
		cluster, err := generate.Mutated(file, seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"simulate -f -", "why -f - --all", "why -f - p", "what-if -f - cordon n2", "what-if -f - drain n1", "fit -f - --nodes-like n1"} {
			var out, notes bytes.Buffer
			args := append([]string{"berth"}, strings.Fields(command)...)
			if status := run(args, bytes.NewReader(cluster), &out, &notes); status < exitPlaced || status > exitMisconfigured {
				t.Errorf("%s: status %d: %s", command, status, notes.String())
			}
		}
	})
}
