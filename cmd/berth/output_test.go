package main

import (
	"strings"
	"testing"
)

// A shell completes the forms of -o, and a verb where a change begins.
func TestCompletion(t *testing.T) {
	for args, want := range map[string]string{
		"why|-o|":             "text wide yaml json :4",
		"events|--output|":    "text json :4",
		"replay|dir|-o|":      "table wide json :4",
		"what-if|":            "drain cordon uncordon remove lose-zone add-nodes scale apply priority evict :4",
		"what-if|drain|":      ":0",
		"what-if|drain|n1|":   ":0",
		"what-if|drain|n1,|":  "drain cordon uncordon remove lose-zone add-nodes scale apply priority evict :4",
		"what-if|drain|n,|o|": ":0",
	} {
		status, out, _ := berth("", append([]string{"__complete"}, strings.Split(args, "|")...)...)
		if got := strings.Join(strings.Fields(out), " "); status != 0 || got != want {
			t.Errorf("%s: %d %q, want %q", args, status, got, want)
		}
	}
}
