package tool

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/edge/config/features"
)

// A file that is wrong is told of by line and ends with status 2; one that is
// right shows what it changes.
func TestConfig(t *testing.T) {
	const header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	for _, tt := range []struct {
		args, text string
		status     int
		out, err   string
	}{
		{"config check -", header + "parallelism: 8\n", exitPlaced, "-: nothing is wrong\n", ""},
		{"config check -", header + "paralelism: 8\npodMaxBackoffSeconds: x\n", exitInvalid,
			"-:3: paralelism: there is no such field; did you mean parallelism?\n-:4: podMaxBackoffSeconds: must be a whole number of at most 64 bits\n", "berth: 2 problems\n"},
		{"config check --feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true -", header, exitInvalid, "", "berth: --feature-gates: feature gate CompositePodGroup=true is not supported: no group has groups\n"},
		{"config check --feature-gates=Nonsense=true -", header, exitInvalid, "", "berth: --feature-gates: unrecognized feature gate: Nonsense\n"},
		{"config check --plugins=Mine -", header + "profiles: [{plugins: {score: {enabled: [{name: Mine}]}}}]", exitPlaced, "-: nothing is wrong\n", ""},
		{"config check", "", exitInvalid, "", "berth: which configuration? give its file, or - for standard input\n"},
		{"config show --effective --diff -", header + "parallelism: 8\nprofiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 5}}]}]\n", exitPlaced,
			"- parallelism: 16\n+ parallelism: 8\n  profiles:\n  - schedulerName: default-scheduler\n    pluginConfig:\n    - args: # InterPodAffinity\n-       hardPodAffinityWeight: 1\n+       hardPodAffinityWeight: 5\n", ""},
		{"config show --diff -", header + "profiles: [{schedulerName: default-scheduler}, {schedulerName: like-it}, {schedulerName: batch, plugins: {score: {disabled: [{name: ImageLocality}]}}}]\n", exitPlaced,
			"  profiles:\n+ - schedulerName: like-it\n+ - schedulerName: batch\n    plugins:\n-     score: {}\n+     score:\n+       disabled:\n+       - name: ImageLocality\n", ""},
		{"config show --diff -", header, exitPlaced, "", ""},
		{"config show -", header + "parallelism: 0\n", exitInvalid, "", "berth: -: parallelism: Invalid value: 0: should be an integer value greater than zero; \"config check\" lists everything that is wrong, by line\n"},
	} {
		var out, errs bytes.Buffer
		status := run(append([]string{"berth"}, strings.Fields(tt.args)...), strings.NewReader(tt.text), &out, &errs)
		if status != tt.status || out.String() != tt.out || errs.String() != tt.err {
			t.Errorf("%s: status %d, want %d\nout %s\nwant %s\nerr %s\nwant %s", tt.args, status, tt.status, out.String(), tt.out, errs.String(), tt.err)
		}
	}
	var out, errs bytes.Buffer
	if run([]string{"berth", "config", "show", "--effective", "-"}, strings.NewReader(header), &out, &errs); !strings.Contains(out.String(), "podMaxBackoffSeconds: 10\n") {
		t.Errorf("without the defaults: %s %s", out.String(), errs.String())
	}
}

// A gate is refused exactly where berth-scheduler refuses to start with it.
func TestConfigGates(t *testing.T) {
	const text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	refused := 0
	for gate := range features.New().GetAll() {
		for _, value := range []bool{true, false} {
			flag := fmt.Sprintf("%s=%t", gate, value)
			gates := features.New()
			if gates.Set(flag) != nil {
				continue // locked
			}
			want := exitPlaced
			if len(features.Unsupported(gates)) > 0 {
				want = exitInvalid
				refused++
			}
			if code, _, errs := berth(text, "config", "check", "-", "--feature-gates", flag); code != want || want == exitInvalid && !strings.Contains(errs, "feature gate ") {
				t.Errorf("%s: exit status %d, want %d; stderr %q", flag, code, want, errs)
			}
		}
	}
	if refused == 0 {
		t.Error("no gate is refused")
	}
}
