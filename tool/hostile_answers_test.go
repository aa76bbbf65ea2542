package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/why"
)

// fill puts evil wherever the value may hold text, and something wherever it may hold
// anything.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(noon))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(evil).Convert(v.Type().Key()), value)
	case reflect.String:
		v.SetString(evil)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	}
}

// filled is a value as JSON with evil in all its text.
func filled[T any](change func(*T)) []byte {
	var v T
	fill(reflect.ValueOf(&v).Elem())
	change(&v)
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// hostileRecords are records of each type, with each result.
func hostileRecords() (list [][]byte) {
	for _, kind := range []records.Type{evil, records.Attempt, records.Moved, records.Bound, records.BindingUnknown, records.Evicted} {
		for _, result := range []string{evil, "Scheduled", "Preempting", "Gated"} {
			for _, to := range []string{evil, "in flight", "nowhere"} {
				list = append(list, filled(func(r *records.Record) { r.Type, r.Result, r.To = kind, result, to }))
			}
		}
	}
	return list
}

// Whatever a daemon answers, with whatever status, nothing of it acts on the terminal,
// and no value of it begins a line.
func TestNoDaemonActsOnTheTerminal(t *testing.T) {
	list := fmt.Sprintf(`{"records": [%s], "more": true}`, joined(hostileRecords(), ","))
	stream := ""
	for _, r := range hostileRecords() {
		stream += fmt.Sprintf("event: record\ndata: %s\n\n", r)
	}
	stream += fmt.Sprintf("event: end\ndata: %s\n\n", filled(func(p *api.Problem) {}))
	shown := strings.ReplaceAll(evil, "FORGED", "") // lines of a text are the daemon's own
	problem := string(filled(func(p *api.Problem) { p.Kind = "Problem" }))
	for _, answer := range []struct {
		status               int
		records, watch, rest string
	}{
		{200, list, stream, string(filled(func(s *api.Summary) { s.Head = api.Head{APIVersion: api.Version, Kind: "Summary"} }))},
		{200, list, stream, string(filled(func(s *api.Status) { s.Head = api.Head{APIVersion: api.Version, Kind: "Status"} }))},
		{200, list, stream, string(filled(func(a *why.Answer) { a.Verdict = why.Waiting }))},
		{200, shown + "\x9b31m", "data: " + shown + "\n", shown + "\x9b31m\xff"},
		{200, `"` + shown + "\x9b\"", "event: end\ndata: \x9b", `{"verdict": "Waiting", "leader": "` + "\x9b\x7f\u0085\u202e" + `"}`},
		{404, problem, problem, problem},
		{503, evil, evil, "\x9b31m" + evil},
		{403, string(filled(func(s *metav1.Status) {})), evil, string(filled(func(s *metav1.Status) {}))},
		{401, evil, evil, evil},
	} {
		flags := scheduler(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(api.VerdictHeader, "Waiting\x9b\u202e")
			w.Header().Set(api.PendingHeader, "1\x9b")
			w.WriteHeader(answer.status)
			switch body := answer.rest; strings.TrimPrefix(r.URL.Path, api.Prefix) {
			case "records":
				fmt.Fprint(w, answer.records)
			case "watch":
				fmt.Fprint(w, answer.watch)
			default:
				fmt.Fprint(w, body)
			}
		})
		for _, call := range []string{"events a/b", "events --node n", "events a/b -o json", "events --node n --follow", "top", "top --once -o json", "status", "status -o json", "status -o yaml",
			"why a/b", "why a/b -o json", "why a/b -o yaml", "why --all", "why --all -o json", "why --all -o yaml"} {
			args := strings.Fields(call)
			if args[0] == "why" {
				args = append([]string{"why"}, args[1:]...)
			}
			_, out, errs := berth("", append(args, flags...)...)
			checkShown(t, fmt.Sprintf("%s, answered %d %.40q", call, answer.status, answer.rest), out+errs)
		}
	}
}

func joined(list [][]byte, by string) string {
	var all []string
	for _, text := range list {
		all = append(all, string(text))
	}
	return strings.Join(all, by)
}

// Neither names of files, arguments, nor what an API server answers acts on the terminal.
func TestNoNameOrServerActsOnTheTerminal(t *testing.T) {
	name := strings.ReplaceAll(evil, "/", "")
	t.Chdir(t.TempDir())
	write(t, name+".yaml", nodeYAML+"---\nkind: "+`"`+`\e[31m\a\x9b\u202e`+`"`)
	write(t, "bytes.json", `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a`+"\x9b31m\x1b"+`"}}`)
	write(t, "kubeconfig", `{"apiVersion": "v1", "kind": "Config", "current-context": `+quotedJSON(evil)+`}`)
	status := filled(func(s *metav1.Status) { s.Kind, s.APIVersion = "Status", "v1" })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Warning", `299 - "`+"\x9b"+`"`)
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write(status)
	}))
	defer server.Close()
	live := kubeconfigFor(t, server.URL)
	for _, args := range [][]string{
		{"simulate", "-f", name + ".yaml"}, {"simulate", "-f", name}, {"simulate", "-f", "bytes.json"}, {"simulate", "-f", ".", "--pod", evil},
		{"simulate", "-f", name + ".yaml", "--config", name}, {"simulate", "-f", name + ".yaml", "--config", name + ".yaml"},
		{"simulate", "-o", evil}, {"simulate", "--" + evil}, {evil}, {"simulate", evil}, {"why", evil, "-f", name + ".yaml"}, {"events", evil + "/", "--daemon", evil},
		{"top", "--daemon", "https://" + evil}, {"what-if", "-f", name + ".yaml", "drain", evil}, {"what-if", "-f", name + ".yaml", evil}, {"fit", "-f", name + ".yaml", "--pod", evil, "--nodes-like", evil},
		{"fit", "-f", name + ".yaml", "--nodes-like", evil}, {"replay", name}, {"compare", name, name, "--record", name}, {"record", "--to", name, "--limit", evil}, {"config", "check", name},
		{"config", "check", name + ".yaml"}, {"config", "show", name}, {"simulate", "--feature-gates", evil}, {"simulate", "--kubeconfig", "kubeconfig"},
		{"simulate", "--kubeconfig", live}, {"why", "--all", "--kubeconfig", live}, {"why", "a", "--daemon", "auto", "--kubeconfig", live}, {"top", "--kubeconfig", live}, {"events", "a", "--kubeconfig", name},
	} {
		_, out, errs := berth("", args...)
		checkShown(t, fmt.Sprintf("%q", args), out+errs)
	}
}

func quotedJSON(text string) string {
	data, _ := json.Marshal(text) // a string always encodes
	return string(data)
}

// Whatever stands in whichever field of a configuration, neither what is wrong with it nor
// the configuration itself acts on the terminal.
func TestNoConfigurationActsOnTheTerminal(t *testing.T) {
	list := leaves(reflect.TypeFor[configv1.KubeSchedulerConfiguration](), nil, map[reflect.Type]bool{})
	list = append(list, leaf{[]any{evil}, 1}, // not a field
		leaf{[]any{"profiles", 0, "pluginConfig", 0, "name"}, evil},
		leaf{[]any{"profiles", 0, "pluginConfig", 0}, map[string]any{"name": "NodeResourcesFit", "args": map[string]any{evil: evil}}},
		leaf{[]any{"profiles", 0, "pluginConfig", 0}, map[string]any{"name": "NodeAffinity", "args": map[string]any{"addedAffinity": evil}}})
	shown := 0
	for _, l := range list {
		c := map[string]any{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
		text, err := json.Marshal(put(c, l.path, l.value))
		if err != nil {
			t.Fatal(err)
		}
		// YAML takes only such escapes, and none of two halves.
		escaped := strings.ReplaceAll(terminal.Escape(string(text)), `\udb40\udc41`, "")
		for _, call := range []string{"config check -", "config show -", "config show --diff -"} {
			status, out, errs := berth(escaped, strings.Fields(call)...)
			if checkShown(t, fmt.Sprintf("%s of %q", call, l.path), out+errs); status == 0 && call == "config show -" {
				shown++
			}
		}
	}
	if shown < 5 {
		t.Errorf("%d configurations are shown, too few", shown)
	}
}

// A record of hostile objects, by a hostile scheduler, is replayed and compared without
// anything of it acting on the terminal.
func TestNoRecordActsOnTheTerminal(t *testing.T) {
	h := headerOf(t, morning)
	h.Berth = evil
	c, r, dir := recordedDay(t, h)
	var node v1.Node
	if err := yaml.Unmarshal([]byte(nodeYAML), &node); err != nil {
		t.Fatal(err)
	}
	node.Name, node.UID = evil, "n"
	c.Set(&node)
	for i := range 12 {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: evil, Name: fmt.Sprint(evil, i), UID: types.UID(fmt.Sprint(evil, i))}}
		p.Spec.SchedulerName, p.Spec.Containers = "default-scheduler", []v1.Container{{Name: evil}}
		p.CreationTimestamp = metav1.NewTime(morning)
		if i == 0 {
			p.Spec.Volumes = []v1.Volume{{Name: evil, VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: evil}}}}
		}
		c.Set(p)
	}
	c.Settle()
	r.Close(context.Background())
	write(t, filepath.Join(dir, "other.yaml"), "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: other}]\n")
	for _, call := range []string{"replay DIR", "replay DIR -o json", "replay DIR --seed 3 -o wide", "replay DIR --config DIR/other.yaml -o wide",
		"replay DIR --config DIR/other.yaml -o json", "compare recorded DIR/other.yaml --record DIR -o wide", "compare recorded DIR/other.yaml --record DIR -o json"} {
		status, out, errs := berth("", strings.Fields(strings.ReplaceAll(call, "DIR", dir))...)
		if checkShown(t, call, out+errs); status == exitInvalid {
			t.Errorf("%s: %s", call, errs)
		}
	}
	if segments, _ := filepath.Glob(filepath.Join(dir, "*")); len(segments) > 0 { // and one that is damaged
		data, _ := os.ReadFile(segments[0])
		write(t, segments[0], string(slices.Concat(data[:len(data)/2], []byte(evil))))
	}
	_, out, errs := berth("", "replay", dir)
	checkShown(t, "a damaged record", out+errs)
}

// The log of the libraries is as safe.
func TestLogOfTheLibraries(t *testing.T) {
	var b strings.Builder
	state := klog.CaptureState()
	defer state.Restore()
	logTo(&b)
	klog.Background().Error(fmt.Errorf("a %s", evil), "Failed", "key", evil)
	klog.Errorf("Failed: %s", evil)
	checkShown(t, "klog", strings.ReplaceAll(b.String(), "\n\tFORGED", "\n\t|FORGED")) // they are indented
	if strings.Contains(b.String(), "\nFORGED") || strings.Count(b.String(), "Failed") != 2 {
		t.Errorf("%q", b.String())
	}
}
