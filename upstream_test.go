package berth

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// All names of the version of Kubernetes say the same: go.mod names it, and the rest
// follows. lab/skew hosts the API server of another minor.
func TestOneVersionOfKubernetes(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	module := regexp.MustCompile(`\n\tk8s\.io/(?:api|apimachinery|apiserver|cli-runtime|client-go|component-base|component-helpers|csi-translation-lib|dynamic-resource-allocation|kube-scheduler|kubectl|kubernetes) v[01]\.(\S+)`)
	versions := module.FindAllStringSubmatch(read("go.mod"), -1)
	if len(versions) < 8 {
		t.Fatalf("go.mod names %d modules of Kubernetes", len(versions))
	}
	want := versions[0][1] // 37.2
	for _, file := range []string{"go.mod", "lab/go.mod"} {
		for _, m := range module.FindAllStringSubmatch(read(file), -1) {
			if m[1] != want {
				t.Errorf("%s: %s, want .%s", file, strings.TrimSpace(m[0]), want)
			}
		}
	}
	if got := strings.TrimSpace(read("testdata/upstream/version.txt")); got != "v1."+want {
		t.Errorf("testdata/upstream is of %s, go.mod names v1.%s: run make upstream, and do what its diff says", got, want)
	}
}
