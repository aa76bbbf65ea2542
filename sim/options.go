package sim

import (
	"time"

	"k8s.io/component-base/featuregate"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// Options returns a machine's options for a scheduler's configuration under
// kube-scheduler's default feature gates, with the plugins that come with Berth.
func Options(c *config.Config) (machine.Options, error) { return OptionsUnder(c, features.New()) }

// OptionsUnder is Options under other feature gates.
func OptionsUnder(c *config.Config, gates featuregate.FeatureGate) (machine.Options, error) {
	profiles, err := profile.BuildAll(config.Profiles(c), plugins.Registry(features.Plugins(gates)))
	if err != nil {
		return machine.Options{}, err
	}
	return optionsWith(profiles, c, gates), nil
}

func optionsWith(profiles []*profile.Profile, c *config.Config, gates featuregate.FeatureGate) machine.Options {
	return machine.Options{
		Profiles:         profiles,
		Workers:          1,
		PodGroups:        gates.Enabled(features.GenericWorkload),
		GroupPlacements:  gates.Enabled(features.TopologyAwareWorkloadScheduling),
		HideExpectedNode: !gates.Enabled(features.NominatedNodeNameForExpectation),
		WaitForEvictions: !gates.Enabled(features.SchedulerAsyncPreemption),
		WaitOutBackoff:   !gates.Enabled(features.SchedulerPopFromBackoffQ),
		Check:            config.CheckInvariants(),
		InitialBackoff:   time.Duration(*c.PodInitialBackoffSeconds) * time.Second,
		MaxBackoff:       time.Duration(*c.PodMaxBackoffSeconds) * time.Second,
		MaxUnschedulable: queue.DefaultMaxUnschedulable,
	}
}
