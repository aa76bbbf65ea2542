// Command coscheduling is Berth with the Coscheduling plugin of
// sigs.k8s.io/scheduler-plugins. It is a module of its own, as the plugin links
// k8s.io/kubernetes. No release of the plugin compiles against v1.37: lab/e2e,
// TestCoscheduling, builds it with another Less.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"
	"sigs.k8s.io/scheduler-plugins/apis/config"
	configv1 "sigs.k8s.io/scheduler-plugins/apis/config/v1"
	"sigs.k8s.io/scheduler-plugins/pkg/coscheduling"

	"github.com/berth-scheduler/berth/scheduler"
)

func main() {
	os.Exit(cli.Run(scheduler.NewCommand(
		scheduler.WithPlugin(coscheduling.Name, coscheduling.New),
		scheduler.WithScheme(config.AddToScheme),
		scheduler.WithScheme(configv1.AddToScheme),
		scheduler.WithPodsToActivate(func() framework.StateData { return upstream.NewPodsToActivate() }),
	)))
}
