package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// form is an object as a file of the suite has it. One with template actions in
// it is filled in anew for each object, with its Index, the Count of all and the
// params.
type form struct {
	path    string
	text    []byte
	params  map[string]any
	actions *template.Template // nil: all objects are alike
}

// form reads a template that gets the params.
func (c *testCase) form(path string, params map[string]any) (*form, error) {
	if path == "" {
		return nil, errors.New("no template is named")
	}
	text, err := os.ReadFile(filepath.Join(c.dir, path))
	if err != nil {
		return nil, err
	}
	f := &form{path: path, text: text, params: params}
	if bytes.Contains(text, []byte("{{")) {
		if f.actions, err = template.New(path).Funcs(arithmetic).Parse(string(text)); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// arithmetic holds the functions of the suite's templates. They reckon with floats; those
// that return an int drop the fraction of the result.
var arithmetic = template.FuncMap{
	"AddFloat":      reckon(add),
	"AddInt":        truncated(add),
	"DivideFloat":   reckon(divide),
	"DivideInt":     truncated(divide),
	"Int":           truncated(add), // of one number
	"JSON":          toJSON,
	"Mod":           truncated(modulo),
	"MultiplyFloat": reckon(multiply),
	"MultiplyInt":   truncated(multiply),
	"SubtractFloat": reckon(subtract),
	"SubtractInt":   truncated(subtract),
}

func add(a, b float64) float64      { return a + b }
func subtract(a, b float64) float64 { return a - b }
func multiply(a, b float64) float64 { return a * b }
func divide(a, b float64) float64   { return a / b }
func modulo(a, b float64) float64   { return math.Mod(math.Trunc(a), math.Trunc(b)) }

// reckon returns a function that applies f to its arguments from the left.
func reckon(f func(a, b float64) float64) func(first any, rest ...any) (float64, error) {
	return func(first any, rest ...any) (float64, error) {
		result, err := toFloat(first)
		for i := 0; i < len(rest) && err == nil; i++ {
			var next float64
			next, err = toFloat(rest[i])
			result = f(result, next)
		}
		if err == nil && (math.IsInf(result, 0) || math.IsNaN(result)) {
			err = errors.New("division by zero")
		}
		return result, err
	}
}

// truncated returns a template function that folds its arguments and drops the fraction of the result.
func truncated(f func(a, b float64) float64) func(first any, rest ...any) (int, error) {
	exact := reckon(f)
	return func(first any, rest ...any) (int, error) {
		result, err := exact(first, rest...)
		return int(result), err
	}
}

func toFloat(value any) (float64, error) { return strconv.ParseFloat(fmt.Sprint(value), 64) }

// toJSON writes a value as JSON, <, > and & as they are.
func toJSON(value any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return strings.TrimSpace(b.String()), err
}

// decode makes the object with that index, of as many as count says.
func (f *form) decode(index, count int, into any) error {
	text := f.text
	if f.actions != nil {
		var b bytes.Buffer
		sees := map[string]any{}
		maps.Copy(sees, f.params)
		sees["Index"], sees["Count"] = index, count
		if err := f.actions.Execute(&b, sees); err != nil {
			return err
		}
		text = b.Bytes()
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

// filled makes all objects of a form; none shares anything with another.
func filled[T any, P interface {
	*T
	DeepCopy() *T
}](f *form, count int) ([]P, error) {
	all := make([]P, count)
	for i := range all {
		if i > 0 && f.actions == nil {
			all[i] = all[0].DeepCopy()
			continue
		}
		all[i] = new(T)
		if err := f.decode(i, count, all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// builtinNode is the node that the suite takes where a step names no template.
var builtinNode = &form{path: "the suite's own node", text: []byte(`
status:
  capacity: {cpu: "4", memory: 32Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
`)}

// builtinPod is the pod that the suite takes where neither the step nor the
// test case names a template.
var builtinPod = &form{path: "the suite's own pod", text: []byte(`
spec:
  containers:
  - name: pause
    image: registry.k8s.io/pause:3.10.2
    ports: [{containerPort: 80}]
    resources: {limits: {cpu: 100m, memory: 500Mi}, requests: {cpu: 100m, memory: 500Mi}}
`)}
