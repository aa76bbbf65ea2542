package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// The components of a lab, by the name under which each runs and logs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	KWOK              = "kwok"
	KubeScheduler     = "kube-scheduler"
	Berth             = "berth-scheduler"
)

// KubernetesVersion is what the components are linked at (see go.mod).
const KubernetesVersion = "v1.37.2"

// ChildCommand is the first argument with which the lab starts its own
// executable again; the component's name is the second. See child.RunIfAsked.
const ChildCommand = "run-component"

// Options says what Start starts. The zero value is a whole control plane on
// any free port, in a temporary directory.
type Options struct {
	// Dir keeps certificates, kubeconfigs, logs and etcd's data. It is made if
	// it does not exist, and a lab that is started again in it finds its cluster
	// as it was. Empty: a temporary directory, which Close removes.
	Dir string
	// Executable hosts the children; it must call child.RunIfAsked. Empty: the
	// running executable.
	Executable string
	// ControlPlane hosts kube-apiserver and kube-controller-manager, of another
	// version of Kubernetes say (lab/skew). Empty: Executable does.
	ControlPlane string
	// Port is kube-apiserver's, on 127.0.0.1; 0 is any free one.
	Port int
	// WithoutKWOK leaves nodes and pods unplayed: a node has the status that it
	// was created with, a bound pod stays Pending.
	WithoutKWOK bool
	// WithoutControllers leaves out kube-controller-manager, and with it the
	// admission plugins that count on it (service accounts, the not-ready taint).
	WithoutControllers bool
	// Controllers are those that kube-controller-manager runs, by name; none: all
	// of them. With some, what counts on others is left out as without any.
	Controllers []string
	// APIServerFlags come after the lab's own, so that they override them.
	APIServerFlags []string
}

// complete checks the options and fills in what was left empty.
func (o Options) complete() (Options, error) {
	if o.Port < 0 || o.Port > 65535 {
		return o, fmt.Errorf("port %d: must be between 0 and 65535", o.Port)
	}
	if o.Executable == "" {
		self, err := os.Executable()
		if err != nil {
			return o, fmt.Errorf("finding the running executable: %w", err)
		}
		o.Executable = self
	}
	if o.ControlPlane == "" {
		o.ControlPlane = o.Executable
	}
	for _, path := range []*string{&o.Dir, &o.Executable, &o.ControlPlane} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return o, err
		}
		*path = absolute
	}
	return o, nil
}
