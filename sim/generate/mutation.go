package generate

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Mutated returns the cluster of a YAML file as a List in JSON in which one to four
// members of its objects stand in the place of others too, of the same key or type for
// the most part: one node's taints as another's, a label's value as a pod's name. The
// seed decides which. Some of it the API would refuse.
func Mutated(file []byte, seed uint64) ([]byte, error) {
	random := rand.New(rand.NewPCG(seed, 1))
	var objects []any
	for _, text := range strings.Split(string(file), "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			return nil, fmt.Errorf("object %d: %w", len(objects), err)
		}
		objects = append(objects, o)
	}
	for range 1 + random.IntN(4) {
		from, to := pickMember(objects, random), pickMember(objects, random)
		for range 50 {
			if from.key == to.key && from.key != "" || reflect.TypeOf(from.value) == reflect.TypeOf(to.value) && !hasMembers(to.value) {
				break
			}
			from = pickMember(objects, random)
		}
		to.set(deepCopy(from.value))
	}
	return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
}

// member is a member of an object or a list, at any depth. In a list it has no key.
type member struct {
	key   string
	value any
	set   func(any)
}

// pickMember walks down from the objects to a random member.
func pickMember(objects []any, random *rand.Rand) member {
	var at any = objects
	for {
		var m member
		switch in := at.(type) {
		case []any:
			i := random.IntN(len(in))
			m = member{"", in[i], func(v any) { in[i] = v }}
		case map[string]any:
			keys := slices.Sorted(maps.Keys(in))
			key := keys[random.IntN(len(keys))]
			m = member{key, in[key], func(v any) { in[key] = v }}
		}
		if !hasMembers(m.value) || random.IntN(6) == 0 {
			return m
		}
		at = m.value
	}
}

func hasMembers(value any) bool {
	switch in := value.(type) {
	case []any:
		return len(in) > 0
	case map[string]any:
		return len(in) > 0
	}
	return false
}

// deepCopy copies a value that was decoded from JSON.
func deepCopy(value any) any {
	switch in := value.(type) {
	case []any:
		out := make([]any, len(in))
		for i, v := range in {
			out[i] = deepCopy(v)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(in))
		for k, v := range in {
			out[k] = deepCopy(v)
		}
		return out
	}
	return value
}
