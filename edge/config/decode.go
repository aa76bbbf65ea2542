package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/featuregate"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/untrusted"
)

// Config is the published v1 type. A Config that comes from this package is complete: no pointer
// with a default is nil, and pluginConfig[].args.Object holds the decoded arguments of each
// in-tree plugin. The arguments of other plugins stay as they were written, as JSON in args.Raw.
type Config = configv1.KubeSchedulerConfiguration

// kind is the only kind that a configuration file may hold.
var kind = configv1.SchemeGroupVersion.WithKind("KubeSchedulerConfiguration")

var (
	scheme  = newScheme()
	decoder = serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := configv1.AddToScheme(s); err != nil {
		panic(err) // the published types do not register: a broken build
	}
	return s
}

// Reader reads configurations under one set of feature gates.
type Reader struct {
	gates featuregate.FeatureGate
}

// With returns the reader for the given gates, which must know the gates of package features.
func With(gates featuregate.FeatureGate) Reader { return Reader{gates: gates} }

// Load reads the file at path under kube-scheduler's default feature gates.
func Load(path string) (*Config, error) { return With(features.New()).Load(path) }

// Decode reads data under kube-scheduler's default feature gates; source names data in errors.
func Decode(data []byte, source string) (*Config, error) {
	return With(features.New()).Decode(data, source)
}

// Default is the configuration without a file, under kube-scheduler's default gates.
func Default() *Config { return With(features.New()).Default() }

// Load reads the file at path. Errors name the file, the field and the reason.
func (r Reader) Load(path string) (*Config, error) {
	data, err := untrusted.File(path, untrusted.Config)
	if err != nil {
		return nil, err
	}
	return r.Decode(data, path)
}

// Decode reads one YAML or JSON document strictly, sets defaults and validates
// it. The error lists every wrong field. If all fields are right, it lists
// every wrong value.
func (r Reader) Decode(data []byte, source string) (*Config, error) {
	c, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	r.complete(c)
	if err := r.Validate(c); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	ignoreExtendedResources(c)
	return c, nil
}

// Default is the configuration without a file.
func (r Reader) Default() *Config {
	c := &Config{}
	r.complete(c)
	return c
}

func decode(data []byte) (*Config, error) {
	if err := checkKind(data); err != nil {
		return nil, err
	}
	obj, _, err := decoder.Decode(data, nil, nil)
	violations, err := strictViolations(err)
	if err != nil {
		return nil, utilerrors.NewAggregate(wrongTypes(data, kind, nil, err))
	}
	c, ok := obj.(*Config)
	if !ok {
		return nil, fmt.Errorf("couldn't decode as KubeSchedulerConfiguration, got %T", obj)
	}
	for i := range c.Profiles {
		configs := c.Profiles[i].PluginConfig
		for j := range configs {
			prefix := fmt.Sprintf("decoding .profiles[%d].pluginConfig[%d]: decoding args for plugin %s", i, j, configs[j].Name)
			for _, err := range decodeArgs(&configs[j]) {
				violations = append(violations, fmt.Errorf("%s: %w", prefix, err))
			}
		}
	}
	return c, utilerrors.NewAggregate(violations)
}

// checkKind comes before decoding because the decoder's own complaint quotes the whole document,
// keys included.
func checkKind(data []byte) error {
	if err := untrusted.Aliases(data); err != nil {
		return err
	}
	var doc any
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return errors.New(oneLine(err))
	}
	header, ok := doc.(map[string]any)
	if !ok && doc != nil {
		return errors.New("must be an object with apiVersion, kind and the fields of a KubeSchedulerConfiguration")
	}
	var errs field.ErrorList
	for _, want := range [][2]string{{"apiVersion", kind.GroupVersion().String()}, {"kind", kind.Kind}} {
		path := field.NewPath(want[0])
		switch got := header[want[0]]; {
		case got == nil:
			errs = append(errs, field.Required(path, fmt.Sprintf("must be %q", want[1])))
		case got != want[1]:
			errs = append(errs, field.NotSupported(path, fmt.Sprint(got), []string{want[1]}))
		}
	}
	return errs.ToAggregate()
}

// argsKind is the kind of a plugin's arguments, and whether it is one that this package knows.
func argsKind(plugin string) (schema.GroupVersionKind, bool) {
	gvk := configv1.SchemeGroupVersion.WithKind(plugin + "Args")
	return gvk, scheme.Recognizes(gvk)
}

// decodeArgs replaces the raw arguments of an in-tree plugin by the decoded ones. They may name
// their apiVersion and kind; if so, these must be the plugin's.
func decodeArgs(pc *configv1.PluginConfig) []error {
	gvk, known := argsKind(pc.Name)
	if !known {
		return nil
	}
	obj, got, err := decoder.Decode(pc.Args.Raw, &gvk, nil)
	if runtime.IsNotRegisteredError(err) {
		return []error{fmt.Errorf("no kind %q is registered for version %q, want %s", got.Kind, got.GroupVersion(), gvk)}
	}
	violations, err := strictViolations(err)
	if err != nil {
		return wrongTypes(pc.Args.Raw, gvk, field.NewPath("args"), err)
	}
	if got.GroupKind() != gvk.GroupKind() {
		return []error{fmt.Errorf("args for plugin %s were not of type %s, got %s", pc.Name, gvk.GroupKind(), got.GroupKind())}
	}
	pc.Args = runtime.RawExtension{Object: obj}
	return violations
}

// strictViolations splits a decoder's error: unknown and repeated fields leave a usable object
// behind, so that the search for more can go on; anything else does not.
func strictViolations(err error) ([]error, error) {
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		var violations []error
		for _, e := range strict.Errors() {
			violations = append(violations, errors.New(oneLine(e)))
		}
		return violations, nil
	}
	return nil, err
}

// Bounds of the search for fields of a wrong type.
const (
	mostTried = 16 << 20 // bytes that are decoded
	mostNamed = 100      // fields
)

// wrongTypes names every field whose value cannot be decoded as part of the given kind,
// where the decoder stops at the first, and says neither the index nor always the name. It
// decodes each leaf of the document by itself, and says what belongs there. The cause, as
// the decoder told it, is what remains where none fails.
func wrongTypes(data []byte, gvk schema.GroupVersionKind, root *field.Path, cause error) []error {
	var doc any
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return []error{errors.New(oneLine(err))}
	}
	obj, err := scheme.New(gvk)
	if err != nil {
		return []error{err}
	}
	var errs []error
	tried := 0
	eachLeaf(doc, root, func(leaf any) any { return leaf }, func(path *field.Path, alone any) {
		if tried > mostTried || len(errs) == mostNamed {
			return
		}
		data, err := json.Marshal(alone)
		if tried += len(data); err == nil {
			_, _, err = decoder.Decode(data, &gvk, nil)
			_, err = strictViolations(err)
		}
		if err != nil {
			below := splitPath(strings.TrimPrefix(path.String(), root.String()))
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, "must be "+inWords(typeAt(reflect.TypeOf(obj).Elem(), below))))
		}
	})
	if len(errs) == 0 {
		errs = []error{errors.New(oneLine(cause))}
	}
	return errs
}

// eachLeaf visits what has nothing below it, in order of path, each as a document that holds no
// other leaf. wrap puts a value back into what stands above it.
func eachLeaf(value any, path *field.Path, wrap func(any) any, visit func(path *field.Path, alone any)) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			eachLeaf(v[key], path.Child(key), func(leaf any) any { return wrap(map[string]any{key: leaf}) }, visit)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i := range v {
			eachLeaf(v[i], path.Index(i), func(leaf any) any { return wrap([]any{leaf}) }, visit)
		}
		if len(v) > 0 {
			return
		}
	}
	visit(path, wrap(value))
}

// oneLine joins the lines that the YAML library spreads its errors over.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
