package logs

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/edge/logs/logstest"
)

// Each line that Berth says it writes is in kube-scheduler's source, with that message, at
// that verbosity and with these keys. There a verbosity can be in a variable (V?), and keys
// that are no constants are not seen.
func TestLinesAreUpstreams(t *testing.T) {
	text, err := os.ReadFile("../../testdata/upstream/log-lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		level string
		keys  string // "pod, node"
	}
	theirs := map[string][]line{}
	for row := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSpace(row), " | ")
		theirs[f[1]] = append(theirs[f[1]], line{f[0], f[2]})
	}
	for row := range strings.Lines(logstest.Lines) {
		if strings.HasPrefix(row, "#") {
			continue
		}
		f := strings.Split(strings.TrimSpace(row), " | ")
		same := func(l line) bool {
			lacks := func(key string) bool {
				return key != "none" && l.keys != "" && !slices.Contains(strings.Split(l.keys, ", "), key)
			}
			return (l.level == f[0] || l.level == "V?" || f[0] == "E") && !slices.ContainsFunc(strings.Split(f[2], ", "), lacks)
		}
		if !slices.ContainsFunc(theirs[f[1]], same) {
			t.Errorf("kube-scheduler does not write %q with %s at %s: %v", f[1], f[2], f[0], theirs[f[1]])
		}
	}
}
