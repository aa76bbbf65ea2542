package tool

import (
	"strings"
	"testing"
)

// A pod or a namespace that is to be explained and is not there is an error.
func TestExplainWhatIsNotThere(t *testing.T) {
	for args, want := range map[string]string{
		"--pod shop/cart-0": "berth: --pod: there is no pod shop/cart-0\n",
		"--pod pp":          "berth: --pod: there is no pod default/pp; did you mean default/p?\n",
		"--pod p --pod /p":  "berth: --pod: there is no pod /p\n",
		"-n nope":           "berth: --namespace nope: it has no pod\n",
		"-n defalt":         "berth: --namespace defalt: it has no pod; did you mean default?\n",
		"--pod p -n shop":   "berth: --pod: there is no pod shop/p\n",
		"-l app=nope":       "berth: --selector app=nope: no pod has such labels\n",
		"-l !app":           "",
		"--pod p":           "",
		"--pod pod/p":       "",
		"-n default":        "",
	} {
		code, _, errs := berth(nodeYAML+"---\n"+podYAML, append([]string{"simulate", "-f", "-"}, strings.Fields(args)...)...)
		if errs != want || want != "" && code != exitInvalid || want == "" && code != exitPlaced {
			t.Errorf("%s: exit status %d, stderr %q, want %q", args, code, errs, want)
		}
	}
}
