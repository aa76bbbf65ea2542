package up

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/lab/sample"
)

// A wrong flag is an error that names the flag.
func TestValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Options)
		err    string // a part of it; empty: none
	}{
		{"defaults", func(*Options) {}, ""},
		{"no nodes", func(o *Options) { o.Nodes = 0 }, ""},
		{"too few nodes", func(o *Options) { o.Nodes = -1 }, "--nodes -1"},
		{"too many nodes", func(o *Options) { o.Nodes = 50_001 }, "--nodes 50001"},
		{"sample without room", func(o *Options) { o.Nodes, o.Sample = 9, true }, "--nodes 9: the sample workload needs"},
		{"once without room", func(o *Options) { o.Nodes, o.Once = 9, true }, "--nodes 9: the sample workload needs"},
		{"unknown scheduler", func(o *Options) { o.Scheduler = "cron" }, `--scheduler "cron"`},
		{"once without scheduler", func(o *Options) { o.Scheduler, o.Once = "none", true }, "--once"},
		{"configuration without scheduler", func(o *Options) { o.Scheduler, o.Config = "none", "x" }, "--config"},
		{"berth binary for another", func(o *Options) { o.Scheduler, o.Berth = "kube-scheduler", "x" }, "--berth"},
		{"port", func(o *Options) { o.Port = 65536 }, "--port 65536"},
		{"scheduler's port", func(o *Options) { o.HealthPort = -1 }, "--scheduler-port -1"},
		{"no time", func(o *Options) { o.Timeout = 0 }, "--timeout 0s"},
	}
	for _, test := range tests {
		options := Options{Nodes: 100, Scheduler: "berth", Timeout: time.Minute}
		test.change(&options)
		err := options.validate()
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: error is %v, want %q", test.name, err, test.err)
		}
	}
}

// --once fails if a pod is missing, on a wrong node, or on an over-committed
// node.
func TestOnceFailsUnlessAllIsPlacedWell(t *testing.T) {
	s, err := sample.For(10)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		p       sample.Progress
		settled bool
		over    []string
		fault   string // empty: none
	}{
		{"as it should be", sample.Progress{Fitting: 95, Rejected: 5}, true, nil, ""},
		{"not all placed", sample.Progress{Fitting: 90, Rejected: 5}, false, nil, "90 of 95 pods that fit were placed"},
		{"misfits", sample.Progress{Fitting: 95, Rejected: 4, Misfits: 1}, false, nil, "1 pods were placed on nodes that they cannot run on"},
		{"over-committed", sample.Progress{Fitting: 95, Rejected: 5}, true, []string{"node-0001: 111 pods, room for 110"}, "node-0001: 111 pods"},
	}
	for _, test := range tests {
		for _, once := range []bool{false, true} {
			var out bytes.Buffer
			r := &run{options: Options{Once: once}, out: &out}
			err := r.resultOf(s, test.p, test.settled, test.over)
			switch {
			case (err != nil) != (once && test.fault != ""):
				t.Errorf("%s, once %t: error is %v", test.name, once, err)
			case err != nil && !strings.Contains(err.Error(), test.fault):
				t.Errorf("%s: error is %v, want %q", test.name, err, test.fault)
			case !once && !strings.Contains(out.String(), test.fault):
				t.Errorf("%s: says %q, want %q", test.name, &out, test.fault)
			}
		}
	}
}

// The line is written over on a terminal, and once a second elsewhere.
func TestProgressLine(t *testing.T) {
	start := time.Unix(0, 0)
	show := func(terminal bool) string {
		var out bytes.Buffer
		line := newProgressLine(&out)
		line.terminal = terminal
		line.show(start, "one", false)
		line.show(start.Add(200*time.Millisecond), "two", false)
		line.show(start.Add(400*time.Millisecond), "three", true)
		return out.String()
	}
	if got, want := show(true), "\rone\x1b[K\rtwo\x1b[K\rthree\x1b[K\n"; got != want {
		t.Errorf("on a terminal: %q, want %q", got, want)
	}
	if got, want := show(false), "one\nthree\n"; got != want {
		t.Errorf("elsewhere: %q, want %q", got, want)
	}
}

// Who starts the lab is told how to see what Berth does; other schedulers cannot be
// asked, and one with plugins of its own cannot say why.
func TestWatching(t *testing.T) {
	const flags = "--daemon https://127.0.0.1:10259 --insecure-skip-tls-verify --kubeconfig /tmp/lab/admin.kubeconfig\n"
	const top = "  how it stands: /src/bin/berth status " + flags + "  watch it: /src/bin/berth top " + flags + "  in a browser: /src/bin/berth view " + flags
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{Scheduler: schedulerBerth}, top + "  why pods wait: /src/bin/berth why --all " + flags},
		{Options{Scheduler: schedulerBerth, Berth: "bin/mine"}, top + "  what happened to a pod: /src/bin/berth events NAMESPACE/POD " + flags},
		{Options{Scheduler: schedulerKube}, ""},
	} {
		if got := c.options.watching("/src/bin/berth", "/tmp/lab/admin.kubeconfig", 10259); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.options, got, c.want)
		}
	}
}

// The address of the page comes last. Where the tool is not there, or says why it serves none, the
// lab goes on.
func TestPage(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, tt := range []struct {
		viewer []string
		want   string
	}{
		{nil, ""},
		{[]string{"/nowhere/berth", "view"}, ""},
		{[]string{"/bin/sh", "-c", "echo berth: no scheduler >&2; exit 2"}, "There is no page: berth: no scheduler\n"},
		{[]string{"/bin/sh", "-c", "echo http://127.0.0.1:9259/start?once=X; exec sleep 600"}, "See it in a browser, within a minute (later: the command above):\nhttp://127.0.0.1:9259/start?once=X\n"},
	} {
		var out bytes.Buffer
		(&run{out: &out, viewer: tt.viewer}).startPage(ctx)
		if out.String() != tt.want {
			t.Errorf("%v: says %q, want %q", tt.viewer, &out, tt.want)
		}
	}
}

// The gates go to the API server and to the scheduler, and the APIs that they add are
// served. Without the flag both have their defaults.
func TestGates(t *testing.T) {
	o := Options{Scheduler: "none"}
	s, err := o.schedulerOptions()
	if err != nil || len(s.Flags)+len(o.apiServerFlags()) > 0 {
		t.Errorf("without gates: %v %v %v", s.Flags, o.apiServerFlags(), err)
	}
	o.Gates = "DRANodeAllocatableResources=true"
	s, err = o.schedulerOptions()
	if err != nil || !slices.Equal(s.Flags, []string{"--feature-gates=DRANodeAllocatableResources=true"}) {
		t.Errorf("the scheduler gets %v %v", s.Flags, err)
	}
	if got := o.apiServerFlags(); !slices.Equal(got, []string{"--feature-gates=DRANodeAllocatableResources=true", "--runtime-config=api/alpha=true,api/beta=true"}) {
		t.Errorf("the API server gets %v", got)
	}
}
