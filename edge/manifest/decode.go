package manifest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// decoded is an object, or why the raw one is none.
type decoded struct {
	object  metav1.Object // nil for a kind that is not known
	created time.Time
	unknown []string // fields that the kind, as it is known here, does not have
	err     error
}

// errNotJSON tells of an object that has no more than the outline of one.
var errNotJSON = errors.New("not JSON")

// decode reads the object strictly, gives it defaults and checks it. Kinds that
// only controllers read are known if they are wanted.
func (r raw) decode(controllers bool) decoded {
	k, known := kinds[r.key()]
	if known && !controllers {
		known = !slices.ContainsFunc(Controllers, func(e decode.Kind) bool { return e.Key() == r.key() })
	}
	if err := misspeltKind(r.apiVersion, r.kind); !known && err != nil {
		return decoded{err: fmt.Errorf("%s: %w", r.where, err)}
	}
	if !known {
		// Only its age counts, and only if it has a readable one.
		var o metav1.PartialObjectMetadata
		if !json.Valid(r.data) {
			return decoded{err: errNotJSON}
		}
		if kjson.UnmarshalCaseSensitivePreserveInts(r.data, &o) != nil {
			return decoded{}
		}
		return decoded{created: o.CreationTimestamp.Time}
	}
	if err := r.numbers(k); err != nil {
		return decoded{err: fmt.Errorf("%s: %s: %w", r.where, r.title(k.Namespaced), err)}
	}
	o := k.New()
	violations, err := kjson.UnmarshalStrict(r.data, o)
	if is, _ := kjson.SyntaxErrorOffset(err); is {
		return decoded{err: errNotJSON}
	}
	if k.Strict != nil {
		if more, err := kjson.UnmarshalStrict(r.data, k.Strict()); err == nil { // else its own decoding says why
			violations = append(violations, more...)
		}
	}
	var unknown []string
	for _, violation := range violations {
		if field, ok := strings.CutPrefix(violation.Error(), "unknown field "); ok {
			unknown = append(unknown, strings.Trim(field, `"`))
		} else if err == nil {
			err = violation // a duplicate
		}
	}
	if err != nil && len(violations) == 0 {
		err = r.locate(k, err)
	}
	if err != nil {
		return decoded{err: fmt.Errorf("%s: %s: %w", r.where, r.title(k.Namespaced), err)}
	}
	if k.Namespaced && o.GetNamespace() == "" {
		o.SetNamespace(metav1.NamespaceDefault)
	}
	if err := admit(o, r.kindName()); err != nil {
		return decoded{err: fmt.Errorf("%s: %w%s", r.where, err, misspelt(unknown))}
	}
	if err := join(decode.CheckCustom(o)); err != nil {
		return decoded{err: fmt.Errorf("%s: %s: %w", r.where, r.title(k.Namespaced), err)}
	}
	return decoded{object: o, created: o.GetCreationTimestamp().Time, unknown: unknown}
}

// misspelt names the fields that are not known, for an error about what is missing: it
// may stand under another name.
func misspelt(unknown []string) string {
	switch len(unknown) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(" (there is an unknown field %s: is it misspelt?)", unknown[0])
	}
	return fmt.Sprintf(" (there are unknown fields %s: are they misspelt?)", strings.Join(unknown, ", "))
}

// kindName returns the kind in lower case, as messages have it: with its API group where it is not the
// only kind of this name, as object.Kind has it.
func (r raw) kindName() string {
	name := strings.ToLower(r.kind)
	if k := object.CoschedulingGroups; r.apiVersion == k.GroupVersion().String() && r.kind == k.ManifestName() {
		return name + "." + k.GroupVersion().Group
	}
	return name
}

// key is the kind as the table of kinds and the count of ignored objects
// write it.
func (r raw) key() string { return shown(r.apiVersion) + "/" + shown(r.kind) }

// title names an object that could not be decoded, as far as it can be read.
func (r raw) title(namespaced bool) string {
	var named struct {
		Metadata struct {
			Name      json.RawMessage `json:"name"`
			Namespace json.RawMessage `json:"namespace"`
		} `json:"metadata"`
	}
	var name, namespace string
	if kjson.UnmarshalCaseSensitivePreserveInts(r.data, &named) == nil {
		// What is no string is left out; the error at hand tells of it.
		_ = json.Unmarshal(named.Metadata.Name, &name)
		_ = json.Unmarshal(named.Metadata.Namespace, &namespace)
	}
	if namespaced && name != "" {
		namespace = cmp.Or(namespace, metav1.NamespaceDefault)
	}
	return title(r.kindName(), namespace, name)
}

// longestName is how many bytes a name may have in the API.
const longestName = 253

func title(kind, namespace, name string) string {
	name = shown(name)
	if namespace != "" {
		name = shown(namespace) + "/" + name
	}
	return strings.TrimSpace(shown(kind) + " " + name)
}

// shown is the name, or how one begins that is too long.
func shown(name string) string {
	if len(name) <= longestName {
		return name
	}
	return strings.ToValidUTF8(name[:40], "") + "..."
}

// mostTried bounds what is decoded to find a field, in bytes.
const mostTried = 64 << 20

// locate finds the field that does not decode, where the decoder tells only
// why: it decodes each leaf of the object alone.
func (r raw) locate(k *decode.Kind, cause error) error {
	var doc any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(r.data, &doc); err != nil {
		return errors.New(oneLine(err))
	}
	tried := 0
	path, err := firstBad(doc, nil, func(leaf any) any { return leaf }, func(alone any) error {
		if tried > mostTried {
			return nil
		}
		data, err := json.Marshal(alone)
		if err != nil {
			return err
		}
		tried += len(data)
		return kjson.UnmarshalCaseSensitivePreserveInts(data, k.New())
	})
	if err == nil {
		return errors.New(decodeProblem(cause))
	}
	return fmt.Errorf("%s: %s", path, decodeProblem(err))
}

// firstBad visits what has nothing below it, in order of path, each wrapped
// into a document that holds no other leaf, and returns the first that try
// rejects. What may not be a map or a list at all is rejected as such.
func firstBad(value any, path *field.Path, wrap func(any) any, try func(any) error) (*field.Path, error) {
	switch v := value.(type) {
	case map[string]any:
		if err := try(wrap(map[string]any{})); err != nil {
			return path, err
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			p, err := firstBad(v[key], path.Child(key), func(leaf any) any { return wrap(map[string]any{key: leaf}) }, try)
			if err != nil {
				return p, err
			}
		}
		return nil, nil
	case []any:
		if err := try(wrap([]any{})); err != nil {
			return path, err
		}
		for i := range v {
			p, err := firstBad(v[i], path.Index(i), func(leaf any) any { return wrap([]any{leaf}) }, try)
			if err != nil {
				return p, err
			}
		}
		return nil, nil
	}
	return path, try(wrap(value))
}

// decodeProblem is the decoder's error without what only Go programmers know.
func decodeProblem(err error) string {
	if errors.Is(err, resource.ErrFormatWrong) {
		return "is not a quantity, such as 500m, 2 or 1Gi"
	}
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return strings.TrimPrefix(oneLine(err), "json: ")
	}
	text := fmt.Sprintf("wrong type: %s where %s belongs", wrong.Value, typeName(wrong.Type))
	if wrong.Value == "bool" && wrong.Type.Kind() == reflect.String {
		text += " (y, n, yes, no, on and off are bools in YAML: quote them)"
	}
	return text
}

// typeName is what a value of the type is called in JSON.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return "object"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Int32, reflect.Uint32:
		return "a whole number of 32 bits"
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return t.Kind().String() // string, bool
}
