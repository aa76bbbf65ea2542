package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/why"
)

// Bounds of the events that are read.
const (
	eventsOfObject   = 100
	eventsOfCreation = 500 // of all objects
	mostMakers       = 20  // objects below a workload whose events are read
)

// addEvents adds the events about a pod of a running cluster.
func (q *whyOptions) addEvents(ctx context.Context, set *manifest.Set, pod *v1.Pod, stderr io.Writer) error {
	if !q.isLive() {
		return nil
	}
	ctx, cancel := reading(ctx)
	defer cancel()
	about := fields.Set{"involvedObject.kind": "Pod", "involvedObject.name": pod.Name, "reason": string(machine.ReasonFailedScheduling)}
	return unread(ctx, stderr, q.listEvents(ctx, set, pod.Namespace, about, eventsOfObject, stderr))
}

// addDeployment adds the Deployment that made the pod's ReplicaSet on a running cluster: it says
// whether its last rollout is under way.
func (q *whyOptions) addDeployment(ctx context.Context, set *manifest.Set, pod *v1.Pod, stderr io.Writer) error {
	name := deploymentOf(set, pod)
	if !q.isLive() || name == "" {
		return nil
	}
	config, err := q.connect()
	if err != nil {
		return err
	}
	client, err := appsclient.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := reading(ctx)
	defer cancel()
	d, err := client.Deployments(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		err = set.Add(d, "apps/v1/Deployment", config.Host)
	}
	if err != nil {
		err = fmt.Errorf("reading deployment %s/%s: %w", pod.Namespace, name, err)
	}
	return unread(ctx, stderr, err)
}

// deploymentOf returns the name of the Deployment that made the pod's ReplicaSet, "" for none.
func deploymentOf(set *manifest.Set, pod *v1.Pod) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "ReplicaSet" {
		return ""
	}
	for _, o := range slices.Concat(set.Workloads, set.Running) {
		rs, is := o.(*appsv1.ReplicaSet)
		if !is || rs.Namespace != pod.Namespace || rs.Name != owner.Name {
			continue
		}
		if by := metav1.GetControllerOfNoCopy(rs); by != nil && by.Kind == "Deployment" {
			return by.Name
		}
	}
	return ""
}

// addControllers adds the workloads of a running cluster.
func (q *whyOptions) addControllers(ctx context.Context, set *manifest.Set, stderr io.Writer) error {
	if !q.isLive() {
		return nil
	}
	config, err := q.connect()
	if err != nil {
		return err
	}
	ctx, cancel := reading(ctx)
	defer cancel()
	for i := range manifest.Controllers {
		k := &manifest.Controllers[i]
		if slices.ContainsFunc(manifest.OfNewPods, func(read decode.Kind) bool { return read.Key() == k.Key() }) {
			continue
		}
		if err := addAll(ctx, set, config, k, ""); err != nil {
			if err := unread(ctx, stderr, fmt.Errorf("listing %s: %w", k.Key(), err)); err != nil {
				return err
			}
		}
	}
	return nil
}

// addCreations adds the events of a running cluster about pods that could not be made: of the
// workload and what it made or, if it is nil, of all workloads. It adds those about pods that
// were preempted, too.
func (q *whyOptions) addCreations(ctx context.Context, c *why.Cluster, of *why.Workload, stderr io.Writer) error {
	if !q.isLive() {
		return nil
	}
	ctx, cancel := reading(ctx)
	defer cancel()
	namespace := q.api.given()
	if of != nil {
		namespace = of.Namespace
	}
	if err := unread(ctx, stderr, q.listEvents(ctx, c.Set, namespace, fields.Set{"reason": "Preempted"}, eventsOfCreation, stderr)); err != nil {
		return err
	}
	if of == nil {
		return unread(ctx, stderr, q.listEvents(ctx, c.Set, namespace, fields.Set{"reason": "FailedCreate"}, eventsOfCreation, stderr))
	}
	makers := c.Makers(*of)
	if more := len(makers) - mostMakers; more > 0 {
		terminal.Fprintf(stderr, "berth: note: the events of %d older %ss of %s are not read\n", more, makers[mostMakers].Kind, of)
		makers = makers[:mostMakers]
	}
	for _, m := range makers {
		about := fields.Set{"involvedObject.kind": m.Kind, "involvedObject.name": m.Name, "reason": "FailedCreate"}
		if err := unread(ctx, stderr, q.listEvents(ctx, c.Set, m.Namespace, about, eventsOfObject, stderr)); err != nil {
			return err
		}
	}
	return nil
}

// reading returns a context for lists that the answer can do without: half of the time that is
// left.
func reading(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/2)
}

// unread says what could not be read, so that the answer does without. It is an error only if
// nobody waits for the answer any more.
func unread(ctx context.Context, stderr io.Writer, err error) error {
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	terminal.Fprintf(stderr, "berth: note: %s; the answer does without what was not read\n", err)
	return nil
}

// listEvents adds at most so many events, and says so if there are more.
func (q *whyOptions) listEvents(ctx context.Context, set *manifest.Set, namespace string, about fields.Set, most int64, stderr io.Writer) error {
	config, err := q.connect()
	if err != nil {
		return err
	}
	core, err := corev1.NewForConfig(config)
	if err != nil {
		return err
	}
	list, err := core.Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: sorted(about), Limit: most})
	if err != nil {
		return fmt.Errorf("listing events with %s: %w", sorted(about), err)
	}
	for i := range list.Items {
		if err := set.Add(&list.Items[i], "v1/Event", config.Host); err != nil {
			return err
		}
	}
	if list.Continue != "" {
		terminal.Fprintf(stderr, "berth: note: only %d of the events with %s are read; the answer does without the others\n", len(list.Items), sorted(about))
	}
	return nil
}

// stalled says why the scheduler of a running cluster places nothing now, "" if it is not known to be
// so.
func (q *whyOptions) stalled(ctx context.Context, scheduler string, stderr io.Writer) string {
	if !q.isLive() {
		return ""
	}
	config, err := q.connect()
	if err == nil {
		var said, note string
		if said, note, err = stalled(ctx, config, q.daemon.lease, scheduler); err == nil {
			if note != "" {
				terminal.Fprintf(stderr, "berth: note: %s\n", note)
			}
			return said
		}
	}
	terminal.Fprintf(stderr, "berth: note: %s; whether anybody schedules is not known\n", err)
	return ""
}

// sorted returns the selector with its fields in their order.
func sorted(about fields.Set) string {
	var parts []string
	for _, field := range slices.Sorted(maps.Keys(about)) {
		parts = append(parts, field+"="+fields.EscapeValue(about[field]))
	}
	return strings.Join(parts, ",")
}
