package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

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

// usualLeases are read in this order where no lease is found by its label, as leases of
// all namespaces may not be listed.
var usualLeases = []string{"kube-system/berth-scheduler", "kube-system/kube-scheduler"}

// staleLease is how much older than the newest renewal that of a lease may be whose holder
// is taken to live.
const staleLease = time.Minute

// mostLabelled bounds the leases with Berth's label that are read, and mostElsewhere those outside
// kube-system whose holder is looked at.
const (
	mostLabelled  = 500
	mostElsewhere = 10
)

// findTime bounds the search for the scheduler.
const findTime = 20 * time.Second

// usualPort is a scheduler's secure port.
const usualPort = "10259"

// find finds the pod of the scheduler that leads, by its lease, and forwards a port to
// it.
func (d *daemonFlags) find(ctx context.Context, config *rest.Config) (*daemon, error) {
	start := time.Now()
	search, cancel := context.WithTimeoutCause(ctx, findTime, errSilent)
	defer cancel()
	found := rest.CopyConfig(config)
	found.Wrap(untrusted.Answers(mostAnswer))
	core, err := corev1.NewForConfig(found)
	if err != nil {
		return nil, err
	}
	lease, certificate, err := d.leader(search, found)
	if err != nil {
		return nil, fmt.Errorf("--daemon auto: %w", cmp.Or(silence(search), err))
	}
	pod, err := podOf(search, core, lease.Namespace, certificate.Holder)
	if err != nil {
		err = fmt.Errorf("--daemon auto: %w", cmp.Or(silence(search), err))
		if unread := new(url.Error); errors.As(err, &unread) || apierrors.IsForbidden(err) {
			return nil, err
		}
		return nil, &unserved{err, false}
	}
	local, end, err := forward(ctx, config, core, pod)
	if err != nil {
		err = fmt.Errorf("--daemon auto: forwarding a port to pod %s/%s: %w", pod.Namespace, pod.Name, err)
		if errors.Is(err, errSilent) {
			return nil, err
		}
		return nil, &unserved{err, false}
	}
	// The pod may be another's that has such a name, or a port that another holds.
	way, err := dialPinned(config, local, certificate, end)
	if err != nil {
		end()
		return nil, err
	}
	way.leader = pod
	way.patience -= time.Since(start)
	return way, nil
}

// leader returns the lease that a Berth holds: that of --lease, else the one that is found
// by its label, else one of the usual ones. Of leases outside kube-system only those count whose
// holder may bind pods.
func (d *daemonFlags) leader(ctx context.Context, config *rest.Config) (*leasev1.Lease, *pin.Pin, error) {
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	if d.lease != "" {
		return firstHeld(ctx, leases, []string{d.lease})
	}
	held, unlisted, left := labelled(ctx, leases, config)
	switch held = withoutStale(held, time.Now()); len(held) {
	case 0:
	case 1:
		p, err := pin.Read(held[0])
		return held[0], p, err
	default:
		names := make([]string, len(held))
		for i, l := range held {
			names[i] = l.Namespace + "/" + l.Name
		}
		return nil, nil, fmt.Errorf("several schedulers lead, each with a lease of its own: give --lease %s", strings.Join(names, " or --lease "))
	}
	l, p, err := firstHeld(ctx, leases, usualLeases)
	switch {
	case err == nil || ctx.Err() != nil:
	case left != nil:
		err = left
	case apierrors.IsForbidden(unlisted):
		err = fmt.Errorf("%w (leases of all namespaces may not be listed: give --lease NAMESPACE/NAME if it is another)", err)
	}
	return l, p, err
}

// labelled returns the leases with Berth's label that Berths hold and that are trusted, why they
// could not be listed, and why some were left out.
func labelled(ctx context.Context, leases coordinationv1.LeasesGetter, config *rest.Config) (held []*leasev1.Lease, unlisted, left error) {
	list, err := leases.Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: pin.Label, Limit: mostLabelled})
	if err != nil {
		return nil, err, nil
	}
	for i := range list.Items {
		if _, err := pin.Read(&list.Items[i]); err == nil {
			held = append(held, &list.Items[i])
		}
	}
	held, left = trusted(ctx, config, held)
	return held, nil, left
}

// withoutStale leaves out leases whose renewals ended while another's went on. No renewal counts as
// later than now.
func withoutStale(held []*leasev1.Lease, now time.Time) []*leasev1.Lease {
	var newest time.Time
	for _, l := range held {
		if at := renewed(l); at.After(newest) && !at.After(now) {
			newest = at
		}
	}
	return slices.DeleteFunc(held, func(l *leasev1.Lease) bool { return newest.Sub(renewed(l)) > staleLease })
}

// renewed returns when the lease was renewed last.
func renewed(l *leasev1.Lease) time.Time {
	if l.Spec.RenewTime == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Time
}

// firstHeld returns the first of the leases that a Berth holds.
func firstHeld(ctx context.Context, leases coordinationv1.LeasesGetter, names []string) (*leasev1.Lease, *pin.Pin, error) {
	var others []string
	for _, full := range names {
		namespace, name, ok := strings.Cut(full, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return nil, nil, fmt.Errorf("--lease %s: must be NAMESPACE/NAME", full)
		}
		l, err := leases.Leases(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case apierrors.IsForbidden(err):
			others = append(others, fmt.Sprintf("reading lease %s: %s", full, err))
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("reading lease %s: %w", full, err)
		case l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "":
			continue
		}
		l.Namespace, l.Name = namespace, name
		p, err := pin.Read(l)
		if err == nil {
			return l, p, nil
		}
		others = append(others, notBerth(l, err))
	}
	if len(others) > 0 {
		return nil, nil, errors.New(strings.Join(others, "; "))
	}
	return nil, nil, fmt.Errorf("nobody holds the lease %s; if it runs with --leader-elect=false or outside the cluster, give --daemon URL", strings.Join(names, " or "))
}

// notBerth says who holds a lease that leads to no Berth.
func notBerth(l *leasev1.Lease, why error) string {
	of := ""
	if errors.Is(why, pin.ErrNotBerth) && l.Name == "kube-scheduler" {
		of = "kube-scheduler, "
	}
	return fmt.Sprintf("the lease %s/%s is held by %s: %s%s", l.Namespace, l.Name, *l.Spec.HolderIdentity, of, why)
}

// podOf is the pod of a lease's holder: HOST_UUID, where the host is the node of a pod in the
// host's network, or the pod. The pod is in the lease's namespace or, where Berth shares
// kube-scheduler's lease, in another. Pods of the host's network come first: another pod may
// have the node's name.
func podOf(ctx context.Context, core corev1.PodsGetter, namespace, holder string) (*v1.Pod, error) {
	host := holder
	if at := strings.LastIndex(holder, "_"); at > 0 {
		host = holder[:at]
	}
	list, unlisted := core.Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running,spec.nodeName=" + host})
	if unlisted == nil {
		for i := range list.Items {
			p := &list.Items[i]
			if p.Spec.HostNetwork && p.Spec.NodeName == host && (p.Labels["component"] == "kube-scheduler" || p.Labels["app.kubernetes.io/name"] == "berth-scheduler") {
				return p, nil
			}
		}
	}
	pod, err := core.Pods(namespace).Get(ctx, host, metav1.GetOptions{})
	if err == nil || !apierrors.IsNotFound(err) {
		return pod, err
	}
	if unlisted != nil {
		return nil, unlisted
	}
	list, err = core.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + host, Limit: 2})
	switch {
	case err == nil && len(list.Items) == 1:
		return &list.Items[0], nil
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("the lease is held by %s, which is no pod of namespace %s, and pods of all namespaces may not be listed; give --daemon URL", holder, namespace)
	case err != nil:
		return nil, err
	}
	return nil, fmt.Errorf("the lease is held by %s, which is no pod; if the scheduler runs outside the cluster, give --daemon URL", holder)
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
	ctx, cancel := context.WithTimeoutCause(ctx, findTime, errSilent)
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
