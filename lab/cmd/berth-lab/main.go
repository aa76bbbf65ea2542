// Command berth-lab runs a real Kubernetes control plane on this machine, with
// Berth or kube-scheduler as its scheduler.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/berth-scheduler/berth/lab/child"
)

func main() {
	child.RunIfAsked()
	root := &cobra.Command{
		Use:           "berth-lab",
		Short:         "A real Kubernetes control plane on this machine, to try, test and measure schedulers",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newUpCommand())
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "berth-lab:", err)
		os.Exit(1)
	}
}
