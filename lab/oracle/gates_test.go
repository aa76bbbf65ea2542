package oracle

import (
	"maps"
	"slices"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// Berth's gates are kube-scheduler's, with their stages and defaults in each version,
// and what each needs.
func TestGatesAreUpstreams(t *testing.T) {
	theirs, ours := utilfeature.DefaultMutableFeatureGate, features.New()
	all, own := theirs.GetAllVersioned(), ours.GetAllVersioned()
	for name := range own {
		if all[name] == nil && !ofLogs[name] {
			t.Errorf("%s: kube-scheduler has no such gate", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		specs := own[name]
		same := slices.EqualFunc(all[name], specs, func(a, b featuregate.FeatureSpec) bool {
			return a.Version.EqualTo(b.Version) && a.Default == b.Default && a.PreRelease == b.PreRelease && a.LockToDefault == b.LockToDefault &&
				a.MinCompatibilityVersion.String() == b.MinCompatibilityVersion.String()
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

// Under each version that can be emulated a gate has kube-scheduler's value, and the other value
// is accepted or refused as there.
func TestGatesUnderEmulationAreUpstreams(t *testing.T) {
	for _, v := range versions() {
		theirs, ours := utilfeature.DefaultMutableFeatureGate.DeepCopy(), features.New()
		for _, gates := range []featuregate.MutableVersionedFeatureGate{theirs, ours} {
			if err := gates.SetEmulationVersion(v); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(theirs.GetAllVersioned())) {
			value := theirs.Enabled(name)
			if ours.Enabled(name) != value {
				t.Errorf("%s: %s is %t, want %t", v, name, !value, value)
			}
			other := map[string]bool{string(name): !value}
			want, got := theirs.DeepCopy().SetFromMap(other), ours.DeepCopy().SetFromMap(other)
			if (got == nil) != (want == nil) {
				t.Errorf("%s: %s=%t: got %v, want %v", v, name, !value, got, want)
			}
		}
	}
}

// Under each of them, the plugins that are enabled by default are kube-scheduler's, in its order
// and with its weights.
func TestDefaultPluginsUnderEmulationAreUpstreams(t *testing.T) {
	for _, v := range versions() {
		t.Run(v.String(), func(t *testing.T) {
			featuregatetesting.SetFeatureGateEmulationVersionDuringTest(t, utilfeature.DefaultFeatureGate, v)
			var theirs configv1.KubeSchedulerConfiguration
			scheme.Scheme.Default(&theirs)
			gates := features.New()
			if err := gates.SetEmulationVersion(v); err != nil {
				t.Fatal(err)
			}
			want, got := theirs.Profiles[0].Plugins.MultiPoint.Enabled, config.With(gates).Default().Profiles[0].Plugins.MultiPoint.Enabled
			same := slices.EqualFunc(got, want, func(a, b configv1.Plugin) bool {
				return a.Name == b.Name && (a.Weight == nil) == (b.Weight == nil) && (a.Weight == nil || *a.Weight == *b.Weight)
			})
			if !same {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
