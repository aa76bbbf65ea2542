// Command teamlimit-scheduler is an example of a scheduler of one's own: Berth
// with the plugin of package teamlimit.
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"github.com/berth-scheduler/berth/examples/teamlimit"
	"github.com/berth-scheduler/berth/scheduler"
)

func main() {
	os.Exit(cli.Run(scheduler.NewCommand(
		scheduler.WithNativePlugin(teamlimit.Name, teamlimit.New),
	)))
}
