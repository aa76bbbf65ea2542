package child

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the clients' own metrics
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// RunIfAsked becomes the component that the command line asks for
// (PROGRAM cluster.ChildCommand COMPONENT [FLAGS]) and ends the process with
// its exit status. It returns when the command line asks for nothing of the
// kind.
func RunIfAsked() {
	if len(os.Args) < 3 || os.Args[1] != cluster.ChildCommand {
		return
	}
	component := os.Args[2]
	os.Args = append([]string{component}, os.Args[3:]...)
	os.Exit(run(component))
}

func run(component string) int {
	switch component {
	case cluster.Etcd:
		return exitCode(runEtcd(os.Args[1:]))
	case cluster.APIServer:
		return runCommand(apiserver.NewAPIServerCommand())
	case cluster.ControllerManager:
		return runCommand(controllermanager.NewControllerManagerCommand())
	case cluster.KWOK:
		return exitCode(runKWOK())
	case cluster.KubeScheduler:
		return runCommand(scheduler.NewSchedulerCommand())
	}
	return exitCode(fmt.Errorf("no component is named %q", component))
}

func runCommand(command *cobra.Command) int {
	command.SetArgs(os.Args[1:])
	return cli.Run(command)
}

func exitCode(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
