package tool

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Commands on clusters that are like known ones with parts exchanged neither crash nor go
// on without end.
func FuzzCommands(f *testing.F) {
	paths, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatal(paths, err)
	}
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		cluster := exchanged(t, paths[random.IntN(len(paths))], random)
		for _, command := range []string{"simulate -f -", "why -f - --all", "why -f - p", "what-if -f - cordon n2", "what-if -f - drain n1", "fit -f - --nodes-like n1"} {
			var out, notes bytes.Buffer
			args := append([]string{"berth"}, strings.Fields(command)...)
			if status := run(args, strings.NewReader(cluster), &out, &notes); status < exitPlaced || status > exitMisconfigured {
				t.Errorf("%s: status %d: %s", command, status, notes.String())
			}
		}
	})
}

// exchanged is the cluster of a file with some members of its objects in the place of
// others.
func exchanged(t *testing.T, path string, random *rand.Rand) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var objects []any
	for _, text := range strings.Split(string(data), "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	parent := map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}
	for range 1 + random.IntN(4) {
		from, to := member(objects, random), member(objects, random)
		from(func(old any) any {
			copied, _ := json.Marshal(old)
			to(func(any) any {
				var value any
				_ = json.Unmarshal(copied, &value)
				return value
			})
			return old
		})
	}
	list, err := json.Marshal(parent)
	if err != nil {
		t.Fatal(err)
	}
	return string(list)
}

// member walks down to a random member and returns what replaces it.
func member(objects []any, random *rand.Rand) func(func(any) any) {
	var at any = objects
	for {
		var set func(any)
		var value any
		switch in := at.(type) {
		case []any:
			if len(in) == 0 {
				return func(f func(any) any) { f(in) }
			}
			i := random.IntN(len(in))
			value, set = in[i], func(v any) { in[i] = v }
		case map[string]any:
			keys := slices.Sorted(maps.Keys(in))
			if len(keys) == 0 {
				return func(f func(any) any) { f(in) }
			}
			key := keys[random.IntN(len(keys))]
			value, set = in[key], func(v any) { in[key] = v }
		}
		_, isMap := value.(map[string]any)
		_, isList := value.([]any)
		if !isMap && !isList || random.IntN(6) == 0 {
			return func(f func(any) any) { set(f(value)) }
		}
		at = value
	}
}
