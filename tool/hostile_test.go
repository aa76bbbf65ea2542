package tool

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/berth-scheduler/berth/edge/decode"
)

// evil is what an attacker writes wherever text may stand: escape sequences in both
// codings, what moves the cursor, what breaks a line, and what reorders or hides text.
const evil = "x\x1b[31m\x1b]0;t\a\b\r\t\x7f\v\f\nFORGED\u0085FORGED\u009b31m\u202e\u2066\u200f\u2028FORGED\u2029\u200b\u00ad\ufeff\u034f\ufe0f\U000e0041z"

// checkShown fails if the output has a character that a terminal obeys, hides or
// reorders by, or a line that a value from outside begins.
func checkShown(t *testing.T, what, output string) {
	t.Helper()
	for i, r := range output {
		bad := r != '\n' && r != '\t' && !unicode.IsGraphic(r) || strings.ContainsRune("\u034f\ufe0f", r)
		if r == unicode.ReplacementChar && !strings.HasPrefix(output[i:], "\ufffd") {
			bad = true // not UTF-8
		}
		if bad {
			t.Errorf("%s: %U reaches the terminal: %.200q", what, r, output[max(0, i-80):])
			return
		}
	}
	for line := range strings.Lines(output) {
		if strings.HasPrefix(strings.TrimLeft(line, " \t"), "FORGED") {
			t.Errorf("%s: a value begins a line: %.300q", what, output)
			return
		}
	}
}

// leaf is a place in an object, and what to put there.
type leaf struct {
	path  []any // names of members, and 0 for the element of a list
	value any
}

// opaque are the types that JSON has as one value.
var opaque = map[reflect.Type]bool{
	reflect.TypeFor[metav1.Time](): true, reflect.TypeFor[metav1.MicroTime](): true, reflect.TypeFor[metav1.Duration](): true,
	reflect.TypeFor[resource.Quantity](): true, reflect.TypeFor[intstr.IntOrString](): true,
}

// leaves lists every place of a type: evil where a value stands, whatever its type, and
// as each key of a map.
func leaves(of reflect.Type, path []any, within map[reflect.Type]bool) (list []leaf) {
	at := func(next any) []any { return append(path[:len(path):len(path)], next) }
	switch kind := of.Kind(); {
	case opaque[of]:
		return []leaf{{path, evil}}
	case kind == reflect.Pointer:
		return leaves(of.Elem(), path, within)
	case kind == reflect.Slice && of.Elem().Kind() != reflect.Uint8:
		return leaves(of.Elem(), at(0), within)
	case kind == reflect.Map:
		key := leaf{at(evil), "1"}
		if of.Elem().Kind() == reflect.Struct && !opaque[of.Elem()] {
			key.value = map[string]any{}
		}
		return append(leaves(of.Elem(), at("key"), within), key)
	case kind != reflect.Struct:
		return []leaf{{path, evil}}
	case within[of]:
		return nil
	}
	within[of] = true
	defer delete(within, of)
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "":
			list = append(list, leaves(of.Field(i).Type, path, within)...)
		default:
			list = append(list, leaves(of.Field(i).Type, at(name), within)...)
		}
	}
	return list
}

// put returns the container with the value at the path. It makes what is missing.
func put(in any, path []any, value any) any {
	if len(path) == 0 {
		return value
	}
	if name, is := path[0].(string); is {
		m, _ := in.(map[string]any)
		if m == nil {
			m = map[string]any{}
		}
		m[name] = put(m[name], path[1:], value)
		return m
	}
	list, _ := in.([]any)
	if len(list) == 0 {
		list = []any{nil}
	}
	list[0] = put(list[0], path[1:], value)
	return list
}

// plainObjects are objects whose places are filled, by kind; others are empty.
var plainObjects = map[string]string{
	"Node":       `{"status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}`,
	"Pod":        `{"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "9"}}}]}}`,
	"Deployment": `{"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}}}`,
}

// plainObject is an object of a kind without anything hostile, named o and a number.
func plainObject(t *testing.T, k *decode.Kind, number int) map[string]any {
	t.Helper()
	o := map[string]any{}
	if text := plainObjects[k.Name]; text != "" {
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
	}
	o["apiVersion"], o["kind"] = k.GroupVersion.String(), k.Name
	name := fmt.Sprintf("o%d", number)
	put(o, []any{"metadata", "uid"}, name)
	return put(o, []any{"metadata", "name"}, name).(map[string]any)
}

// hostileKinds are all kinds that files may hold. Fields of pods are tried in pods alone,
// and not in templates.
func hostileKinds() (kinds []decode.Kind, leavesOf func(*decode.Kind) []leaf) {
	add := func(name string, version string, empty func() metav1.Object) {
		k := decode.Kind{Name: name, New: empty}
		k.Group, k.Version, _ = strings.Cut(version, "/")
		kinds = append(kinds, k)
	}
	kinds = append(kinds, decode.Kinds...)
	add("Deployment", "apps/v1", func() metav1.Object { return &appsv1.Deployment{} })
	add("DaemonSet", "apps/v1", func() metav1.Object { return &appsv1.DaemonSet{} })
	add("Job", "batch/v1", func() metav1.Object { return &batchv1.Job{} })
	add("CronJob", "batch/v1", func() metav1.Object { return &batchv1.CronJob{} })
	add("ResourceClaimTemplate", "resource.k8s.io/v1", func() metav1.Object { return &resourcev1.ResourceClaimTemplate{} })
	return kinds, func(k *decode.Kind) []leaf {
		within := map[reflect.Type]bool{}
		if k.Name != "Pod" {
			within[reflect.TypeFor[v1.PodSpec]()] = true
		}
		list := leaves(reflect.TypeOf(k.New()), nil, within)
		return append(list, leaf{[]any{"spec", evil}, "1"}, leaf{[]any{"status", evil}, "1"})
	}
}

// hostileCalls are commands that look at a cluster in files.
var hostileCalls = []string{
	"simulate -f - -o wide", "simulate -f - --explain", "simulate -f - -o json", "simulate -f - -o yaml", "why -f - default/p -o wide",
	"why -f - default/p -o yaml", "why -f - --all -o wide", "why -f - --all -o json", "what-if -f - drain n, add-nodes 1 n -o wide",
	"fit -f - --pod default/p", "fit -f - --nodes-like n",
}

const hostileCluster = `{"apiVersion": "v1", "kind": "List", "items": [
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}},
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "r", "uid": "r"}, "spec": {"nodeName": "n", "containers": [{"name": "c"}]}},
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "p"}, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "5"}}}]}},
%s]}`

// Whatever stands in whichever field of an object in a file, no output of a command that
// reads it acts on the terminal or has a line that the object made up: of each object
// alone, and of all that the decoder takes, 25 together.
func TestNoFieldActsOnTheTerminal(t *testing.T) {
	kinds, leavesOf := hostileKinds()
	for i := range kinds {
		k := &kinds[i]
		t.Run(k.Name, func(t *testing.T) {
			var taken []string
			for i, l := range leavesOf(k) {
				object, err := json.Marshal(put(plainObject(t, k, i), l.path, l.value))
				if err != nil {
					t.Fatal(err)
				}
				call := "simulate -f - -o wide --explain"
				if k.Name == "Pod" { // the answer is about the fields of the pod itself
					call = fmt.Sprintf("why -f - default/o%d -o wide", i)
				}
				status, out, errs := berth(fmt.Sprintf(hostileCluster, object), strings.Fields(call)...)
				checkShown(t, fmt.Sprintf("%s of %q", call, l.path), out+errs)
				if status != exitInvalid {
					taken = append(taken, string(object))
				}
			}
			if len(taken) < 5 {
				t.Errorf("%d objects were read, too few", len(taken))
			}
			for some := range slices.Chunk(taken, 25) {
				for _, call := range hostileCalls {
					_, out, errs := berth(fmt.Sprintf(hostileCluster, strings.Join(some, ",")), strings.Fields(call)...)
					checkShown(t, call, out+errs)
				}
			}
		})
	}
}
