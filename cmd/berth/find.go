package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	leasev1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/berth-scheduler/berth/edge/pin"
	"github.com/berth-scheduler/berth/edge/untrusted"
)

// usualLeases are tried in this order where --lease does not say which.
var usualLeases = []string{"kube-system/berth-scheduler", "kube-system/kube-scheduler"}

// usualPort is a scheduler's secure port.
const usualPort = "10259"

// find finds the pod of the scheduler that leads, by its lease, and forwards a port to
// it.
func (d *daemonFlags) find(ctx context.Context, config *rest.Config) (*daemon, error) {
	found := rest.CopyConfig(config)
	found.Timeout = answerTimeout
	found.Wrap(untrusted.Answers(mostAnswer))
	leases, err := coordinationv1.NewForConfig(found)
	if err != nil {
		return nil, err
	}
	core, err := corev1.NewForConfig(found)
	if err != nil {
		return nil, err
	}
	lease, err := d.held(ctx, leases)
	if err != nil {
		return nil, fmt.Errorf("--daemon auto: %w", err)
	}
	holder := *lease.Spec.HolderIdentity
	certificate, err := pin.Read(lease)
	if err != nil {
		return nil, fmt.Errorf("--daemon auto: the lease %s/%s is held by %s: %w; give --daemon URL", lease.Namespace, lease.Name, holder, err)
	}
	pod, err := podOf(ctx, core.Pods(lease.Namespace), holder)
	if err != nil {
		return nil, fmt.Errorf("--daemon auto: %w", err)
	}
	local, end, err := forward(ctx, config, core, pod)
	if err != nil {
		return nil, fmt.Errorf("--daemon auto: forwarding a port to pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	// The pod may be another's that has such a name, or a port that another holds.
	way, err := dialPinned(config, local, certificate, end)
	if err != nil {
		end()
	}
	return way, err
}

// held is the lease that somebody holds.
func (d *daemonFlags) held(ctx context.Context, leases coordinationv1.LeasesGetter) (*leasev1.Lease, error) {
	names := usualLeases
	if d.lease != "" {
		names = []string{d.lease}
	}
	for _, full := range names {
		namespace, name, ok := strings.Cut(full, "/")
		if !ok || namespace == "" || name == "" {
			return nil, fmt.Errorf("--lease %s: must be NAMESPACE/NAME", full)
		}
		l, err := leases.Leases(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("reading lease %s: %w", full, err)
		case l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != "":
			l.Namespace, l.Name = namespace, name
			return l, nil
		}
	}
	return nil, fmt.Errorf("nobody holds the lease %s; if it runs with --leader-elect=false or outside the cluster, give --daemon URL", strings.Join(names, " or "))
}

// podOf is the pod of a lease's holder: HOST_UUID, where the host is the pod, or the
// node of a pod in the host's network.
func podOf(ctx context.Context, pods corev1.PodInterface, holder string) (*v1.Pod, error) {
	host := holder
	if at := strings.LastIndex(holder, "_"); at > 0 {
		host = holder[:at]
	}
	pod, err := pods.Get(ctx, host, metav1.GetOptions{})
	if err == nil || !apierrors.IsNotFound(err) {
		return pod, err
	}
	list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		p := &list.Items[i]
		if p.Spec.HostNetwork && p.Spec.NodeName == host && (p.Labels["component"] == "kube-scheduler" || p.Labels["app.kubernetes.io/name"] == "berth-scheduler") {
			return p, nil
		}
	}
	return nil, fmt.Errorf("the lease is held by %s, which is no pod there; if the scheduler runs outside the cluster, give --daemon URL", holder)
}

var securePort = regexp.MustCompile(`--secure-port[= ](\d+)`)

// portOf is the secure port by the flags of the pod's containers.
func portOf(p *v1.Pod) string {
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		if found := securePort.FindStringSubmatch(strings.Join(append(append([]string(nil), c.Command...), c.Args...), " ")); found != nil {
			return found[1]
		}
	}
	return usualPort
}

// forward forwards a free local port to the pod's secure port.
func forward(ctx context.Context, config *rest.Config, core corev1.CoreV1Interface, p *v1.Pod) (local *url.URL, end func(), err error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, nil, err
	}
	at := core.RESTClient().Post().Namespace(p.Namespace).Resource("pods").Name(p.Name).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at)
	stop, ready, failed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:" + portOf(p)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return nil, nil, err
	}
	go func() { failed <- f.ForwardPorts() }()
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errSilent)
	defer cancel()
	select {
	case <-ready:
	case err := <-failed:
		if err == nil {
			err = errors.New("it ended at once")
		}
		return nil, nil, err
	case <-ctx.Done():
		close(stop)
		return nil, nil, context.Cause(ctx)
	}
	ports, err := f.GetPorts()
	if err != nil {
		close(stop)
		return nil, nil, err
	}
	return &url.URL{Scheme: "https", Host: fmt.Sprintf("127.0.0.1:%d", ports[0].Local)}, func() { close(stop) }, nil
}
