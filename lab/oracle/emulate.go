package oracle

import (
	"maps"

	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"

	"github.com/berth-scheduler/berth/edge/config/features"
)

// Emulated is the newest version that allows the gates to be set: a gate that is locked can be
// turned off where an earlier version is emulated. It is that of the gates themselves where none
// allows it.
func Emulated(gates map[string]bool) *version.Version {
	for _, v := range versions() {
		set := features.New()
		if set.SetEmulationVersion(v) == nil && set.SetFromMap(gates) == nil {
			return v
		}
	}
	return versions()[0]
}

// versions are those that kube-scheduler can emulate, its own first.
func versions() []*version.Version {
	newest := features.New().EmulationVersion()
	return []*version.Version{newest, newest.SubtractMinor(1), newest.SubtractMinor(2), newest.SubtractMinor(3)}
}

// setGates sets the gates of the process, under the version that allows them, and returns
// which version was emulated before.
func setGates(gates map[string]bool) (before *version.Version) {
	all := utilfeature.DefaultMutableFeatureGate
	before = all.EmulationVersion()
	if len(gates) == 0 {
		return before
	}
	if v := Emulated(gates); v.LessThan(before) {
		emulate(v)
	}
	set(gates)
	return before
}

// resetGates sets the gates back to what they were under the version that was emulated.
func resetGates(to map[string]bool, before *version.Version) {
	for name := range to { // any order: a set
		if err := utilfeature.DefaultMutableFeatureGate.ResetFeatureValueToDefault(featuregate.Feature(name)); err != nil {
			panic(err)
		}
	}
	emulate(before)
	given := maps.Clone(to)
	maps.DeleteFunc(given, func(name string, on bool) bool { // a value that is set stands in the way of older versions
		return utilfeature.DefaultFeatureGate.Enabled(featuregate.Feature(name)) == on
	})
	set(given)
}

func emulate(v *version.Version) {
	if err := utilfeature.DefaultMutableFeatureGate.SetEmulationVersion(v); err != nil {
		panic(err)
	}
}

func set(gates map[string]bool) {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		panic(err) // the project's own
	}
}
