package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/untrusted"
)

// Problem is something that is wrong in the text of a configuration.
type Problem struct {
	Line   int    // in the text, 0 if it is not known
	Field  string // such as profiles[0].schedulerName; "" if the problem is with the whole
	Reason string // says what was meant, where that can be guessed
	// Warning is set if a scheduler starts with it all the same.
	Warning bool
}

// Check lists all that is wrong with the text of a configuration, by line. Own
// are the names of plugins that a scheduler has besides those of Berth. Unlike
// Decode it does not stop at what cannot be decoded: the rest is checked without
// it.
func (r Reader) Check(text []byte, own []string) []Problem {
	c := &checker{reader: r, own: own, lines: readLines(text)}
	c.check(text)
	for i := range c.problems {
		p := &c.problems[i]
		if p.Line == 0 {
			p.Line = c.lines.of(p.Field)
		}
		p.Field = shortened(p.Field)
	}
	slices.SortStableFunc(c.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return slices.Compact(c.problems)
}

func isError(p Problem) bool { return !p.Warning }

// checker collects the problems of one text.
type checker struct {
	reader   Reader
	own      []string
	lines    lines
	problems []Problem
	unread   []string // fields whose values have another type
	unknown  bool     // a plugin is named that there is not
}

func (c *checker) add(path, reason string, args ...any) {
	c.problems = append(c.problems, Problem{Field: path, Reason: fmt.Sprintf(reason, args...)})
}

func (c *checker) warn(path, reason string, args ...any) {
	c.problems = append(c.problems, Problem{Field: path, Reason: fmt.Sprintf(reason, args...), Warning: true})
}

func (c *checker) check(text []byte) {
	if c.isBadJSON(text) {
		return
	}
	if err := untrusted.Aliases(text); err != nil {
		c.add("", "%s", err)
		return
	}
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		c.addYAML(err)
		return
	}
	top, ok := doc.(map[string]any)
	if !ok {
		c.add("", "must be an object with apiVersion, kind and the fields of a KubeSchedulerConfiguration")
		return
	}
	if c.isOther(top) {
		return
	}
	c.checkEnd(text)
	var strict any
	if err := yaml.UnmarshalStrict(text, &strict); err != nil {
		c.addTwice(err)
	}
	c.checkKind(top)
	obj, problems := decodeAll(top, kind)
	c.addAll("", problems, reflect.TypeFor[Config]())
	config, ok := obj.(*Config)
	if !ok {
		return
	}
	c.checkArgs(config)
	c.checkNames(config)
	c.checkExtenders(config.Extenders)
	c.checkValues(config)
}

// checkKind checks apiVersion and kind, and then has the rest read as the version
// that is served.
func (c *checker) checkKind(top map[string]any) {
	for name, want := range map[string]string{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind} { // sorted at the end
		switch got := fmt.Sprint(top[name]); {
		case top[name] == nil:
			c.add(name, "is missing; write %q", want)
		case versions[got] != "":
			c.add(name, "%q is not served any more; write %q. %s", got, want, versions[got])
		case got != want:
			c.add(name, "%q is not supported; write %q", got, want)
		}
		top[name] = want
	}
}

// isOther tells of an object that is no configuration of any version. Its fields are
// another kind's.
func (c *checker) isOther(top map[string]any) bool {
	version, _ := top["apiVersion"].(string)
	name, _ := top["kind"].(string)
	if version == "" || name == "" || name == kind.Kind || strings.HasPrefix(version, kind.Group+"/") || versions[version] != "" {
		return false
	}
	more := ""
	switch {
	case name == "ConfigMap":
		more = "; check the text that its data holds"
	case name == "Policy" && version == "v1":
		more = sincePolicies
	}
	c.add("kind", "this is a %s of %s, not a %s%s", name, version, kind.Kind, more)
	return true
}

// decodeAll decodes a document as far as that is possible, and says what was
// left out. What cannot be decoded is taken out of the document.
func decodeAll(doc map[string]any, gvk schema.GroupVersionKind) (runtime.Object, []error) {
	var problems []error
	for range 10 { // what is left when a value is taken out may be wrong, too
		data, err := json.Marshal(doc)
		if err != nil {
			return nil, []error{err}
		}
		obj, _, err := decoder.Decode(data, &gvk, nil)
		violations, err := strictViolations(err)
		if err == nil {
			return obj, append(problems, violations...)
		}
		bad := wrongTypes(data, gvk, nil, err)
		problems = append(problems, bad...)
		if !takeOut(doc, bad) {
			break
		}
	}
	return nil, problems
}

// takeOut removes the fields that the errors name. It reports false if there is
// none.
func takeOut(doc map[string]any, bad []error) bool {
	found := false
	for _, err := range bad {
		var fe *field.Error
		if errors.As(err, &fe) {
			remove(doc, splitPath(fe.Field))
			found = true
		}
	}
	return found
}

func remove(at any, path []string) {
	if len(path) == 0 {
		return
	}
	switch v := at.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(v, path[0])
			return
		}
		remove(v[path[0]], path[1:])
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i >= len(v) {
			return
		}
		if len(path) == 1 {
			v[i] = nil
			return
		}
		remove(v[i], path[1:])
	}
}

var unknownField = regexp.MustCompile(`^unknown field "(.*)"$`)

// addAll adds what a decoder said of an object of the type that stands at the
// prefix.
func (c *checker) addAll(prefix string, problems []error, of reflect.Type) {
	for _, err := range problems {
		var fe *field.Error
		switch unknown := unknownField.FindStringSubmatch(err.Error()); {
		case unknown != nil:
			path := splitPath(unknown[1])
			if len(path) == 0 {
				c.add(strings.TrimSuffix(prefix, "."), "has a field without a name")
				continue
			}
			c.add(prefix+unknown[1], "there is no such field%s", meant(path[len(path)-1], fieldNames(typeAt(of, path[:len(path)-1])), max(2, len(path[len(path)-1])/3)))
		case errors.As(err, &fe):
			c.unread = append(c.unread, prefix+fe.Field)
			c.add(prefix+fe.Field, "%s", fe.Detail)
		default:
			c.add(strings.TrimSuffix(prefix, "."), "%s", err)
		}
	}
}

// checkArgs decodes the arguments of in-tree plugins.
func (c *checker) checkArgs(config *Config) {
	for i := range config.Profiles {
		for j := range config.Profiles[i].PluginConfig {
			pc := &config.Profiles[i].PluginConfig[j]
			gvk, known := argsKind(pc.Name)
			if !known {
				continue
			}
			at := fmt.Sprintf("profiles[%d].pluginConfig[%d].args", i, j)
			var doc map[string]any
			if len(pc.Args.Raw) > 0 && json.Unmarshal(pc.Args.Raw, &doc) != nil {
				c.add(at, "must be an object")
			}
			if got := fmt.Sprint(doc["kind"]); doc["kind"] != nil && got != gvk.Kind {
				c.add(at+".kind", "%q does not belong to plugin %s; write %q, or leave it out", got, pc.Name, gvk.Kind)
			}
			if got := fmt.Sprint(doc["apiVersion"]); doc["apiVersion"] != nil && got != gvk.GroupVersion().String() {
				c.add(at+".apiVersion", "%q is not supported; write %q, or leave it out", got, gvk.GroupVersion())
			}
			delete(doc, "apiVersion")
			delete(doc, "kind")
			obj, problems := decodeAll(doc, gvk)
			if obj == nil {
				obj, _ = scheme.New(gvk)
			}
			c.addAll(at+".", problems, reflect.TypeOf(obj).Elem())
			pc.Args = runtime.RawExtension{Object: obj}
		}
	}
}

// checkNames checks the names of plugins, before the defaults are merged in: the
// places in the lists are those of the text.
func (c *checker) checkNames(config *Config) {
	registry := plugins.Registry(features.Plugins(c.reader.gates))
	names := slices.Clone(c.own)
	for name := range registry { // sorted by meant
		names = append(names, name)
	}
	for i := range config.Profiles {
		p := &config.Profiles[i]
		base := field.NewPath("profiles").Index(i)
		if p.Plugins != nil {
			c.addFields(validatePlugins(base.Child("plugins"), p.Plugins))
			for _, pt := range points(p.Plugins) {
				for j, enabled := range pt.set.Enabled {
					c.checkName(base.Child("plugins", pt.name, "enabled").Index(j).Child("name"), enabled.Name, names)
				}
				for j, disabled := range pt.set.Disabled {
					if disabled.Name != "*" {
						c.checkDisabled(base.Child("plugins", pt.name, "disabled").Index(j).Child("name"), disabled.Name, names)
					}
				}
			}
		}
		for j, pc := range p.PluginConfig {
			c.checkName(base.Child("pluginConfig").Index(j).Child("name"), pc.Name, names)
		}
	}
}

func (c *checker) checkName(path *field.Path, name string, names []string) {
	switch {
	case slices.Contains(names, name):
		return
	case slices.Contains(removedPlugins, name): // addFields tells of them
	default:
		c.add(path.String(), "%s", noPlugin(name, names))
	}
	c.unknown = true
}

// checkDisabled warns of a disabled plugin that does not exist. kube-scheduler accepts it.
func (c *checker) checkDisabled(path *field.Path, name string, names []string) {
	if !slices.Contains(names, name) {
		c.warn(path.String(), "%s; to disable it changes nothing", noPlugin(name, names))
	}
}

// farthestPlugin is how far a name may be from that of a plugin to be taken for it: names of
// other people's plugins, such as PreemptionToleration, are not much farther.
const farthestPlugin = 2

// noPlugin says that there is no such plugin, and what may have been meant.
func noPlugin(name string, names []string) string {
	if successors[name] != "" {
		return fmt.Sprintf("there is no plugin %q any more; use %s", name, successors[name])
	}
	return fmt.Sprintf("there is no plugin %q%s", name, cmp.Or(meant(name, names, farthestPlugin), "; if your scheduler has it, name it with --plugins"))
}

// checkValues validates the whole, and builds the profiles if nothing is wrong so
// far.
func (c *checker) checkValues(config *Config) {
	c.reader.complete(config)
	named := pluginErrors(config)
	for _, err := range c.reader.validate(config) {
		if !named[err.Error()] && !c.isOfUnread(err.Field) {
			c.addFields(field.ErrorList{err})
		}
	}
	half := func(unread string) bool { return strings.HasPrefix(unread, "profiles") }
	if len(c.own) == 0 && !c.unknown && !slices.ContainsFunc(c.unread, half) {
		c.build(config)
	}
	if !slices.ContainsFunc(c.problems, isError) {
		c.checkStates(config)
	}
}

// build builds the profiles, each by itself first: so all that is wrong is told, and where.
// Where something is wrong already, they are built without what has been judged by itself.
func (c *checker) build(config *Config) {
	registry := plugins.Registry(features.Plugins(c.reader.gates))
	configs, sound := Profiles(config), !slices.ContainsFunc(c.problems, isError)
	for i := range configs {
		if !sound {
			forget(&configs[i])
		}
		_, err := profile.Build(&configs[i], registry)
		for _, err := range each(err) {
			c.add(pathOf(config, i, err).String(), "%s", err)
		}
	}
	if slices.ContainsFunc(c.problems, isError) {
		return
	}
	_, err := profile.BuildAll(configs, registry)
	for _, err := range each(err) {
		c.add("", "%s", err)
	}
}

// forget leaves out the profile's arguments and weights.
func forget(p *profile.Config) {
	p.Args = nil
	for pt := range p.Points {
		for i := range p.Points[pt].Enabled {
			p.Points[pt].Enabled[i].Weight = 0
		}
	}
	for i := range p.MultiPoint.Enabled {
		p.MultiPoint.Enabled[i].Weight = 0
	}
}

// each lists the errors that an error holds, none for nil.
func each(err error) []error {
	if err == nil {
		return nil
	}
	return utilerrors.Flatten(utilerrors.NewAggregate([]error{err})).Errors()
}

// pathOf is the part of the profile that an error of its plugins is about.
func pathOf(config *Config, i int, err error) *field.Path {
	path := field.NewPath("profiles").Index(i)
	var of *profile.PointError
	if !errors.As(err, &of) {
		return path
	}
	for _, pt := range points(config.Profiles[i].Plugins) {
		if pt.at != of.Point {
			continue
		}
		for j, enabled := range slices.Backward(pt.set.Enabled) { // of two that are the same, the second is too many
			if enabled.Name == of.Plugin {
				return path.Child("plugins", pt.name, "enabled").Index(j).Child("name")
			}
		}
	}
	return path
}

// elections are the times of leader election, each of which is judged by another.
var elections = []string{"leaderElection.leaseDuration", "leaderElection.renewDeadline", "leaderElection.retryPeriod"}

// isOfUnread tells whether the field, or one that it is judged by, could not be read: then
// its default has been judged, which is not what the file is to say.
func (c *checker) isOfUnread(path string) bool {
	return slices.ContainsFunc(c.unread, func(unread string) bool {
		return unread == path || slices.Contains(elections, unread) && slices.Contains(elections, path)
	})
}

// pluginErrors are the errors of plugins that checkNames has reported, as the complete
// configuration has them. Their places in the lists are no longer those of the text.
func pluginErrors(config *Config) map[string]bool {
	named := map[string]bool{}
	for i := range config.Profiles {
		for _, err := range validatePlugins(field.NewPath("profiles").Index(i).Child("plugins"), config.Profiles[i].Plugins) {
			named[err.Error()] = true
		}
	}
	return named
}

func (c *checker) addFields(errs field.ErrorList) {
	for _, err := range errs {
		reason := err.ErrorBody()
		if name, ok := err.BadValue.(string); ok && slices.Contains(removedPlugins, name) {
			reason += "; use " + successors[name]
		}
		c.add(err.Field, "%s", reason)
	}
}
