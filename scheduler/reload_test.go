package scheduler

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/edge/daemon"
)

// reloaded notes what it is to take over.
type reloaded chan string

func (r reloaded) Reload(_ context.Context, make daemon.Make) error {
	c, profiles, err := make()
	if err != nil {
		r <- "refused: " + err.Error()
		return err
	}
	r <- *c.Profiles[0].SchedulerName + " " + profiles[0].Name + " " + c.LeaderElection.ResourceName
	return nil
}

const header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

// A file that changed is read when it has not changed any more since the last look.
func TestChangedFile(t *testing.T) {
	var text []byte
	var fails error
	f := &watchedFile{applied: []byte("a"), read: func() ([]byte, error) { return text, fails }}
	for i, at := range []struct {
		text string
		err  error
		want string // "": no change
	}{
		{"a", nil, ""}, {"half", nil, ""}, {"whole", nil, ""}, {"whole", nil, "whole"}, {"whole", nil, ""},
		{"b", nil, ""}, {"", errors.New("gone"), ""}, {"b", nil, ""}, {"b", nil, "b"},
		{"c", nil, ""}, {"b", nil, ""}, {"b", nil, ""},
	} {
		text, fails = []byte(at.text), at.err
		if got, yes := f.changed(); string(got) != at.want || yes != (at.want != "") {
			t.Errorf("look %d: %q, %t", i, got, yes)
		}
	}
}

// A configuration is made as at the start: flags count, and what is wrong is
// refused. That is so for a file that has changed, and for a signal, which does not
// wait.
func TestReloads(t *testing.T) {
	path := configFile(t, "")
	o := parsed(t, "--config="+path, "--leader-elect-resource-name=mine")
	look, signals, got := make(chan time.Time), make(chan os.Signal), make(reloaded)
	go o.reloads(t.Context(), &watchedFile{read: func() ([]byte, error) { return os.ReadFile(path) }}, look, signals, got)
	write := func(body string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	signal := func() string { signals <- syscall.SIGHUP; return <-got }
	write(header + "profiles: [{schedulerName: b}]")
	look <- time.Time{}
	look <- time.Time{}
	if s := <-got; s != "b b mine" {
		t.Errorf("changed: %q", s)
	}
	write(header + "profiles: [{schedulerName: c}]\npercentageOf")
	if s := signal(); !strings.HasPrefix(s, "refused: "+path) {
		t.Errorf("half a file: %q", s)
	}
	write(header + "profiles: [{plugins: {score: {enabled: [{name: Nonsense}]}}}]")
	if s := signal(); !strings.Contains(s, `"Nonsense" does not exist`) {
		t.Errorf("a plugin that does not exist: %q", s)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if s := signal(); !strings.Contains(s, "no such file") {
		t.Errorf("no file: %q", s)
	}
	write(header + "profiles: [{schedulerName: d}]")
	if s := signal(); s != "d d mine" {
		t.Errorf("mended: %q", s)
	}
}

// A scheduler with hosted plugins takes over no configuration, not even one that changes
// the arguments of such a plugin alone. It says what to do.
func TestReloadWithHostedPlugins(t *testing.T) {
	path := configFile(t, "")
	o := parsed(t, "--config="+path)
	WithPlugin("P", func(context.Context, runtime.Object, framework.Handle) (framework.Plugin, error) { return nil, nil })(o)
	for _, text := range []string{
		"profiles: [{schedulerName: b}]",
		"profiles: [{schedulerName: d, pluginConfig: [{name: P, args: {n: 2}}], plugins: {filter: {enabled: [{name: P}]}}}]",
	} {
		_, _, err := o.maker([]byte(header + text))()
		if err == nil || !strings.Contains(err.Error(), "plugins written against kube-scheduler's framework") || !strings.Contains(err.Error(), "restart the scheduler") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
