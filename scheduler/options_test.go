package scheduler

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	logsapi "k8s.io/component-base/logs/api/v1"
	baseversion "k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/logs/logstest"
)

// One process applies many command lines here.
func TestMain(m *testing.M) {
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	m.Run()
}

// parsed returns the options of a command line.
func parsed(t *testing.T, args ...string) *options {
	t.Helper()
	o := newOptions()
	command := newCommand(o)
	if err := command.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	if err := o.registry.Set(); err != nil {
		t.Fatal(err)
	}
	return o
}

func configFile(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	body = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" + body
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Flags say what no file says; beside a file only those on leader election and
// the stay of unschedulable pods count.
func TestFlagsAndFile(t *testing.T) {
	flags := []string{"--kubeconfig=from-flag", "--kube-api-qps=7", "--kube-api-burst=8", "--kube-api-content-type=application/json",
		"--profiling=false", "--contention-profiling=false", "--leader-elect-lease-duration=40s", "--leader-elect-resource-name=mine",
		"--pod-max-in-unschedulable-pods-duration=1m"}

	o := parsed(t, flags...)
	c, err := o.config()
	if err != nil {
		t.Fatal(err)
	}
	cc := c.ClientConnection
	if cc.Kubeconfig != "from-flag" || cc.QPS != 7 || cc.Burst != 8 || cc.ContentType != "application/json" || *c.EnableProfiling || *c.EnableContentionProfiling {
		t.Errorf("without a file: %+v, profiling %v", cc, *c.EnableProfiling)
	}
	if ignored := o.ignoredFlags(); ignored != nil {
		t.Errorf("ignored without a file: %v", ignored)
	}

	o = parsed(t, append(flags, "--config="+configFile(t, "clientConnection: {kubeconfig: from-file}\nleaderElection: {leaseDuration: 30s, renewDeadline: 20s}"))...)
	if c, err = o.config(); err != nil {
		t.Fatal(err)
	}
	cc, lease := c.ClientConnection, c.LeaderElection
	if cc.Kubeconfig != "from-file" || cc.QPS != 50 || !*c.EnableProfiling {
		t.Errorf("with a file: %+v, profiling %v", cc, *c.EnableProfiling)
	}
	if lease.LeaseDuration.Duration != 40*time.Second || lease.RenewDeadline.Duration != 20*time.Second || lease.ResourceName != "mine" {
		t.Errorf("with a file: %+v", lease)
	}
	if o.deprecated.maxUnschedulable != time.Minute {
		t.Errorf("stay of unschedulable pods: %v", o.deprecated.maxUnschedulable)
	}
	want := []string{"--contention-profiling", "--kube-api-burst", "--kube-api-content-type", "--kube-api-qps", "--kubeconfig", "--profiling"}
	if got := o.ignoredFlags(); !slices.Equal(got, want) {
		t.Errorf("ignored %v, want %v", got, want)
	}
}

// Without flags the lease and the port are kube-scheduler's, and the options are valid.
func TestDefaultsAreKubeSchedulers(t *testing.T) {
	o := parsed(t)
	c, err := o.config()
	if err != nil {
		t.Fatal(err)
	}
	if !*c.LeaderElection.LeaderElect || c.LeaderElection.ResourceName != "kube-scheduler" || o.serving.BindPort != 10259 {
		t.Errorf("%+v, port %d", c.LeaderElection, o.serving.BindPort)
	}
	if err := o.validate(); err != nil {
		t.Error(err)
	}
}

// A shadow holds no lease, whatever the file says, and its connection only reads.
func TestShadowFlags(t *testing.T) {
	o := parsed(t, "--shadow", "--master=http://nowhere.invalid", "--config="+configFile(t, "leaderElection: {leaderElect: true}"))
	c, err := o.config()
	if err != nil {
		t.Fatal(err)
	}
	if *c.LeaderElection.LeaderElect {
		t.Error("it applies for the lease")
	}
	if err := o.validate(); err != nil {
		t.Error(err)
	}
	api, err := o.restConfig(c.ClientConnection)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(api)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		request, err := http.NewRequest(method, "http://nowhere.invalid/api/v1/pods", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		if err == nil {
			response.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "a shadow only reads") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// A command line that is wrong is refused with one line that names the fault.
func TestBadCommandLines(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string // in the error
	}{
		{"no such file", []string{"--config=nowhere.yaml"}, "nowhere.yaml"},
		{"unknown field", []string{"--config=" + configFile(t, "colour: red")}, `unknown field "colour"`},
		{"lease shorter than its renewal", []string{"--leader-elect-lease-duration=5s"}, "leaseDuration"},
		{"negative stay", []string{"--pod-max-in-unschedulable-pods-duration=-1s"}, "--pod-max-in-unschedulable-pods-duration"},
		{"shadow with a lease", []string{"--shadow", "--leader-elect=true"}, "--leader-elect: must not be true with --shadow"},
		{"traces of a shadow", []string{"--shadow", "--tracing-config-file=tracing.yaml"}, "--tracing-config-file: must not be given with --shadow"},
		{"no file for traces", []string{"--secure-port=0", "--master=http://127.0.0.1:1", "--tracing-config-file=nowhere.yaml"}, "--tracing-config-file: nowhere.yaml"},
		{"file of no shadow", []string{"--shadow-to=differences.jsonl"}, "--shadow-to: needs --shadow"},
		{"bad port", []string{"--secure-port=70000"}, "70000"},
		{"unknown gate", []string{"--feature-gates=Nonsense=true"}, "Nonsense"},
		{"gate that Berth lacks", []string{"--feature-gates=GenericWorkload=true,DRAWorkloadResourceClaims=true"}, "feature gate DRAWorkloadResourceClaims=true is not supported: no claim is reserved"},
		{"version too old", []string{"--emulated-version=1.33"}, "emulation version 1.33 is not between [1.34, 1.37.0]"},
		{"components that are too old", []string{"--min-compatibility-version=1.33"}, "minCompatibilityVersion version 1.33 is not between [1.34, 1.37]"},
		{"components newer than what is emulated", []string{"--emulated-version=1.35", "--min-compatibility-version=1.36"}, "minCompatibilityVersion version 1.36 is not between [1.34, 1.35]"},
		{"gate that a later version brought", []string{"--emulated-version=1.35", "--feature-gates=DRANodeAllocatableResources=true"}, "feature is PreAlpha at emulated version 1.35"},
		{"an argument", []string{"extra"}, "extra"},
		{"unknown version form", []string{"--version=loud"}, "loud"},
		{"no API server", []string{"--secure-port=0"}, "give --kubeconfig"},
		{"no API server in the file", []string{"--secure-port=0", "--kubeconfig=nowhere", "--config=" + configFile(t, "")},
			"no API server: with --config the kubeconfig is the one that the file names (clientConnection.kubeconfig), or give --master"},
		{"no such kubeconfig", []string{"--secure-port=0", "--kubeconfig=nowhere"}, "nowhere"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			command := NewCommand()
			command.SetArgs(tt.args)
			err := command.Execute()
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, tt.want)
			}
		})
	}
}

// --write-config-to writes the effective configuration, which can be read again.
func TestWriteConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "effective.yaml")
	command := NewCommand()
	command.SetArgs([]string{"--config=" + configFile(t, "podMaxBackoffSeconds: 33"), "--leader-elect=false", "--write-config-to=" + path})
	if err := command.Execute(); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path) // what is written can be read
	if err != nil {
		t.Fatal(err)
	}
	if *c.PodMaxBackoffSeconds != 33 || *c.LeaderElection.LeaderElect {
		t.Errorf("got %v, %v", *c.PodMaxBackoffSeconds, *c.LeaderElection.LeaderElect)
	}
}

// The start is logged in kube-scheduler's words.
func TestStartLines(t *testing.T) {
	s := &logstest.Sink{Verbosity: 2}
	klog.SetLoggerWithOptions(s.Logger(), klog.ContextualLogger(true))
	defer klog.ClearLogger()
	if err := start(parsed(t, "--write-config-to="+filepath.Join(t.TempDir(), "effective.yaml"))); err != nil {
		t.Fatal(err)
	}
	logStart(klog.Background())
	for _, row := range logstest.Missing("scheduler, TestStartLines", s.Lines()) {
		t.Errorf("never written: %s", row)
	}
}

// What the daemon refuses is not written as a configuration either.
func TestWriteConfigRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"profiles: [{plugins: {score: {enabled: [{name: Nonsense}]}}}]":                              `ScorePlugin "Nonsense" does not exist`,
		"extenders: [{urlPrefix: 'https://x', tlsConfig: {certData: Zm9v, keyData: Zm9v}}]":          "extenders[0] (https://x): tls: ",
		"extenders: [{urlPrefix: 'https://x', tlsConfig: {certFile: /none/cert, keyFile: /none/k}}]": "open /none/cert",
	} {
		path := filepath.Join(t.TempDir(), "effective.yaml")
		command := NewCommand()
		command.SetArgs([]string{"--config=" + configFile(t, text), "--write-config-to=" + path})
		if err := command.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: a file was written", text)
		}
	}
}

// Forms of --version that print nothing do not end the start.
func TestVersionToReport(t *testing.T) {
	defer func(v string) { _ = baseversion.SetDynamicVersion(v) }(baseversion.Get().GitVersion)
	own := "v0.0.0-master-own" // a test is linked without a version
	for form, want := range map[string]string{"false": "", "0": "", own: "", "v9.0.0": "must match", "maybe": "must be true, false, raw or a version"} {
		path := filepath.Join(t.TempDir(), "effective.yaml")
		command := NewCommand()
		command.SetArgs([]string{"--version=" + form, "--write-config-to=" + path})
		err := command.Execute()
		if _, written := os.Stat(path); (written == nil) != (want == "") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("--version=%s: %v, %v", form, err, written)
		}
	}
	if got := baseversion.Get().GitVersion; got != own {
		t.Errorf("reports %s", got)
	}
}

// --version prints the version of Kubernetes, and --help the flags.
func TestVersionAndHelp(t *testing.T) {
	minor := strings.TrimPrefix(baseversion.DefaultKubeBinaryVersion, "1.") // a test is linked without the versions of its modules
	for arg, want := range map[string]string{
		"--version":     "Kubernetes v1." + minor,
		"--version=raw": `version.Info{Major:"1", Minor:"` + minor + `", `,
		"--help":        "Leader election flags:",
	} {
		var out bytes.Buffer
		command := NewCommand()
		command.SetOut(&out)
		command.SetArgs([]string{arg})
		if err := command.Execute(); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v, %q lacks %q", arg, err, out.String(), want)
		}
	}
}

// A file of a flag that is none is refused at the start, and not waited for.
func TestFilesOfFlags(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--tls-cert-file", "--tls-private-key-file", "--client-ca-file", "--requestheader-client-ca-file", "--authentication-kubeconfig", "--authorization-kubeconfig"} {
		if _, err := parsed(t, flag+"="+pipe).secure(); err == nil || err.Error() != flag+": read "+pipe+": is a named pipe, not a regular file" {
			t.Errorf("%s: %v", flag, err)
		}
	}
	if _, err := parsed(t, "--tls-sni-cert-key="+pipe+",nowhere").secure(); err == nil || !strings.Contains(err.Error(), "--tls-sni-cert-key 1: certificate: read "+pipe+": is a named pipe") {
		t.Error(err)
	}
	for _, args := range [][]string{{"--kubeconfig=" + pipe}, {"--config=" + pipe}, {"--master=http://127.0.0.1:1", "--tracing-config-file=" + pipe}} {
		command := NewCommand()
		command.SetArgs(append(args, "--secure-port=0"))
		if err := command.Execute(); err == nil || !strings.Contains(err.Error(), pipe+": is a named pipe, not a regular file") {
			t.Errorf("%s: %v", args, err)
		}
	}
}
