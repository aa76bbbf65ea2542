package tool

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/untrusted"
)

// Bounds of the events that are read.
const (
	eventsOfPod      = 100
	eventsOfCreation = 500
)

// addEvents adds the events about a pod of a running cluster.
func (q *whyOptions) addEvents(ctx context.Context, set *manifest.Set, pod *v1.Pod, stderr io.Writer) error {
	if !q.isLive() {
		return nil
	}
	config, err := q.connect()
	if err != nil {
		return err
	}
	about := fields.Set{"involvedObject.kind": "Pod", "involvedObject.name": pod.Name, "reason": "FailedScheduling"}
	return unread(stderr, listEvents(ctx, set, config, pod.Namespace, about, eventsOfPod))
}

// addControllers adds the workloads of a running cluster, and what their controllers said about
// pods that they could not make.
func (q *whyOptions) addControllers(ctx context.Context, set *manifest.Set, stderr io.Writer) error {
	if !q.isLive() {
		return nil
	}
	config, err := q.connect()
	if err != nil {
		return err
	}
	for i := range manifest.Controllers {
		k := &manifest.Controllers[i]
		if slices.ContainsFunc(manifest.OfNewPods, func(read decode.Kind) bool { return read.Key() == k.Key() }) {
			continue
		}
		if err := unread(stderr, addAll(ctx, set, config, k)); err != nil {
			return fmt.Errorf("listing %s: %w", k.Key(), err)
		}
	}
	return unread(stderr, listEvents(ctx, set, config, q.api.given(), fields.Set{"reason": "FailedCreate"}, eventsOfCreation))
}

// unread says of what may not be read, or is not served, that the answer does without.
func unread(stderr io.Writer, err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		terminal.Fprintf(stderr, "berth: note: %s; the answer does without\n", err)
		return nil
	}
	return err
}

// connect returns how to reach the cluster.
func (q *whyOptions) connect() (*rest.Config, error) {
	config, err := q.api.config()
	if err != nil {
		return nil, err
	}
	config.Timeout = cmp.Or(config.Timeout, answerTimeout)
	config.Wrap(untrusted.Answers(mostLive))
	config.ContentType = "application/vnd.kubernetes.protobuf"
	return config, nil
}

// listEvents adds at most so many events.
func listEvents(ctx context.Context, set *manifest.Set, config *rest.Config, namespace string, about fields.Set, most int64) error {
	core, err := corev1.NewForConfig(config)
	if err != nil {
		return err
	}
	list, err := core.Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: sorted(about), Limit: most})
	if err != nil {
		return fmt.Errorf("listing events: %w", err)
	}
	for i := range list.Items {
		if err := set.Add(&list.Items[i], "v1/Event", config.Host); err != nil {
			return err
		}
	}
	return nil
}

// sorted returns the selector with its fields in their order.
func sorted(about fields.Set) string {
	var parts []string
	for _, field := range slices.Sorted(maps.Keys(about)) {
		parts = append(parts, field+"="+fields.EscapeValue(about[field]))
	}
	return strings.Join(parts, ",")
}
