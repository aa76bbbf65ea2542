package main

import (
	"os"

	"k8s.io/component-base/cli"

	"github.com/berth-scheduler/berth/scheduler"
)

func main() {
	os.Exit(cli.Run(scheduler.NewCommand()))
}
