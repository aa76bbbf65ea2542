package scheduler

import (
	"bytes"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/examples/teamlimit"
	"github.com/berth-scheduler/berth/examples/tier"
)

// The tool knows the plugins of its options, native and hosted ones, with their arguments,
// and refuses what a scheduler refuses at start.
func TestToolHasPlugins(t *testing.T) {
	for _, tt := range []struct {
		opts []Option
		file string
		err  string
	}{
		{[]Option{WithPlugin(tier.Name, tier.New)}, "../examples/hosted-scheduler/config.yaml", ""},
		{[]Option{WithNativePlugin(teamlimit.Name, teamlimit.New)}, "../examples/teamlimit-scheduler/config.yaml", ""},
		{nil, "../examples/hosted-scheduler/config.yaml", `MultiPointPlugin "Tier" does not exist`},
		{[]Option{WithPlugin(tier.Name, tier.New), WithPlugin(tier.Name, tier.New)}, "../examples/hosted-scheduler/config.yaml", `a plugin named "Tier" already exists`},
		{[]Option{WithPlugin("NodeName", tier.New)}, "../examples/hosted-scheduler/config.yaml", `a plugin named "NodeName" already exists`},
	} {
		command := NewToolCommand(tt.opts...)
		command.SetArgs([]string{"simulate", "-f", "../tool/testdata/zones.yaml", "--config", tt.file})
		var out bytes.Buffer
		command.SetOut(&out)
		command.SetErr(&out)
		err := command.Execute()
		said := out.String()
		if err != nil {
			said += err.Error()
		}
		if tt.err == "" && (strings.Contains(said, "does not exist") || strings.Contains(said, "is not asked here")) || !strings.Contains(said, tt.err) {
			t.Errorf("%s: %s, want %q", tt.file, said, tt.err)
		}
	}
}
