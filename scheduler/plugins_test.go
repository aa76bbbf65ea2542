package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/examples/teamlimit"
)

// The daemon of a configuration that enables a native plugin decides with it,
// under the arguments that the configuration gives it.
func TestNativePluginDecides(t *testing.T) {
	o := parsed(t, "--config=../examples/teamlimit-scheduler/config.yaml")
	WithNativePlugin(teamlimit.Name, teamlimit.New)(o)
	c, err := o.config()
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDaemon(klog.Background(), c, &rest.Config{Host: "http://127.0.0.1:1"}, o, nil) // nothing is asked of it
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- d.Run(ctx, nil) }()
	defer func() { stop(); <-stopped }()
	now := time.Unix(1e9, 0)
	step := func(e machine.Event) (last *decision.Decision) {
		err := d.Inspect(ctx, func(m *machine.Machine) {
			for _, effect := range m.Step(now, e) {
				if decided, ok := effect.(machine.AttemptDone); ok {
					last = decided.Decision
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return last
	}
	step(machine.NodeSet{Node: &object.Node{Name: "n", UID: "n", AllowedPods: 110}})
	for i, want := range []decision.Result{decision.ResultScheduled, decision.ResultScheduled, decision.ResultUnschedulable} {
		name := string(rune('a' + i))
		step(machine.PodSet{Pod: &object.Pod{UID: types.UID(name), Namespace: "ns", Name: name, SchedulerName: "team-scheduler",
			Labels: map[string]string{"example.com/team": "red"}}})
		got := step(machine.ScheduleOne{})
		if got == nil || got.Result != want {
			t.Fatalf("pod %s: decided %+v, want %s", name, got, want)
		}
		if want == decision.ResultUnschedulable && got.Tallies[0].Plugin != teamlimit.Name {
			t.Errorf("rejected by %+v", got.Tallies)
		}
	}
}

// A native plugin that cannot be registered is refused with one line that names the
// fault.
func TestNativePluginsThatCannotBe(t *testing.T) {
	make := func(args json.RawMessage) (*framework.Plugin, error) { return &framework.Plugin{Name: "Mine"}, nil }
	mine := "--config=" + configFile(t, "profiles: [{plugins: {multiPoint: {enabled: [{name: Mine}]}}, pluginConfig: [{name: Mine, args: {a: 1}}]}]")
	for _, tt := range []struct {
		name string
		add  []Option
		want string // in the error
	}{
		{"nobody gave it", nil, `MultiPointPlugin "Mine" does not exist`},
		{"twice", []Option{WithNativePlugin("Mine", make), WithNativePlugin("Mine", make)}, `a plugin named "Mine" already exists`},
		{"in-tree", []Option{WithNativePlugin(names.NodeName, make)}, `a plugin named "NodeName" already exists`},
		{"no name", []Option{WithNativePlugin("", make)}, "a native plugin has no name"},
		{"no factory", []Option{WithNativePlugin("Mine", nil)}, `native plugin "Mine" has no factory`},
		{"another name", []Option{WithNativePlugin("Mine", func(json.RawMessage) (*framework.Plugin, error) {
			return &framework.Plugin{Name: "Yours"}, nil
		})}, `initializing plugin "Mine": it is registered under this name, but its Name is "Yours"`},
		{"no plugin", []Option{WithNativePlugin("Mine", func(json.RawMessage) (*framework.Plugin, error) { return nil, nil })},
			`initializing plugin "Mine": its factory returned no plugin`},
		{"bad arguments", []Option{WithNativePlugin("Mine", func(args json.RawMessage) (*framework.Plugin, error) {
			return nil, errors.New("got " + string(args))
		})}, `initializing plugin "Mine": got {"a":1}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			command := NewCommand(tt.add...)
			command.SetArgs([]string{mine, "--master=http://127.0.0.1:1", "--secure-port=0"})
			err := command.Execute()
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, tt.want)
			}
		})
	}
}
