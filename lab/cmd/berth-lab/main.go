// Command berth-lab runs a real Kubernetes control plane on this machine, with
// Berth or kube-scheduler as its scheduler.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/lab/attack"
	"github.com/berth-scheduler/berth/lab/bench"
	"github.com/berth-scheduler/berth/lab/chaos"
	"github.com/berth-scheduler/berth/lab/child"
	"github.com/berth-scheduler/berth/lab/conform"
	"github.com/berth-scheduler/berth/lab/failover"
	"github.com/berth-scheduler/berth/lab/faults"
	"github.com/berth-scheduler/berth/lab/up"
	simulated "github.com/berth-scheduler/berth/sim/chaos"
)

// version is set when the lab is built.
var version = "unknown"

func main() {
	child.RunIfAsked()
	// Cobra adds the global flags to every command, and Kubernetes' packages have
	// registered some there.
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ContinueOnError)
	root := &cobra.Command{
		Use:           "berth-lab",
		Short:         "A real Kubernetes control plane on this machine, to try, test and measure schedulers",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(terminal.NewWriter(os.Stdout))
	root.SetErr(terminal.NewWriter(os.Stderr))
	root.AddCommand(up.NewCommand(), attack.NewCommand(), bench.NewCommand(), chaos.NewCommand(), conform.NewCommand(), failover.NewCommand(), faults.NewCommand(), simulated.NewCommand())
	if err := root.Execute(); err != nil {
		fmt.Fprintln(root.ErrOrStderr(), "berth-lab:", err)
		os.Exit(1)
	}
}
