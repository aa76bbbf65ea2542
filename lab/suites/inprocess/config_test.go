package inprocess

import (
	"testing"
	"time"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	kubefeatures "k8s.io/kubernetes/pkg/features"
	kubeconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// Berth gets the gates that a test sets, except for those that it refuses and what needs
// these.
func TestGatesOfTheProcess(t *testing.T) {
	for _, name := range []string{"GenericWorkload", "TopologyAwareWorkloadScheduling", "DRAWorkloadResourceClaims", "StorageCapacityScoring"} {
		featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, featuregate.Feature(name), true)
	}
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, kubefeatures.SchedulerAsyncPreemption, false)
	gates, err := processGates()
	if err != nil {
		t.Fatal(err)
	}
	if errs := features.Unsupported(gates); len(errs) > 0 {
		t.Error(errs)
	}
	for name, want := range map[string]bool{"GenericWorkload": true, "TopologyAwareWorkloadScheduling": true, "DRAWorkloadResourceClaims": false, "StorageCapacityScoring": true, "SchedulerAsyncPreemption": false} {
		if gates.Enabled(featuregate.Feature(name)) != want {
			t.Errorf("%s is %t", name, !want)
		}
	}
}

// The plugins of a test are all that there are, except for those of gates that Berth
// refuses, and it may do without backoff.
func TestConfigurationOfATest(t *testing.T) {
	o := Options{Parallelism: 3, MaxUnschedulable: time.Minute, Profiles: []kubeconfig.KubeSchedulerProfile{{
		SchedulerName: "one", Plugins: &kubeconfig.Plugins{MultiPoint: kubeconfig.PluginSet{Enabled: []kubeconfig.Plugin{{Name: "NodeName"}, {Name: "GangScheduling"}, {Name: "PodGroupPodsCount", Weight: 1}}}}}}}
	c, err := o.config(features.New())
	if err != nil {
		t.Fatal(err)
	}
	profiles := config.Profiles(c)
	if len(profiles) != 1 || profiles[0].Name != "one" || len(profiles[0].MultiPoint.Enabled) != 1 {
		t.Errorf("%+v", profiles)
	}
	if *c.PodInitialBackoffSeconds != 0 || *c.Parallelism != 3 || *c.LeaderElection.LeaderElect {
		t.Errorf("%+v", c)
	}
}
