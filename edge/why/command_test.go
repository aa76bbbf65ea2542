package why

import (
	"os/exec"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/manifest"
)

// A command that is pasted into a shell runs kubectl alone, whatever the names and values
// in it say: the shell hands them on as they are.
func TestCommandsRunNothingElse(t *testing.T) {
	const odd = "a'b $(echo ran) `echo ran` \"; echo ran; #"
	for _, test := range []struct {
		change fix.Change
		given  string // an argument, or a line of the object
	}{
		{fix.Change{Kind: "Pod", Name: odd, Namespace: "n", Delete: true}, odd},
		{fix.Change{Kind: "PersistentVolumeClaim", Name: "c", Namespace: odd, Patch: []fix.Op{{Op: "add", Path: "/spec/volumeName", Value: odd}}}, odd},
		{fix.Change{Kind: "Node", Name: odd, Patch: []fix.Op{{Op: "add", Path: "/metadata/labels/zone", Value: odd}}}, "zone=" + odd},
		{fix.Change{Kind: "ConfigMap", Create: &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"k": odd}}}, "  k: '" + strings.ReplaceAll(odd, "'", "''") + "'"},
	} {
		lines := (&facts{cluster: &Cluster{Set: manifest.NewSet()}}).command(&test.change)
		script := "kubectl() { for a; do echo \"given $a\"; done; [ \"$1\" != create ] || sed 's/^/given /'; }\n" + strings.Join(lines, "\n") + "\n"
		out, err := exec.Command("sh", "-c", script).CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if !strings.HasPrefix(line, "given ") {
				t.Errorf("the shell ran more than kubectl: %q of\n%s", line, script)
			}
		}
		if !strings.Contains(string(out), "given "+test.given+"\n") {
			t.Errorf("kubectl was not given %s but\n%s", test.given, out)
		}
	}
}
