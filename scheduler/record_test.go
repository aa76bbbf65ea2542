package scheduler

import (
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/examples/tier"
)

// Flags about records that make no sense are refused, each by its name.
func TestRecordFlags(t *testing.T) {
	for _, c := range []struct {
		flags string
		want  string // "" is fine
	}{
		{"", ""},
		{"--record-to=/tmp/r --record-limit=512Mi --record-redact", ""},
		{"--record-redact", "--record-redact: needs --record-to"},
		{"--record-to=/tmp/r --record-limit=10", "--record-limit 10: must be"},
		{"--record-to=/tmp/r --record-limit=many", "--record-limit many: must be"},
	} {
		o := newOptions()
		for _, f := range o.flags.FlagSets {
			f.ParseErrorsAllowlist.UnknownFlags = true
		}
		if err := o.flags.FlagSet("misc").Parse(strings.Fields(c.flags)); err != nil {
			t.Fatal(err)
		}
		err := o.validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", c.flags, err, c.want)
		}
	}
}

// A scheduler with hosted plugins is not recorded: a replay could not call them.
func TestHostedPluginsAreNotRecorded(t *testing.T) {
	o := newOptions()
	o.record.to = t.TempDir()
	WithPlugin(tier.Name, tier.New)(o)
	if out, err := o.record.options(config.Default(), o); err == nil || !strings.HasPrefix(err.Error(), "--record-to: cannot be used with hosted plugins") {
		t.Errorf("options %+v, error %v", out, err)
	}
}

// A configuration that selects by names is not recorded without them.
func TestRedactable(t *testing.T) {
	c, err := config.Decode([]byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [secret]}]}]
`), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := redactable(c); err == nil || !strings.Contains(err.Error(), "addedAffinity") {
		t.Errorf("error %v", err)
	}
	if err := redactable(config.Default()); err != nil {
		t.Error(err)
	}
}
