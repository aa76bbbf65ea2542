package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/profile"
)

// The core's form of a profile has the plugins, weights and arguments of the
// file.
func TestProfiles(t *testing.T) {
	got := Profiles(mustDecode(t, `
profiles:
- schedulerName: a
  plugins:
    multiPoint: {disabled: [{name: '*'}], enabled: [{name: M, weight: 4}]}
    score: {enabled: [{name: S}], disabled: [{name: M}]}
  pluginConfig: [{name: M, args: {x: 1}}, {name: Other}, {name: NodeAffinity, args: {}}]
- schedulerName: b
  plugins: {multiPoint: {disabled: [{name: '*'}]}}
`))
	want := profile.Config{Name: "a", MultiPoint: profile.Set{Enabled: []profile.Enabled{{Plugin: "M", Weight: 4}}, Disabled: []string{"*"}}}
	want.Points[profile.Score] = profile.Set{Enabled: []profile.Enabled{{Plugin: "S"}}, Disabled: []string{"M"}}
	want.Args = []profile.Args{{Plugin: "M", Value: json.RawMessage(`{"x":1}`)}, {Plugin: "NodeAffinity", Value: got[0].Args[1].Value}}
	if !reflect.DeepEqual(got[0], want) {
		t.Errorf(" got %+v\nwant %+v", got[0], want)
	}
	if _, ok := got[0].Args[1].Value.(*configv1.NodeAffinityArgs); !ok {
		t.Errorf("got %T", got[0].Args[1].Value)
	}
	if len(got) != 2 || got[1].Name != "b" {
		t.Errorf("got %+v", got)
	}
}

// A plugin that is enabled at one extension point is there in the core's form.
func TestProfilesKeepThePoints(t *testing.T) {
	custom := &configv1.Plugins{}
	for _, pt := range points(custom) {
		pt.set.Enabled = []configv1.Plugin{{Name: pt.name}}
	}
	name := "a"
	got := Profiles(&Config{Profiles: []configv1.KubeSchedulerProfile{{SchedulerName: &name, Plugins: custom}}})[0]
	if fmt.Sprint(got.MultiPoint.Enabled) != "[{multiPoint 0}]" {
		t.Errorf("MultiPoint: got %v", got.MultiPoint)
	}
	for pt := range profile.Points {
		if enabled := got.Points[pt].Enabled; len(enabled) != 1 || !strings.EqualFold(enabled[0].Plugin, pt.String()) {
			t.Errorf("%s: got %v", pt, enabled)
		}
	}
}
