package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A port out of range is refused, and paths become absolute.
func TestOptions(t *testing.T) {
	for _, port := range []int{-1, 65536} {
		if _, err := (Options{Port: port}).complete(); err == nil || !strings.Contains(err.Error(), "port") {
			t.Errorf("port %d: error is %v", port, err)
		}
	}
	options, err := Options{Dir: "somewhere"}.complete()
	if err != nil {
		t.Fatal(err)
	}
	// The children run in another directory.
	if !filepath.IsAbs(options.Dir) || !filepath.IsAbs(options.Executable) {
		t.Errorf("paths are not absolute: %+v", options)
	}
}

// A second lab in the directory of a first one is refused.
func TestOneLabInADirectory(t *testing.T) {
	dir := t.TempDir()
	first := &Cluster{dir: dir}
	if err := first.prepareDir(); err != nil {
		t.Fatal(err)
	}
	err := (&Cluster{dir: dir}).prepareDir()
	if err == nil || !strings.Contains(err.Error(), dir+" is in use by another lab") {
		t.Errorf("second lab in the same directory: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again := &Cluster{dir: dir}
	if err := again.prepareDir(); err != nil {
		t.Errorf("the directory is still locked: %v", err)
	}
	again.Close()
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a directory that was given was removed: %v", err)
	}
}

// A temporary directory goes with the lab. Where an error names a log, the logs stay.
func TestLogsThatAnErrorNamesStay(t *testing.T) {
	for script, stays := range map[string]bool{"exec sleep 1000": false, "echo the last words": true} {
		t.Setenv("TMPDIR", t.TempDir())
		c := &Cluster{names: map[string]int{}, failed: make(chan error, 1)}
		if err := c.prepareDir(); err != nil {
			t.Fatal(err)
		}
		p, err := c.Launch("sh", "/bin/sh", "-c", script)
		if err != nil {
			t.Fatal(err)
		}
		if stays {
			<-c.Failed()
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		left, _ := filepath.Glob(filepath.Join(c.Dir(), "*")) // none: the pattern is a good one
		if _, err := os.Stat(p.LogPath); (err == nil) != stays || len(left) > 1 || (len(left) == 1) != stays {
			t.Errorf("%s: the log: %v; left are %v", script, err, left)
		}
	}
}

// The sample's pods name the first profile where none is for pods that name none.
func TestServedName(t *testing.T) {
	for config, want := range map[string]string{
		"": "", "profiles: []": "", "profiles: [{}]": "", "profiles: [{schedulerName: a}]": "a",
		"profiles: [{schedulerName: b}, {schedulerName: a}]":                 "b",
		"profiles: [{schedulerName: a}, {schedulerName: default-scheduler}]": "",
	} {
		if got := (SchedulerOptions{Config: []byte(config)}).ServedName(); got != want {
			t.Errorf("%s: %q, want %q", config, got, want)
		}
	}
}

// A scheduler that cannot be started is refused before the cluster starts.
func TestSchedulerOptions(t *testing.T) {
	tests := []struct {
		name    string
		options SchedulerOptions
		err     string
	}{
		{"no kind", SchedulerOptions{}, `scheduler ""`},
		{"unknown kind", SchedulerOptions{Kind: "cron"}, `scheduler "cron"`},
		{"no such binary", SchedulerOptions{Kind: Berth, Binary: "/does/not/exist"}, "/does/not/exist"},
		{"not YAML", SchedulerOptions{Kind: KubeScheduler, Config: []byte("{a: b: c")}, "configuration"},
		{"empty", SchedulerOptions{Kind: KubeScheduler, Config: []byte("# nothing\n")}, "configuration is empty"},
		{"no mapping", SchedulerOptions{Kind: KubeScheduler, Config: []byte("- a\n")}, "configuration"},
		{"connection is no mapping", SchedulerOptions{Kind: KubeScheduler, Config: []byte("clientConnection: 5")}, "clientConnection"},
		{"defaults", SchedulerOptions{Kind: KubeScheduler}, ""},
	}
	for _, test := range tests {
		err := test.options.Check()
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: error is %v, want %q", test.name, err, test.err)
		}
	}
}

// A configuration keeps its fields, and gets the lab's kubeconfig and client
// limits.
func TestSchedulerConfiguration(t *testing.T) {
	tests := []struct {
		name, given, want string
	}{
		{"none", "", `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: K, qps: 5000, burst: 10000}`},
		{"limits are kept, the kubeconfig is not", `
kind: X
parallelism: 4
clientConnection: {kubeconfig: other, qps: 7, contentType: application/json}`, `
kind: X
parallelism: 4
clientConnection: {kubeconfig: K, qps: 7, burst: 10000, contentType: application/json}`},
	}
	for _, test := range tests {
		options := SchedulerOptions{}
		if test.given != "" {
			options.Config = []byte(test.given)
		}
		got, err := options.config("K")
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var want any
		if err := yaml.Unmarshal([]byte(test.want), &want); err != nil {
			t.Fatal(err)
		}
		canonical, err := yaml.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(canonical) {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, canonical)
		}
	}
}
