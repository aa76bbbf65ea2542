package features

import (
	_ "embed"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
)

// history is what became of each gate from version to version. It is the whole list, not
// the scheduler's part of it: clusters give one --feature-gates to all components. A line reads
//
//	DRAConsumableCapacity: 1.34 alpha off, 1.36 beta on; needs DynamicResourceAllocation
//
// What is locked may be named, but not changed. "1.37 beta on min-compatibility 1.37" holds
// from that --min-compatibility-version on. lab/cmd/upstream makes the list from
// Kubernetes' source.
//
//go:embed gates.txt
var history string

// stages are specs of a stage, to be filled in.
var stages = map[string]featuregate.FeatureSpec{
	"alpha": {PreRelease: featuregate.Alpha}, "beta": {PreRelease: featuregate.Beta}, "GA": {PreRelease: featuregate.GA},
	"deprecated": {PreRelease: featuregate.Deprecated},
}

// table reads the history: the gates, and which others must be on for one to be on.
func table() (gates map[featuregate.Feature]featuregate.VersionedSpecs, needs map[featuregate.Feature][]featuregate.Feature) {
	gates, needs = map[featuregate.Feature]featuregate.VersionedSpecs{}, map[featuregate.Feature][]featuregate.Feature{}
	for line := range strings.Lines(history) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ": ")
		specs, others, _ := strings.Cut(rest, "; needs ")
		gate := featuregate.Feature(name)
		if gates[gate] != nil {
			panic(fmt.Sprintf("gates.txt: %s is listed twice", name))
		}
		for spec := range strings.SplitSeq(specs, ", ") {
			gates[gate] = append(gates[gate], parseSpec(spec))
		}
		for _, other := range strings.Fields(others) {
			needs[gate] = append(needs[gate], featuregate.Feature(other))
		}
	}
	return gates, needs
}

// parseSpec reads "1.36 beta on", "1.35 GA on locked", or "1.37 beta on min-compatibility 1.37".
func parseSpec(text string) featuregate.FeatureSpec {
	words := strings.Fields(text)
	spec, known := stages[words[1]]
	if !known || words[2] != "on" && words[2] != "off" {
		panic("gates.txt: " + text)
	}
	spec.Version, spec.Default = version.MustParse(words[0]), words[2] == "on"
	switch rest := words[3:]; {
	case len(rest) == 1 && rest[0] == "locked":
		spec.LockToDefault = true
	case len(rest) == 2 && rest[0] == "min-compatibility":
		spec.MinCompatibilityVersion = version.MustParse(rest[1])
	case len(rest) > 0:
		panic("gates.txt: " + text)
	}
	return spec
}
