// Command hosted-scheduler is an example of a scheduler of one's own: Berth with
// plugins that are written against k8s.io/kube-scheduler/framework.
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"github.com/berth-scheduler/berth/examples/gang"
	"github.com/berth-scheduler/berth/examples/tier"
	"github.com/berth-scheduler/berth/scheduler"
)

func main() {
	os.Exit(cli.Run(scheduler.NewCommand(
		scheduler.WithPlugin(tier.Name, tier.New),
		scheduler.WithPlugin(gang.Name, gang.New),
		scheduler.WithPlugin(gang.QuotaName, gang.NewQuota),
	)))
}
