package inprocess

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	configv1 "k8s.io/kube-scheduler/config/v1"
	kubeconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// processGates returns Berth's gates with the values that kube-scheduler would find
// in this process, except for those that Berth refuses.
func processGates() (featuregate.MutableVersionedFeatureGate, error) {
	gates, process := features.New(), utilfeature.DefaultMutableFeatureGate
	if err := gates.SetEmulationVersion(process.EmulationVersion()); err != nil {
		return nil, err
	}
	known, values := gates.GetAll(), map[string]bool{}
	for name, spec := range process.GetAll() {
		if _, both := known[name]; both && !spec.LockToDefault && process.Enabled(name) != gates.Enabled(name) {
			values[string(name)] = process.Enabled(name)
		}
	}
	if err := gates.SetFromMap(values); err != nil {
		return nil, err
	}
	return gates, leaveRefused(gates)
}

// leaveRefused gives the gates that Berth refuses the value that it has. The daemon
// would not start. A test of a gate fails then; the others do not ask for it.
func leaveRefused(gates featuregate.MutableVersionedFeatureGate) error {
	values := map[string]bool{}
	for _, err := range features.Unsupported(gates) {
		var r *features.Refusal
		if !errors.As(err, &r) {
			return err
		}
		fmt.Printf("SUITES: Berth refuses %s=%t\n", r.Gate, r.Value)
		values[string(r.Gate)] = !r.Value
		if r.Value {
			turnOff(gates, r.Gate, values)
		}
	}
	return gates.SetFromMap(values)
}

// turnOff turns off what needs a gate.
func turnOff(gates featuregate.MutableVersionedFeatureGate, gate featuregate.Feature, values map[string]bool) {
	for name, needs := range gates.Dependencies() {
		if slices.Contains(needs, gate) && gates.Enabled(name) {
			values[string(name)] = false
			turnOff(gates, name, values)
		}
	}
}

// gated are the plugins that only a gate brings, which Berth refuses.
var gated = map[string]featuregate.Feature{
	names.GangScheduling:             features.GenericWorkload,
	names.TopologyPlacementGenerator: features.TopologyAwareWorkloadScheduling,
	names.PodGroupPodsCount:          features.TopologyAwareWorkloadScheduling,
}

// config is the configuration of the published version that says the same.
func (o *Options) config(gates featuregate.FeatureGate) (*config.Config, error) {
	published, internal := configv1.KubeSchedulerConfiguration{}, &kubeconfig.KubeSchedulerConfiguration{}
	scheme.Scheme.Default(&published)
	if err := scheme.Scheme.Convert(&published, internal, nil); err != nil {
		return nil, err
	}
	internal.LeaderElection.LeaderElect = false
	internal.Parallelism, internal.Extenders = o.Parallelism, o.Extenders
	internal.Profiles = slices.Clone(o.Profiles)
	for i := range internal.Profiles {
		internal.Profiles[i] = *internal.Profiles[i].DeepCopy()
		if p := internal.Profiles[i].Plugins; p != nil {
			p.MultiPoint.Enabled = slices.DeleteFunc(p.MultiPoint.Enabled, func(p kubeconfig.Plugin) bool {
				gate, some := gated[p.Name]
				return some && !gates.Enabled(gate)
			})
			// These plugins are all there are: none is added by default.
			p.MultiPoint.Disabled = append(p.MultiPoint.Disabled, kubeconfig.Plugin{Name: "*"})
		}
	}
	body, err := encode(internal)
	if err != nil {
		return nil, fmt.Errorf("the test's configuration: %w", err)
	}
	c, err := config.With(gates).Decode(body, "the test's configuration")
	if err != nil {
		return nil, err
	}
	// Tests may give what a file may not: no backoff at all.
	c.PodInitialBackoffSeconds, c.PodMaxBackoffSeconds = &o.InitialBackoff, &o.MaxBackoff
	return c, nil
}

func encode(c *kubeconfig.KubeSchedulerConfiguration) ([]byte, error) {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeYAML)
	if !ok {
		return nil, fmt.Errorf("no encoder of %s", runtime.ContentTypeYAML)
	}
	var body bytes.Buffer
	err := scheme.Codecs.EncoderForVersion(info.Serializer, configv1.SchemeGroupVersion).Encode(c, &body)
	return body.Bytes(), err
}
