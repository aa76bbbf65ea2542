package deploy

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/scheduler"
)

// The static pod has the flags that kubeadm gives kube-scheduler, and the daemon
// takes them.
func TestStaticPod(t *testing.T) {
	var pod v1.Pod
	if err := yaml.UnmarshalStrict(read(t, "static-pod.yaml"), &pod); err != nil {
		t.Fatal(err)
	}
	command := pod.Spec.Containers[0].Command
	if err := scheduler.NewCommand().ParseFlags(command[1:]); err != nil {
		t.Error(err)
	}
	const conf = "/etc/kubernetes/scheduler.conf"
	want := "kube-scheduler --authentication-kubeconfig=" + conf + " --authorization-kubeconfig=" + conf +
		" --bind-address=127.0.0.1 --kubeconfig=" + conf + " --leader-elect=true"
	if got := strings.Join(command, " "); got != want {
		t.Errorf("command %s, want %s", got, want)
	}
	if file := pod.Spec.Volumes[0].HostPath; file == nil || file.Path != conf || pod.Spec.Containers[0].VolumeMounts[0].MountPath != conf {
		t.Errorf("%s is not mounted", conf)
	}
}
