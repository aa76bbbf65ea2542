// Command berth-lab-skew hosts kube-apiserver and kube-controller-manager of the other
// Kubernetes minor that Berth serves, beside the one that the lab links. A lab starts it in
// place of its own executable: see cluster.Options. It is a module of its own, because a
// program links one version of Kubernetes. etcd, kwok and the schedulers stay the lab's.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the clients' own metrics
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// components are what the second argument may name, after cluster.ChildCommand.
var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
}

func main() {
	if len(os.Args) < 3 || os.Args[1] != "run-component" || components[os.Args[2]] == nil {
		fmt.Fprintln(os.Stderr, "usage: berth-lab-skew run-component kube-apiserver|kube-controller-manager [FLAGS]")
		os.Exit(2)
	}
	command := components[os.Args[2]]()
	command.SetArgs(os.Args[3:])
	os.Args = os.Args[2:]
	os.Exit(cli.Run(command))
}
