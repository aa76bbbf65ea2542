package config

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
)

// live are the fields that a running scheduler takes over.
var live = []string{"parallelism", "percentageOfNodesToScore", "podInitialBackoffSeconds", "podMaxBackoffSeconds", "profiles"}

// RestartNeeded names the fields in which a configuration differs from the one in
// effect and that a running scheduler does not take over.
func RestartNeeded(current, next *Config) []string {
	var names []string
	a, b := reflect.ValueOf(current).Elem(), reflect.ValueOf(next).Elem()
	for i := range a.NumField() {
		name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
		if name != "" && !slices.Contains(live, name) && !equality.Semantic.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			names = append(names, name)
		}
	}
	if len(current.Profiles) != len(next.Profiles) {
		return append(names, "profiles: their number")
	}
	for i := range current.Profiles {
		if *current.Profiles[i].SchedulerName != *next.Profiles[i].SchedulerName {
			return append(names, "profiles: their schedulerName")
		}
	}
	return names
}
