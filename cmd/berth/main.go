// Command berth is the tool for people. It shows what a scheduler would do with
// a cluster, and why. Under the name kubectl-berth it is a plugin of kubectl.
package main

import (
	"os"

	"github.com/berth-scheduler/berth/scheduler"
)

func main() {
	os.Exit(scheduler.RunTool(scheduler.NewToolCommand()))
}
