package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/why"
)

// Bounds of what is read beside the daemon's answer.
const (
	mostUnmadeTime  = 20 * time.Second
	mostUnmadeSpace = 10 // namespaces whose pods are read
)

// makers are the kinds whose controllers make pods.
var makers = slices.DeleteFunc(slices.Concat(manifest.Controllers, decode.Kinds), func(k decode.Kind) bool {
	return !slices.Contains([]string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController"}, k.Name)
})

// quotas is the kind ResourceQuota.
var quotas = slices.DeleteFunc(slices.Clone(manifest.OfNewPods), func(k decode.Kind) bool { return k.Name != "ResourceQuota" })

// unmade says what the scheduler does not read of workloads: pods that were never made, and those
// that made room for others. It reads the API server as the caller may; nil, with a note, where it
// cannot. If the scheduler knows no pending pod of the workload that is asked about (none), and
// there is no such workload, it is an error.
func (q *whyOptions) unmade(ctx context.Context, args []string, none bool, stderr io.Writer) (*why.List, error) {
	ctx, cancel := context.WithTimeout(ctx, mostUnmadeTime)
	defer cancel()
	scope, err := q.scopeOf(args)
	if err != nil {
		return nil, err
	}
	none = none && scope.Workload != nil && !scope.IsQuota() // which the scheduler knows
	config, err := q.connect()
	if err != nil {
		return nil, err
	}
	c := &why.Cluster{Set: manifest.NewSet()}
	c.Set.Hides = unlisted(ctx, config)
	if err := q.addKinds(ctx, c.Set, makers, scope.Namespace); err != nil {
		if none {
			unknown(stderr, scope.Workload, err)
		}
		unlooked(stderr, err)
		return nil, nil
	}
	if none {
		if err := q.exists(ctx, c, scope.Workload, stderr); err != nil {
			return nil, err
		}
	}
	list, err := q.readUnmade(ctx, c, scope, stderr)
	if err != nil {
		unlooked(stderr, err)
		return nil, nil
	}
	return list, nil
}

func unlooked(stderr io.Writer, err error) {
	terminal.Fprintf(stderr, "berth: note: replicas that were never made were not looked for: %s\n", err)
}

func unknown(stderr io.Writer, w *why.Workload, err error) {
	terminal.Fprintf(stderr, "berth: note: it is not known whether there is a %s %s/%s: %s\n", w.Kind, w.Namespace, w.Name, err)
}

// scopeOf returns what the flags and arguments are about.
func (q *whyOptions) scopeOf(args []string) (why.Scope, error) {
	scope := why.Scope{Namespace: q.api.given()}
	var err error
	if scope.Selector, err = labels.Parse(q.selector); err != nil {
		return scope, fmt.Errorf("--selector: %w", err)
	}
	if len(args) > 0 {
		kind, name, _ := why.ParseWorkload(args[0])
		scope.Namespace = q.api.namespace()
		scope.Workload = &why.Workload{Kind: kind, Namespace: scope.Namespace, Name: name}
	}
	return scope, nil
}

// exists returns an error if there is neither the workload nor a pod of it. The cluster has the
// workloads of the namespace. Its pods are read if the workload is not among these.
func (q *whyOptions) exists(ctx context.Context, c *why.Cluster, w *why.Workload, stderr io.Writer) error {
	if _, err := c.FindWorkload(w.Kind, w.Name, w.Namespace); err == nil {
		return nil
	}
	withPods := &why.Cluster{Set: manifest.NewSet()}
	withPods.Set.Workloads, withPods.Set.Running = c.Set.Workloads, c.Set.Running
	if err := q.addKinds(ctx, withPods.Set, kindsNamed("Pod"), w.Namespace); err != nil {
		unknown(stderr, w, err)
		return nil
	}
	_, err := withPods.FindWorkload(w.Kind, w.Name, w.Namespace)
	return err
}

func (q *whyOptions) readUnmade(ctx context.Context, c *why.Cluster, scope why.Scope, stderr io.Writer) (*why.List, error) {
	if err := q.addCreations(ctx, c, scope.Workload, stderr); err != nil {
		return nil, err
	}
	namespaces, onNodes := c.Refusing(&scope)
	if more := len(namespaces) - mostUnmadeSpace; more > 0 {
		terminal.Fprintf(stderr, "berth: note: pods of %d more namespaces were never made\n", more)
		namespaces = namespaces[:mostUnmadeSpace]
	}
	for _, namespace := range namespaces {
		if err := q.addKinds(ctx, c.Set, kindsNamed("Pod"), namespace); err != nil {
			return nil, err
		}
		q.addQuotas(ctx, c.Set, namespace, stderr)
	}
	if onNodes {
		if err := q.addKinds(ctx, c.Set, kindsNamed("Node"), ""); err != nil {
			return nil, err
		}
	}
	return c.Unmade(ctx, scope, namespaces), nil
}

// addQuotas adds the quotas of the namespace, or says why it does not.
func (q *whyOptions) addQuotas(ctx context.Context, set *manifest.Set, namespace string, stderr io.Writer) {
	if err := q.addKinds(ctx, set, quotas, namespace); err != nil {
		terminal.Fprintf(stderr, "berth: note: who holds the quotas of namespace %s is not known: %s\n", namespace, err)
	}
}

// addKinds adds all objects of the kinds in the namespace; empty: in all.
func (q *whyOptions) addKinds(ctx context.Context, set *manifest.Set, kinds []decode.Kind, namespace string) error {
	config, err := q.connect()
	if err != nil {
		return err
	}
	for i := range kinds {
		if err := addAll(ctx, set, config, &kinds[i], namespace); err != nil {
			return fmt.Errorf("listing %s: %w", kinds[i].Key(), err)
		}
	}
	return nil
}

func kindsNamed(name string) []decode.Kind {
	return slices.DeleteFunc(slices.Clone(decode.Kinds), func(k decode.Kind) bool { return k.Name != name })
}

// withUnmade adds the list to the daemon's answer, which is text or JSON.
func withUnmade(body []byte, l *why.List, text bool) ([]byte, error) {
	if len(l.Missing)+len(l.Preempted) == 0 {
		return body, nil
	}
	if text {
		b := bytes.NewBuffer(body)
		err := l.UnmadeText(b)
		return b.Bytes(), err
	}
	var answer map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&answer); err != nil {
		return nil, fmt.Errorf("the daemon's answer: %w", err)
	}
	answer["missing"] = l.Missing
	if len(l.Preempted) > 0 {
		answer["preempted"] = l.Preempted
	}
	data, err := json.MarshalIndent(answer, "", "  ")
	return append(data, '\n'), err
}
