// Command hosted-tool is an example of a tool of one's own: berth with the plugins of the
// scheduler that hosted-scheduler is.
package main

import (
	"os"

	"github.com/berth-scheduler/berth/examples/gang"
	"github.com/berth-scheduler/berth/examples/tier"
	"github.com/berth-scheduler/berth/scheduler"
)

func main() {
	os.Exit(scheduler.RunTool(scheduler.NewToolCommand(
		scheduler.WithPlugin(tier.Name, tier.New),
		scheduler.WithPlugin(gang.Name, gang.New),
		scheduler.WithPlugin(gang.QuotaName, gang.NewQuota),
	)))
}
