package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"text/template"

	"sigs.k8s.io/yaml"
)

// form is an object as a file of the suite has it. One with template actions in
// it is filled in anew for each object, with its Index and the Count of all.
type form struct {
	path    string
	text    []byte
	actions *template.Template // nil: all objects are alike
}

// form reads a template.
func (c *testCase) form(path string) (*form, error) {
	if path == "" {
		return nil, errors.New("no template is named")
	}
	text, err := os.ReadFile(filepath.Join(c.dir, path))
	if err != nil {
		return nil, err
	}
	f := &form{path: path, text: text}
	if bytes.Contains(text, []byte("{{")) {
		if f.actions, err = template.New(path).Funcs(arithmetic).Parse(string(text)); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// arithmetic is what the suite's templates reckon with.
var arithmetic = template.FuncMap{
	"DivideInt": func(a, b any) (int, error) { return integers(a, b, func(a, b int) int { return a / b }) },
	"Mod":       func(a, b any) (int, error) { return integers(a, b, func(a, b int) int { return a % b }) },
}

func integers(a, b any, f func(a, b int) int) (int, error) {
	x, err := strconv.Atoi(fmt.Sprint(a))
	if err != nil {
		return 0, err
	}
	y, err := strconv.Atoi(fmt.Sprint(b))
	if err == nil && y == 0 {
		err = errors.New("division by zero")
	}
	if err != nil {
		return 0, err
	}
	return f(x, y), nil
}

// decode makes the object with that index, of as many as count says.
func (f *form) decode(index, count int, into any) error {
	text := f.text
	if f.actions != nil {
		var b bytes.Buffer
		if err := f.actions.Execute(&b, map[string]any{"Index": index, "Count": count}); err != nil {
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
