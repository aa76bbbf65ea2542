package tool

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/why"
)

// fewRights is the error of a user who may not list what every decision depends on: nodes,
// or the pods of all namespaces.
type fewRights struct {
	config  *rest.Config
	refused []string // resources
}

// Error is for error.
func (f *fewRights) Error() string {
	return fmt.Sprintf("cannot list %s: the API server forbids it; the ClusterRole berth-scheduler-tool (docs/security.md) gives the rights, and whoever may get a pod may ask the scheduler about it: why NAMESPACE/POD --daemon URL", strings.Join(f.refused, " and "))
}

// addAll adds all objects of a kind. What may not be listed is remembered.
func (f *fewRights) addAll(ctx context.Context, set *manifest.Set, k *decode.Kind) error {
	err := addAll(ctx, set, f.config, k, "")
	if err == nil || !apierrors.IsForbidden(err) {
		return err
	}
	resource := k.Resource
	if k.Namespaced {
		resource += " of all namespaces"
	}
	f.refused = append(f.refused, resource)
	return nil
}

// end returns f as an error where nodes or pods may not be listed. Of other kinds the set
// gets a notice.
func (f *fewRights) end(set *manifest.Set) error {
	decisive := func(resource string) bool { return resource == "nodes" || resource == "pods of all namespaces" }
	if len(f.refused) == 0 {
		return nil
	}
	if slices.ContainsFunc(f.refused, decisive) {
		f.refused = slices.DeleteFunc(f.refused, func(r string) bool { return !decisive(r) })
		return f
	}
	set.Notices = append(set.Notices, fmt.Sprintf("cannot list %s: the API server forbids it; what depends on them is not part of the answer", strings.Join(f.refused, ", ")))
	return nil
}

// own answers from the pods that the user may read: what their conditions say.
func (q *whyOptions) own(ctx context.Context, few *fewRights, args []string, stdout, stderr io.Writer) error {
	client, err := corev1.NewForConfig(few.config)
	if err != nil {
		return err
	}
	terminal.Fprintf(stderr, "berth: note: cannot list %s: answers about nodes are missing; ask with --daemon\n", strings.Join(few.refused, " and "))
	namespace := cmp.Or(q.api.given(), q.api.namespace(), metav1.NamespaceDefault)
	out := bufio.NewWriter(stdout)
	if q.all || isWorkload(args[0]) {
		scope, unmade, err := q.ownWorkloads(ctx, namespace, args, stderr)
		if err != nil {
			return err
		}
		var pods []v1.Pod
		list := func(options metav1.ListOptions) (runtime.Object, error) {
			return client.Pods(namespace).List(ctx, options)
		}
		if err := pages(metav1.ListOptions{FieldSelector: "spec.nodeName=", LabelSelector: q.selector}, list, func(o runtime.Object) error {
			pods = append(pods, *o.(*v1.Pod))
			return nil
		}); err != nil {
			return fmt.Errorf("listing pods of namespace %s: %w", namespace, err)
		}
		r := listSaid(pods, scope)
		r.Missing, r.Preempted = append(r.Missing, unmade.Missing...), unmade.Preempted
		if err := errors.Join(q.write(out, r), out.Flush()); err != nil {
			return err
		}
		return statusOfAll(r.Pods + len(r.Missing))
	}
	namespace, name, _ := strings.Cut(qualified(args[0], namespace), "/")
	pod, err := client.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading pod %s/%s: %w", namespace, name, err)
	}
	a := said(pod)
	if err := errors.Join(q.write(out, a), out.Flush()); err != nil {
		return err
	}
	return statusOf(a.Verdict, false)
}

// ownWorkloads finds the workload that is asked about among those that the user may read, and lists
// pods that were never made or made room for others. What may not be read, a note names.
func (q *whyOptions) ownWorkloads(ctx context.Context, namespace string, args []string, stderr io.Writer) (why.Scope, *why.List, error) {
	*q.api.flags.Namespace = namespace
	scope, c := why.Scope{Namespace: namespace}, &why.Cluster{Set: manifest.NewSet()}
	config, err := q.connect()
	if err != nil {
		return scope, nil, err
	}
	c.Set.Hides = unlisted(ctx, config)
	if scope.Selector, err = labels.Parse(q.selector); err != nil {
		return scope, nil, fmt.Errorf("--selector: %w", err)
	}
	read, refused := map[string]bool{}, []string(nil) // kinds in lower case; resources
	for _, k := range append(kindsNamed("Pod"), makers...) {
		err := q.addKinds(ctx, c.Set, []decode.Kind{k}, namespace)
		read[strings.ToLower(k.Name)] = err == nil
		if apierrors.IsForbidden(err) {
			refused = append(refused, k.Resource)
		} else if err := unread(ctx, stderr, err); err != nil {
			return scope, nil, err
		}
	}
	if len(refused) > 0 {
		terminal.Fprintf(stderr, "berth: note: cannot list %s of namespace %s: which are there, and which pods of theirs were never made, was not looked for\n", strings.Join(refused, ", "), namespace)
	}
	if len(args) > 0 {
		kind, name, _ := why.ParseWorkload(args[0])
		scope.Workload = &why.Workload{Kind: kind, Namespace: namespace, Name: name}
		if _, err := c.FindWorkload(kind, name, namespace); err != nil && read[kind] && read["pod"] {
			return scope, nil, err
		}
	}
	if err := q.addCreations(ctx, c, scope.Workload, stderr); err != nil {
		return scope, nil, err
	}
	if refusing, onNodes := c.Refusing(&scope); len(refusing) > 0 {
		q.addQuotas(ctx, c.Set, namespace, stderr)
		if onNodes {
			terminal.Fprintf(stderr, "berth: note: pods of DaemonSets that were never made are not counted, which takes the nodes\n")
		}
	}
	if !read["pod"] {
		return scope, &why.List{}, nil
	}
	return scope, c.Unmade(ctx, scope, []string{namespace}), nil
}

// saidAnswer is an answer that only repeats what the API says of the pod.
type saidAnswer struct {
	*why.Answer
	since  *metav1.Time // of the condition
	onNode string       // how it stands with a pod that has a node
}

// said answers with what the API says of the pod.
func said(p *v1.Pod) saidAnswer {
	a := &why.Answer{APIVersion: why.APIVersion, Kind: "Why", Pod: p.Namespace + "/" + p.Name, Profile: cmp.Or(p.Spec.SchedulerName, v1.DefaultSchedulerName),
		Verdict: why.Waiting, Node: p.Spec.NodeName, Groups: []why.NodeGroup{}, Fixes: []fix.Fix{}, Events: []why.Event{}, Scores: []why.Node{}}
	s := saidAnswer{Answer: a}
	if c := why.NotScheduled(p); c != nil {
		a.Message, s.since = c.Message, &c.LastTransitionTime
	}
	switch {
	case p.Spec.NodeName != "":
		a.Verdict, a.Message, a.NotRunning, s.onNode = why.Placed, "", why.NotRunning(p), why.OnNode(p)
	case len(p.Spec.SchedulingGates) > 0:
		a.Verdict = why.Gated
	}
	return s
}

// Text prints the answer for people.
func (s saidAnswer) Text(out io.Writer, _ bool) error {
	switch {
	case s.Verdict == why.Placed:
		terminal.Fprintf(out, "%s\n", s.onNode)
	case s.Message == "":
		terminal.Fprintf(out, "%s waits. Its conditions do not say that the scheduler %s has looked at it.\n", s.Pod, s.Profile)
	default:
		terminal.Fprintf(out, "%s waits. Its condition says, since %s:\n\n%s\n", s.Pod, s.since.UTC().Format(time.RFC3339), s.Message)
	}
	return nil
}

// listSaid lists what the conditions of the pods of a scope say.
func listSaid(pods []v1.Pod, scope why.Scope) *why.List {
	r := &why.List{APIVersion: why.APIVersion, Kind: "WhyList", Missing: []why.Missing{}, Causes: []why.Cause{}}
	c := &why.Cluster{Set: manifest.NewSet()}
	at := map[string]int{}
	for i := range pods {
		if !scope.Has(c, &pods[i]) {
			continue
		}
		a := said(&pods[i])
		text := cmp.Or(a.Message, "not looked at by the scheduler "+a.Profile)
		n, known := at[text]
		if !known {
			n = len(r.Causes)
			at[text] = n
			r.Causes = append(r.Causes, why.Cause{Verdict: a.Verdict, Sentence: text, Workloads: map[string]int{}, Examples: []string{}, Blockers: []why.Blocker{}, Fixes: []why.Shared{}})
		}
		cause := &r.Causes[n]
		r.Pods++
		if cause.Pods++; len(cause.Examples) < 3 {
			cause.Examples = append(cause.Examples, a.Pod)
		}
		if w := c.WorkloadOf(&pods[i]); w.Kind != "" {
			cause.Workloads[w.String()]++
		}
	}
	slices.SortStableFunc(r.Causes, func(a, b why.Cause) int { return cmp.Compare(b.Pods, a.Pods) })
	return r
}
