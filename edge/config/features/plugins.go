package features

import (
	"k8s.io/component-base/featuregate"

	"github.com/berth-scheduler/berth/core/plugins"
)

// Plugins is what the gates say to the plugins that come with Berth.
func Plugins(gates featuregate.FeatureGate) plugins.Features {
	return plugins.Features{
		TaintComparisons:     gates.Enabled("TaintTolerationComparisonOperators"),
		NodeDeclaredFeatures: gates.Enabled(NodeDeclaredFeatures),
	}
}
