package tool

import (
	"strings"
	"testing"
)

// A pod whose scheduler the configuration lacks gets no answer about room: each
// command says which configuration it used, and what to give.
func TestPodOfAnotherScheduler(t *testing.T) {
	node := strings.Replace(nodeYAML, "name: a", "name: b", 1)
	pod := strings.Replace(podYAML, "containers", "schedulerName: berth, containers", 1)
	running := strings.NewReplacer("name: p", "name: r", "containers", "nodeName: a, containers").Replace(pod)
	cluster := strings.Join([]string{nodeYAML, node, running, pod}, "---\n")
	const reason = `no profile of the configuration used here (kube-scheduler's defaults) has the schedulerName "berth": give --config FILE of that scheduler`
	for _, c := range []struct {
		args   string
		code   int
		has    []string
		hasNot string
	}{
		{"why p", exitWaiting, []string{reason + ", or --daemon auto"}, "fits"},
		{"why --all", exitWaiting, []string{reason + ", or --daemon auto"}, "fits"},
		{"what-if drain a", exitUnplaced, []string{"drain a: 0 pods move, 1 pod of another scheduler\n", "\nOF ANOTHER SCHEDULER, NOT TRIED\n  default/p, default/r\n    " + reason + "\n"}, "ithout a node"},
		{"fit --pod p", exitInvalid, []string{"berth: " + reason + "\n"}, "fit\n"},
		{"simulate", exitUnplaced, []string{reason}, "available"},
	} {
		code, out, errs := berth(cluster, append(strings.Fields(c.args), "-f", "-")...)
		for _, want := range c.has {
			if !strings.Contains(out+errs, want) {
				t.Errorf("%s: lacks %q:\n%s%s", c.args, want, out, errs)
			}
		}
		if code != c.code || strings.Contains(out, c.hasNot) {
			t.Errorf("%s: exit status %d, want %d:\n%s%s", c.args, code, c.code, out, errs)
		}
	}
}
