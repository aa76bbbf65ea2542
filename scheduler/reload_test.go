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
	"github.com/berth-scheduler/berth/edge/untrusted"
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

// A file that changed is read when it has not changed any more since the last look. That
// it cannot be read is said once, at the second look.
func TestChangedFile(t *testing.T) {
	var text []byte
	var fails error
	f := &watchedFile{applied: []byte("a"), read: func() ([]byte, error) { return text, fails }}
	gone, hangs := errors.New("gone"), errors.New("hangs")
	for i, at := range []struct {
		text string
		err  error
		want string // "": no change
		says error
	}{
		{"a", nil, "", nil}, {"half", nil, "", nil}, {"whole", nil, "", nil}, {"whole", nil, "whole", nil}, {"whole", nil, "", nil},
		{"b", nil, "", nil}, {"", gone, "", nil}, {"b", nil, "", nil}, {"b", nil, "b", nil},
		{"c", nil, "", nil}, {"b", nil, "", nil}, {"b", nil, "", nil},
		{"", gone, "", nil}, {"", gone, "", gone}, {"", gone, "", nil}, {"", hangs, "", nil}, {"", hangs, "", hangs}, {"", hangs, "", nil},
		{"d", nil, "", nil}, {"d", nil, "d", nil}, {"", hangs, "", nil}, {"", hangs, "", hangs},
	} {
		text, fails = []byte(at.text), at.err
		got, yes, err := f.look()
		if string(got) != at.want || yes != (at.want != "" || at.says != nil) || err != at.says {
			t.Errorf("look %d: %q, %t, %v", i, got, yes, err)
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
	go o.reloads(t.Context(), &watchedFile{read: func() ([]byte, error) { return untrusted.File(path, untrusted.Config) }}, look, signals, got)
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

// A configuration file that becomes a pipe, or a link to an endless file, is refused. Its
// reading does not hang, and the next change is taken over.
func TestReloadOfAFileThatIsNone(t *testing.T) {
	path := configFile(t, "")
	o := parsed(t, "--config="+path)
	look, signals, got := make(chan time.Time), make(chan os.Signal), make(reloaded)
	go o.reloads(t.Context(), &watchedFile{read: func() ([]byte, error) { return untrusted.File(path, untrusted.Config) }}, look, signals, got)
	for name, put := range map[string]func(at string) error{
		"is a named pipe, not a regular file": func(at string) error { return syscall.Mkfifo(at, 0o600) },
		"is a device, not a regular file":     func(at string) error { return os.Symlink("/dev/zero", at) },
		"is longer than 10 MiB": func(at string) error {
			return errors.Join(os.WriteFile(at, nil, 0o600), os.Truncate(at, 1<<30))
		},
	} {
		if err := errors.Join(put(path+".new"), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
		look <- time.Time{}
		look <- time.Time{}
		if s := <-got; !strings.Contains(s, "refused: read "+path+": "+name) {
			t.Errorf("%s: %q", name, s)
		}
		if signals <- syscall.SIGHUP; !strings.Contains(<-got, name) {
			t.Errorf("%s: not said at a signal", name)
		}
		text := []byte(header + "profiles: [{schedulerName: b}] # after: " + name)
		if err := errors.Join(os.WriteFile(path+".new", text, 0o600), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
		look <- time.Time{}
		look <- time.Time{}
		if s := <-got; !strings.HasPrefix(s, "b ") {
			t.Errorf("after %s: %q", name, s)
		}
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
