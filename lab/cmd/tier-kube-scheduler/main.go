// Command tier-kube-scheduler is kube-scheduler with the plugins of examples/: the
// packages that run in Berth, unchanged.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/berth-scheduler/berth/examples/gang"
	"github.com/berth-scheduler/berth/examples/tier"
)

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand(
		app.WithPlugin(tier.Name, tier.New),
		app.WithPlugin(gang.Name, gang.New),
		app.WithPlugin(gang.QuotaName, gang.NewQuota),
	)))
}
