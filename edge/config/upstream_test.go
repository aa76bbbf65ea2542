package config

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// upstream are the lines of a list of what kube-scheduler states.
func upstream(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile("../../testdata/upstream/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// Every field has the default that kube-scheduler's source sets. TestDefaultArgs has the
// defaults that depend on other fields of a file (append, elements of lists).
func TestDefaultsAreUpstreams(t *testing.T) {
	c := Default()
	objects := map[string]any{"KubeSchedulerConfiguration": *c, "LeaderElectionConfiguration": c.LeaderElection}
	for _, pc := range c.Profiles[0].PluginConfig {
		objects[pc.Name+"Args"] = reflect.ValueOf(pc.Args.Object).Elem().Interface()
	}
	compared := 0
	for _, line := range upstream(t, "configuration") {
		line, is := strings.CutPrefix(line, "default of ")
		path, want, _ := strings.Cut(line, ": ")
		of, path, _ := strings.Cut(path, ".")
		if path == "ResourceLock" || of == "ClientConnectionConfiguration" {
			continue // those of components in general, where kube-scheduler has its own
		}
		if !is || strings.HasPrefix(want, "append(") || strings.Contains(path, "[i]") {
			continue
		}
		object, known := objects[of]
		if !known {
			t.Errorf("nothing has the defaults of %s", of)
			continue
		}
		want, _, _ = strings.Cut(want, ", under ") // gates that are on
		if got := written(at(reflect.ValueOf(object), path)); got != want {
			t.Errorf("%s.%s: %s, want %s", of, path, got, want)
		}
		compared++
	}
	if compared < 20 {
		t.Errorf("%d defaults are compared", compared)
	}
}

// at is the field at a path, as LeaderElection.ResourceLock or Profiles[0].SchedulerName.
func at(v reflect.Value, path string) reflect.Value {
	for name := range strings.SplitSeq(path, ".") {
		name, index, indexed := strings.Cut(strings.TrimSuffix(name, "]"), "[")
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		v = v.FieldByName(name)
		if i, err := strconv.Atoi(index); indexed && err == nil {
			v = v.Index(i)
		}
	}
	return v
}

// written is a value as kube-scheduler's source has it, in the words of the list.
func written(v reflect.Value) string {
	if d, is := v.Interface().(metav1.Duration); is {
		return fmt.Sprintf("{Duration: %d*Second}", d.Duration/time.Second)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "nil"
		}
		return written(v.Elem())
	case reflect.Float32:
		return strconv.FormatFloat(v.Float(), 'f', 1, 32)
	case reflect.Slice:
		var parts []string
		for i := range v.Len() {
			parts = append(parts, written(v.Index(i)))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() != reflect.Pointer || !f.IsNil() {
				parts = append(parts, v.Type().Field(i).Name+": "+written(f))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(v.Interface())
}

// defaultProfile returns the profile of the default configuration under these gates.
func defaultProfile(t *testing.T, flag string) *profile.Profile {
	t.Helper()
	gates := features.New()
	if err := gates.Set(flag); err != nil {
		t.Fatal(err)
	}
	profiles, err := profile.BuildAll(Profiles(With(gates).Default()), plugins.Registry(features.Plugins(gates)))
	if err != nil {
		t.Fatal(err)
	}
	return profiles[0]
}

// refused are the gates whose plugins Berth does not have.
var refused = []string{"InPlacePodVerticalScalingSchedulerPreemption"}

// The default plugins are kube-scheduler's, in its order and with its weights. Those that
// a gate brings are there with the gate.
func TestDefaultPluginsAreUpstreams(t *testing.T) {
	line, _ := strings.CutPrefix(upstream(t, "plugins")[0], "default order: ")
	gates, gated := map[string]bool{}, map[string]bool{}
	var want []string
	for entry := range strings.SplitSeq(line, ", ") {
		plugin, gate, under := strings.Cut(entry, " under ")
		if under && slices.Contains(refused, gate) {
			continue
		}
		if want = append(want, plugin); under {
			gates[gate], gated[plugin] = true, true
		}
	}
	var got []string
	var last []string // those of gates, wherever they are put
	for _, p := range With(gatesWith(t, gates)).Default().Profiles[0].Plugins.MultiPoint.Enabled {
		entry := p.Name
		if p.Weight != nil {
			entry += fmt.Sprintf("=%d", *p.Weight)
		}
		if gated[entry] {
			last = append(last, entry)
		} else {
			got = append(got, entry)
		}
	}
	if n := len(want) - len(gated); !slices.Equal(got, want[:n]) {
		t.Errorf(" got %s\nwant %s", got, want[:n])
	}
	for _, entry := range want[len(want)-len(gated):] {
		if !slices.Contains(last, entry) {
			t.Errorf("%s is not enabled by its gate", entry)
		}
	}
}

// needless are the extension points at which kube-scheduler's plugin does what no plugin
// of Berth has to do, or what only a refused gate asks for, and extra are those at which
// Berth's plugin alone does something: each with the reason.
var (
	needless = map[string]string{
		"DefaultPreemption PreEnqueue": "the queue waits for evictions that are under way",
	}
	extra = map[string]string{
		"DynamicResources PreScore": "it makes room for the scores of all nodes",
		"DynamicResources PostBind": "it forgets what Reserve noted",
		"VolumeBinding PostBind":    "it forgets what Reserve noted",
	}
)

// Each plugin runs at the extension points that kube-scheduler's implements, and at no other.
func TestExtensionPointsAreUpstreams(t *testing.T) {
	got := map[string]bool{}
	for _, at := range defaultProfile(t, "GenericWorkload=true,TopologyAwareWorkloadScheduling=true").Enabled() {
		for _, name := range at.Plugins {
			got[name+" "+at.Point] = true
		}
	}
	for _, line := range upstream(t, "plugins")[1:] {
		name, parts, _ := strings.Cut(line, ": ")
		for part := range strings.SplitSeq(parts, ", ") {
			point, is := strings.CutSuffix(part, "Plugin")
			entry := name + " " + point
			if !is || point == "Sign" || name == names.DeferredPodScheduling {
				continue
			}
			if got[entry] == (needless[entry] != "") {
				t.Errorf("%s: there is %v, listed as needless %q", entry, got[entry], needless[entry])
			}
			delete(got, entry)
		}
	}
	for entry := range got {
		if extra[entry] == "" {
			t.Errorf("%s: kube-scheduler's plugin has no such point", entry)
		}
	}
}
