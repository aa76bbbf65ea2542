package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Of what a running scheduler takes over nothing needs a restart; of all else each
// field that differs is named.
func TestRestartNeeded(t *testing.T) {
	next := Default()
	percentage, parallel, seconds := int32(7), int32(3), int64(9)
	next.PercentageOfNodesToScore, next.Parallelism = &percentage, &parallel
	next.PodInitialBackoffSeconds, next.PodMaxBackoffSeconds = &seconds, &seconds
	next.Profiles[0].Plugins.Score.Enabled = nil
	next.Profiles[0].PluginConfig = nil
	if names := RestartNeeded(Default(), next); names != nil {
		t.Errorf("for live fields: %v", names)
	}
	next.LeaderElection.ResourceName = "other"
	next.ClientConnection.QPS = 7
	next.Extenders = []configv1.Extender{{URLPrefix: "http://x"}}
	next.DelayCacheUntilActive = true
	other := "other"
	next.Profiles[0].SchedulerName = &other
	want := []string{"leaderElection", "clientConnection", "extenders", "delayCacheUntilActive", "profiles: their schedulerName"}
	if names := RestartNeeded(Default(), next); !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	next.Profiles = append(next.Profiles, next.Profiles[0])
	if names := RestartNeeded(Default(), next); !slices.Contains(names, "profiles: their number") {
		t.Errorf("another profile: %v", names)
	}
	fields := reflect.TypeFor[Config]()
	for _, name := range live {
		if !slices.ContainsFunc(reflect.VisibleFields(fields), func(f reflect.StructField) bool {
			return strings.HasPrefix(f.Tag.Get("json"), name)
		}) {
			t.Errorf("there is no field %s", name)
		}
	}
}
