package tool

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/records"
)

// A shell completes the forms of -o, a verb where a change begins, and names that the
// cluster has. Without a cluster there are none, and no error.
func TestCompletion(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names := map[string]string{"/api/v1/nodes": "node-1 node-2", "/api/v1/namespaces": "default shop", "/api/v1/namespaces/default/pods": "web-0 web-1 db-0", "/api/v1/namespaces/shop/pods": "cart-0"}[r.URL.Path]
		list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
		for i, name := range strings.Fields(names) {
			o := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}}
			o.Name, o.Labels = name, map[string]string{"topology.kubernetes.io/zone": string(rune('a' + i))}
			list.Items = append(list.Items, o)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(s.Close)
	const verbs = "drain cordon uncordon remove lose-zone add-nodes scale apply priority evict quota :4"
	there, nowhere := kubeconfigFor(t, s.URL), kubeconfigFor(t, "http://127.0.0.1:1")
	for args, want := range map[string]string{
		"why|-o|":                     "text wide yaml json name jsonpath= go-template= :4",
		"events|--output|":            "text json name jsonpath= go-template= :4",
		"replay|dir|-o|":              "table wide json name jsonpath= go-template= :4",
		"what-if|":                    verbs,
		"what-if|drain|n1,|":          verbs,
		"what-if|drain|n1|,|":         verbs,
		"what-if|drain|n,|apply|":     ":0",
		"what-if|scale|":              ":4",
		"what-if|drain|":              "node-1 node-2 :4",
		"what-if|drain|node-1|node-2": "node-2 :4",
		"what-if|lose-zone|":          "a b :4",
		"what-if|evict|web":           "web-0 web-1 :4",
		"why|":                        "web-0 web-1 db-0 :4",
		"why|-n|shop|":                "cart-0 :4",
		"why|shop/":                   "shop/cart-0 :4",
		"why|web-0|":                  ":4",
		"why|-n|":                     "default shop :4",
		"why|--context|":              "c :4",
		"top|--user|":                 "u :4",
		"record|--cluster|":           "c :4",
		"events|d":                    "db-0 :4",
		"events|--node|":              "node-1 node-2 :4",
		"fit|--nodes-like|":           "node-1 node-2 :4",
		"simulate|--pod|web-1":        "web-1 :4",
	} {
		t.Setenv("KUBECONFIG", there)
		status, out, _ := berth("", append([]string{"__complete"}, strings.Split(args, "|")...)...)
		if got := strings.Join(strings.Fields(out), " "); status != 0 || got != want {
			t.Errorf("%s: %d %q, want %q", args, status, got, want)
		}
		for _, none := range []string{nowhere, "/nowhere"} {
			t.Setenv("KUBECONFIG", none)
			if status, out, errs := berth("", append([]string{"__complete"}, strings.Split(args, "|")...)...); status != 0 || !strings.Contains(out, ":") || strings.Contains(errs, "berth:") {
				t.Errorf("%s without a cluster: %d %q %q", args, status, out, errs)
			}
		}
	}
}

// kubectl's templates and names are made of a command's JSON. The exit status is that of
// the answer; a template that is wrong is an error.
func TestTemplates(t *testing.T) {
	const small = "-f|testdata/small.yaml|"
	file := filepath.Join(t.TempDir(), "template")
	write(t, file, "{{.kind}}")
	for args, want := range map[string]string{
		"simulate|" + small + "-o|jsonpath={.kind} {.seed}":                                                "1 SimulationResult 1",
		"simulate|" + small + "-o|name":                                                                    "1 pod/big pod/gated pod/stranger pod/trainer pod/web ",
		"simulate|" + small + "-o|go-template={{len .placements}}":                                         "1 2",
		"simulate|" + small + "--template|{{.kind}}":                                                       "1 SimulationResult",
		"simulate|" + small + "-o|go-template-file=" + file:                                                "1 SimulationResult",
		"simulate|" + small + "-o|jsonpath-as-json={.kind}":                                                `1 [ "SimulationResult" ] `,
		"why|" + small + "big|-o|jsonpath={.verdict}":                                                      "3 Misconfigured",
		"why|" + small + "big|-o|name":                                                                     "3 pod/big ",
		"fit|" + small + "--pod|web|-o|jsonpath={.fits}":                                                   "0 6",
		"what-if|-f|testdata/zones.yaml|drain|node-1|-o|name":                                              "0 pod/web-abc-11 pod/web-abc-12 ",
		"why|--all|" + small + "-o|name":                                                                   "2 berth: -o name: the answer is about no single object; take -o jsonpath=TEMPLATE ",
		"simulate|" + small + "-o|jsonpath={.kind":                                                         "2 berth: -o jsonpath={.kind: error parsing jsonpath {.kind, unclosed action ",
		"simulate|" + small + "-o|jsonpath={.nope}|--allow-missing-template-keys=false":                    "2 berth: error executing jsonpath \"{.nope}\": Error executing template: nope is not found",
		"simulate|" + small + "-o|jsonpath-file=/dev/zero":                                                 "2 berth: -o jsonpath-file=/dev/zero: read /dev/zero: is a device, not a regular file ",
		"simulate|" + small + "-o|go-template={{define \"a\"}}{{template \"a\"}}{{end}}{{template \"a\"}}": "2 berth: error executing template \"{{define \\\"a\\\"}}",
		"simulate|" + small + "-o|jsonpath":                                                                "2 berth: -o jsonpath: template format specified but no template given ",
	} {
		status, out, errs := berth("", strings.Split(args, "|")...)
		got := fmt.Sprint(status, " ", strings.Join(strings.Fields(out+errs), " "))
		if want = strings.TrimSpace(want); got != want && !(status == exitInvalid && strings.HasPrefix(got, want)) {
			t.Errorf("berth %s: %q, want %q", args, got, want)
		}
	}
}

// A template is applied to each record, and a line break in a text from outside breaks no
// line.
func TestTemplateOfRecords(t *testing.T) {
	flags := scheduler(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(api.RecordList{Head: api.Head{APIVersion: api.Version, Kind: "RecordList"},
			Records: []records.Record{{Pod: "shop/a", Message: "x\ny"}, {Pod: "shop/b"}}})
	})
	for form, want := range map[string]string{
		`jsonpath={.pod} {.message}{"\n"}`: "shop/a x\\ny\nshop/b \n",
		"name":                             "pod/a\npod/b\n",
	} {
		if status, out, errs := berth("", append([]string{"events", "--node", "n", "-o", form}, flags...)...); status != 0 || out != want {
			t.Errorf("%s: %d %q %s, want %q", form, status, out, errs, want)
		}
	}
}
