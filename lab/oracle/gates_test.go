package oracle

import (
	"maps"
	"slices"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"

	"github.com/berth-scheduler/berth/edge/config/features"
)

// Berth's gates are v1.36.3's, with their stages and defaults in each version,
// and what each needs.
func TestGatesAreUpstreams(t *testing.T) {
	theirs, ours := utilfeature.DefaultMutableFeatureGate, features.New()
	all, own := theirs.GetAllVersioned(), ours.GetAllVersioned()
	for name := range own {
		if all[name] == nil && !ofLogs[name] {
			t.Errorf("%s: v1.36.3 has no such gate", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		specs := own[name]
		same := slices.EqualFunc(all[name], specs, func(a, b featuregate.FeatureSpec) bool {
			return a.Version.EqualTo(b.Version) && a.Default == b.Default && a.PreRelease == b.PreRelease && a.LockToDefault == b.LockToDefault
		})
		if !same {
			t.Errorf("%s: %v, want %v", name, specs, all[name])
		}
	}
	needs := ours.Dependencies()
	for name, want := range theirs.Dependencies() {
		got := slices.Clone(needs[name])
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s needs %v, want %v", name, got, want)
		}
	}
}

// ofLogs are gates that the libraries of logs and metrics add to the set: Berth's
// has them from the start.
var ofLogs = map[featuregate.Feature]bool{
	"ContextualLogging": true, "LoggingAlphaOptions": true, "LoggingBetaOptions": true, "NativeHistograms": true,
}
