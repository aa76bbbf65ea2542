package features

import (
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/component-base/featuregate"
	metricsfeatures "k8s.io/component-base/metrics/features"
)

// Apply hands the gates to the libraries that read some of them from variables of their own:
// client-go, those of the API server, and the metrics'. Call it once, before these are used.
func Apply(gates featuregate.FeatureGate) {
	metricsfeatures.ApplyFeatureGates(gates)
	clientfeatures.ReplaceFeatureGates(clientGates{gates})
	library := utilfeature.DefaultMutableFeatureGate
	values := map[string]bool{}
	known, _ := table()
	for name, spec := range library.GetAll() {
		if known[name] != nil && !spec.LockToDefault && library.Enabled(name) != gates.Enabled(name) {
			values[string(name)] = gates.Enabled(name)
		}
	}
	if err := library.SetFromMap(values); err != nil {
		utilruntime.HandleError(err) // the gates themselves were accepted: their dependencies hold
	}
}

// clientGates is the gates in client-go's eyes.
type clientGates struct{ featuregate.FeatureGate }

// Enabled is for client-go.
func (g clientGates) Enabled(f clientfeatures.Feature) bool {
	return g.FeatureGate.Enabled(featuregate.Feature(f))
}
