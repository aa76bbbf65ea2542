package profile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/framework"
)

// The levels of GroupTopology are keys of labels, each once; a profile without them has none.
func TestGroupTopology(t *testing.T) {
	for args, want := range map[string]string{
		`{"levels":["topology.kubernetes.io/zone","rack"]}`: "topology.kubernetes.io/zone rack",
		`{"apiVersion":"a","kind":"b","levels":["rack"]}`:   "rack",
		``:                         "args.levels of GroupTopology: Invalid value: 0 levels: must be from 1 to 16",
		`{"levels":[]}`:            "args.levels of GroupTopology: Invalid value: 0 levels: must be from 1 to 16",
		`{"levels":["a","b","a"]}`: `args.levels[2] of GroupTopology: Invalid value: "a": is there twice`,
		`{"levels":["a",""]}`:      `args.levels[1] of GroupTopology: Invalid value: "": name part must be non-empty`,
		`{"levels":["a b"]}`:       `args.levels[0] of GroupTopology: Invalid value: "a b": name part must consist of`,
		`{"levels":[7]}`:           "args of GroupTopology: json: cannot unmarshal number",
		`{"level":["a"]}`:          `args of GroupTopology: json: unknown field "level"`,
		`{"levels":["` + strings.Join(strings.Split("abcdefghijklmnopq", ""), `","`) + `"]}`: "Invalid value: 17 levels",
	} {
		c := config("", nil)
		c.Args = []Args{{GroupTopology, json.RawMessage(args)}}
		p, err := Build(c, registryOf())
		switch {
		case err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %q", args, err, want)
		case err == nil && !slices.Equal(p.Levels, strings.Fields(want)):
			t.Errorf("%s: %q, want %q", args, p.Levels, want)
		}
	}
	if p, err := Build(config("", nil), registryOf()); err != nil || p.Levels != nil {
		t.Errorf("%v, %v", p.Levels, err)
	}
}

// Budgets are strict if PreemptionBudgets says so, and only then.
func TestPreemptionBudgets(t *testing.T) {
	for args, want := range map[string]string{
		`{"strict":true}`: "true",
		`{"apiVersion":"a","kind":"b","strict":true}`: "true",
		`{"strict":false}`:                            "false",
		`{}`:                                          "false",
		``:                                            "false",
		`{"strict":"yes"}`:                            "args of PreemptionBudgets: json: cannot unmarshal string",
		`{"strikt":true}`:                             `args of PreemptionBudgets: json: unknown field "strikt"`,
	} {
		c := config("", nil)
		c.Args = []Args{{framework.PreemptionBudgets, json.RawMessage(args)}}
		p, err := Build(c, registryOf())
		switch {
		case err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %q", args, err, want)
		case err == nil && fmt.Sprint(p.StrictBudgets) != want:
			t.Errorf("%s: %t, want %s", args, p.StrictBudgets, want)
		}
	}
	if p, err := Build(config("", nil), registryOf()); err != nil || p.StrictBudgets {
		t.Errorf("%v, %v", p, err)
	}
}
