package manifest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/berth-scheduler/berth/edge/decode"
)

// Where nothing is left out, all that is JSON is copied without its white space, and
// nothing else is taken.
func FuzzTrim(f *testing.F) {
	for _, text := range []string{
		`{"a": [1, -0.5e+7, "x\u00e9\"", true, false, null, {}, []]}`, ` 1 `, `1 2`, `{"a":1,}`, `[1,]`, `{,}`, `{"a"}`, `[01]`, `1e`, `-`, `tru`, ``,
		`"\x"`, `"\u12g4"`, "\"\t\"", `"\`, `"`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > mostDepth {
			return // it may be nested too deeply
		}
		got, ok := trim(nil, text, nil)
		var want bytes.Buffer
		if err := json.Compact(&want, text); ok != (err == nil) {
			t.Fatalf("%q: taken for JSON: %v; encoding/json: %v", text, ok, err)
		}
		if ok && !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("%q: %q, want %q", text, got, want.Bytes())
		}
	})
}

// What is left of a pod decodes to what the pod itself does: whatever fields it has
// set. And much is left out.
func TestTrimmedPodsDecodeAlike(t *testing.T) {
	less := 0
	for seed := range int64(300) {
		p := &v1.Pod{}
		randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 2).MaxDepth(12).Funcs(
			func(q *resource.Quantity, c randfill.Continue) { q.Set(int64(c.Intn(1000))) },
			func(m *metav1.ManagedFieldsEntry, c randfill.Continue) {},
			func(m *map[string]string, c randfill.Continue) {
				*m = map[string]string{"a": string(rune('a' + c.Intn(26)))}
			},
			func(v *v1.VolumeSource, c randfill.Continue) {
				field := reflect.ValueOf(v).Elem().Field(c.Intn(reflect.TypeFor[v1.VolumeSource]().NumField()))
				field.Set(reflect.New(field.Type().Elem()))
				c.Fill(field.Interface())
			},
		).Fill(p)
		whole, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		short, ok := trim(nil, whole, podUnread)
		if !ok || !json.Valid(short) {
			t.Fatalf("seed %d: %s", seed, short)
		}
		if len(short) < len(whole)/2 {
			less++
		}
		var pods [2]v1.Pod
		for i, text := range [][]byte{whole, short} {
			if err := json.Unmarshal(text, &pods[i]); err != nil {
				t.Fatal(err)
			}
			decode.DefaultPod(&pods[i])
		}
		if a, b := decode.Pod(&pods[0]), decode.Pod(&pods[1]); !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d: decoded as\n%+v\nand without what is not read\n%+v", seed, a, b)
		}
	}
	if less < 100 {
		t.Errorf("only %d pods were half as long", less)
	}
}

// A set that trims its pods checks them as JSON all the same, keeps pending pods as they
// were written, and names what is not known.
func TestTrimmedPods(t *testing.T) {
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","env":[{"name":"A"}],"resorces":{}}]}}`
	s := NewSet()
	s.Trim, s.KeepWritten = true, true
	if _, err := readInto(t, s, "in.json", pod); err != nil {
		t.Fatal(err)
	}
	if env := s.Pods[0].Spec.Containers[0].Env; env != nil {
		t.Errorf("the environment was read: %v", env)
	}
	if got := string(s.Written("Pod", "default", "p")); got != pod {
		t.Errorf("written: %s", got)
	}
	if len(s.Notices) == 0 || !strings.Contains(s.Notices[0], `spec.containers[0].resorces: is not known`) {
		t.Errorf("notices: %q", s.Notices)
	}
	for bad, want := range map[string]string{
		`[{"name":"A"]}`:           "in.json: document 1: line 1: not JSON: invalid character ']' after object key:value pair",
		`[{"name":"A","value":0]]`: "in.json: document 1: line 1: not JSON: invalid character ']' after object key:value pair",
	} {
		s := NewSet()
		s.Trim = true
		if _, err := readInto(t, s, "in.json", strings.Replace(pod, `[{"name":"A"}]`, bad, 1)); err == nil || err.Error() != want {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Lists are read, and errors told, the same whether or not their indentation shows
// where an object ends.
func TestIndentation(t *testing.T) {
	node := func(name, rest string) string {
		return `{"apiVersion":"v1","kind":"Node","metadata":{"name":"` + name + `"` + rest + `}}`
	}
	list := func(items string) string { return `{"apiVersion":"v1","kind":"List","items":[` + items + "]}" }
	for name, c := range map[string]struct{ text, want string }{
		"lines end objects":       {list("\n  " + strings.ReplaceAll(node("a", ""), `}}`, "}\n  }") + ",\n  {\n    " + node("b", "")[1:len(node("b", ""))-1] + "\n  }\n"), "a b"},
		"an inner brace":          {list("\n  " + strings.ReplaceAll(node("a", `,"labels":{"x":"y"`+"\n  }"), "}}", "}\n}") + ",\n  " + node("b", "") + "\n"), "a b"},
		"objects of one line":     {list("\n  " + node("a", "") + ",\n  " + node("b", "") + "\n"), "a b"},
		"one of them of several":  {list("\n  " + node("a", "") + ",\n  " + strings.ReplaceAll(node("b", ""), "}}", "}\n  }") + "\n"), "a b"},
		"a brace in a text":       {list("\n  " + strings.ReplaceAll(node("a", `,"annotations":{"x":"\n  }"}`), "}}}", "}}\n  }") + "\n"), "a"},
		"a kind that comes last":  {list("\n  " + `{"metadata":{"name":"a"},"kind":"Node","apiVersion":"v1"` + "\n  }\n"), "a"},
		"a list among the items":  {list("\n  " + `{"apiVersion":"v1","kind":"List","items":[` + "\n    " + node("a", "") + "\n  ]\n  },\n  " + node("b", "") + "\n"), "a b"},
		"no object at the start":  {list("\n  " + `null, ` + node("a", "") + "\n"), "in.json: document 1, item 1: is not a Kubernetes object"},
		"something between":       {list("\n  " + strings.ReplaceAll(node("a", ""), "}}", "}\n  }") + " x,\n  " + node("b", "") + "\n"), "in.json: document 1: line 3: not JSON: invalid character 'x' after array element"},
		"an object that is cut":   {list("\n  " + `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"` + "\n  }\n"), "in.json: document 1: line 4: not JSON: invalid character ']' after object key:value pair"},
		"an ignored kind, cut":    {list("\n  " + `{"apiVersion":"v1","kind":"Event","metadata":{"name":"a"` + "\n  }\n"), "in.json: document 1: line 4: not JSON: invalid character ']' after object key:value pair"},
		"a kind that comes twice": {list("\n  " + `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"},"kind":"Pod"` + "\n  }\n"), `in.json: document 1, item 1: pod default/a: duplicate field "kind"`},
	} {
		s, err := read(t, "in.json", c.text)
		got := names(s)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s\ngot  %q\nwant %q", name, c.text, got, c.want)
		}
	}
}
