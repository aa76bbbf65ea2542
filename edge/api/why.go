package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/why"
)

// Bounds of an answer about one pod.
const (
	mostHistory = 20    // records
	mostCounted = 2_000 // records in which refused bindings are counted
	mostBeside  = 1_000 // pods that are read which wait beside it
)

func podName(key string) types.NamespacedName {
	namespace, name, _ := strings.Cut(key, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// why answers as `berth why` does, and says where in the queue the pod is.
func (h *handler) why(r *http.Request) (any, error) {
	p := paramsOf(r, "pod", "output")
	name, output := p.pod("pod"), p.one("output", "json", "json", "text", "wide")
	if name == "" {
		p.fail("pod", "is needed: NAMESPACE/NAME")
	}
	if p.err != nil {
		return nil, p.err
	}
	v := h.veilOf(r)
	a, err := h.answer(r.Context(), podName(name), v)
	if err != nil {
		return nil, err
	}
	if output == "json" {
		a.Explain()
	}
	var data any = a
	if v != nil {
		if data, err = v.answer(a); err != nil {
			return nil, err
		}
	}
	if output == "json" {
		return data, nil
	}
	t, err := textOf(map[string]string{VerdictHeader: string(a.Verdict), DisagreesHeader: strconv.FormatBool(a.Disagrees() || a.WaitsForGroup())}, a, output == "wide")
	if err == nil && v != nil {
		t.body = []byte(v.text(string(t.body)))
	}
	return t, err
}

// Headers of answers that are text. They tell a program what the text tells people.
const (
	VerdictHeader = "Berth-Verdict"
	PendingHeader = "Berth-Pending" // how many pods
	// DisagreesHeader is "true" where the last attempt ended in what the answer does not come to, or
	// a pod that fits waits for its group.
	DisagreesHeader = "Berth-Disagrees"
)

// textOf is an answer for people, with headers.
func textOf(headers map[string]string, a interface{ Text(io.Writer, bool) error }, wide bool) (text, error) {
	var b bytes.Buffer
	if err := a.Text(&b, wide); err != nil {
		return text{}, err
	}
	return text{headers, b.Bytes()}, nil
}

// answer answers about a pod. A veil that is not nil hides names in what was recorded, and
// learns the cluster's namespaces.
func (h *handler) answer(ctx context.Context, name types.NamespacedName, v *veil) (*why.Answer, error) {
	of, err := h.pictureOf(ctx, name, v)
	if err != nil {
		return nil, err
	}
	set, pod, now := of.set, of.pod, &of.now
	found := h.Recorder.Find(records.Query{Pod: name.String(), Most: mostCounted, View: v.record})
	history, more := slices.Collect(found.All()), found.More
	found.End()
	cluster := why.Cluster{Machine: of.copied, Set: set, NoFixes: now.queue.Place == queue.InFlight.String()}
	if !cluster.NoFixes {
		leftOut, err := h.readPending(ctx, set, now, mostBeside)
		if err != nil {
			return nil, err
		}
		cluster.Unread = len(leftOut) > 0
	}
	if err := set.Resolve(); err != nil {
		return nil, err
	}
	cluster.Record, cluster.Look = lastAttempt(history), h.looker(ctx)
	if v == nil {
		cluster.LookNode = h.nodeLooker(ctx, mostLooked)
	}
	a := cluster.Why(ctx, pod)
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	if h.Shadow {
		if now.queue.Place != "" {
			a.Shadow = &why.Shadow{Since: now.queue.Since}
		}
		return a, nil
	}
	a.Refusal = refusalOf(history, pod.UID, more)
	now.queue.History = history[max(0, len(history)-mostHistory):]
	a.Queue = &now.queue
	if now.node != "" && pod.Spec.NodeName == "" {
		a.Verdict, a.Node = why.InProgress, now.node
	}
	return a, nil
}

// picture is what an answer about a pod is made from: the pod and its claims as they were written, the
// nodes, and a machine that knows the same cluster.
type picture struct {
	pod    *v1.Pod
	set    *manifest.Set
	now    knowledge
	copied *machine.Machine
}

// pictureOf returns the picture for a pod. A veil that is not nil learns the cluster's namespaces.
func (h *handler) pictureOf(ctx context.Context, name types.NamespacedName, v *veil) (*picture, error) {
	set, pod, err := h.read(ctx, name)
	if err != nil {
		return nil, err
	}
	of := &picture{pod: pod, set: set}
	if err := h.look(ctx, func(m *machine.Machine) { of.now = take(m, pod.UID) }); err != nil {
		return nil, err
	}
	assumed := types.UID("")
	if of.now.node != "" {
		assumed = pod.UID
	}
	if v != nil {
		v.learn(of.now.cluster)
		set.Hides = func(namespace string) bool { return !v.seesPodsOf(namespace) }
	}
	of.copied, err = h.copyOf(ctx, &of.now, assumed)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		said := ""
		lasts := h.Recorder.Lasts(map[string]bool{string(pod.UID): true})
		if last, tried := lasts.Of(string(pod.UID)); tried {
			last = v.record(last)
			said = "; its last attempt: " + last.Text()
		}
		lasts.End()
		return nil, problem(http.StatusNotImplemented, Unsupported, "pod %s: this daemon cannot say why: %s%s", name, v.text(err.Error()), said)
	}
	set.Nodes = of.now.apiNodes()
	return of, nil
}

// lastAttempt returns what the records say of the last attempt that failed; nil where the
// last one did not, or its binding was asked for and not refused since.
func lastAttempt(history []records.Record) *why.Said {
	for _, r := range slices.Backward(history) {
		switch {
		case r.Type == records.Bound:
			return nil
		case r.Type != records.Attempt:
			continue
		case r.Result == string(decision.ResultError):
			return &why.Said{Time: r.Time, Reason: v1.PodReasonSchedulerError, Message: r.Message}
		case r.Result == string(decision.ResultUnschedulable):
			return &why.Said{Time: r.Time, Reason: v1.PodReasonUnschedulable, Message: r.Message}
		}
		return nil
	}
	return nil
}

// refusalOf counts the bindings of a pod that were refused since an attempt ended in something else, nil if its
// last one was not refused. more is set if there are older records.
func refusalOf(history []records.Record, pod types.UID, more bool) *why.Refusal {
	var of *why.Refusal
	for i := range slices.Backward(history) {
		r := &history[i]
		switch {
		case r.UID != string(pod), r.Type == records.Bound:
			return of
		case r.Type != records.Attempt, r.Result == string(decision.ResultScheduled), r.Result == string(decision.ResultWaiting):
			continue // what came of it is the next record
		case r.FailedBy() != records.Binding:
			return of
		case of == nil:
			of = &why.Refusal{Last: r.Time, Message: r.Refusal()}
		}
		of.Times++
		of.Since = r.Time
	}
	if of != nil {
		of.More = more
	}
	return of
}

// read reads the pod and its claims from the API server, as they were written.
func (h *handler) read(ctx context.Context, name types.NamespacedName) (*manifest.Set, *v1.Pod, error) {
	set := manifest.NewSet()
	set.KeepWritten = true
	pod := &v1.Pod{}
	if err := h.get(ctx, "pods", name, pod); err != nil {
		return nil, nil, err
	}
	pod = h.PodFields(pod)
	if err := set.Add(pod, "v1/Pod", "the API server"); err != nil {
		return nil, nil, err
	}
	return set, pod, h.readClaims(ctx, set, pod)
}

// mostLooked bounds the running pods that are read for an answer.
const mostLooked = 10

// looker returns what reads pods for an answer: so many, and none that cannot be read.
func (h *handler) looker(ctx context.Context) func(types.NamespacedName) *v1.Pod {
	left := mostLooked
	return func(name types.NamespacedName) *v1.Pod {
		pod := &v1.Pod{}
		if left--; left < 0 || h.get(ctx, "pods", name, pod) != nil {
			return nil
		}
		return pod
	}
}

// nodeLooker returns what reads nodes for an answer: at most so many, each once. It returns nil for a
// node that cannot be read.
func (h *handler) nodeLooker(ctx context.Context, most int) func(name string) *v1.Node {
	read := map[string]*v1.Node{}
	return func(name string) *v1.Node {
		node, tried := read[name]
		if tried || len(read) == most {
			return node
		}
		node = &v1.Node{}
		if h.get(ctx, "nodes", types.NamespacedName{Name: name}, node) != nil {
			node = nil
		}
		read[name] = node
		return node
	}
}

// readClaims adds the pod's claims to the set. One that cannot be read is not there: no
// fix of it is looked for.
func (h *handler) readClaims(ctx context.Context, set *manifest.Set, pod *v1.Pod) error {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		claim := types.NamespacedName{Namespace: pod.Namespace}
		switch {
		case v.PersistentVolumeClaim != nil:
			claim.Name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			claim.Name = pod.Name + "-" + v.Name
		default:
			continue
		}
		c := &v1.PersistentVolumeClaim{}
		if set.Written("PersistentVolumeClaim", claim.Namespace, claim.Name) != nil || h.get(ctx, "persistentvolumeclaims", claim, c) != nil {
			continue
		}
		if err := set.Add(c, "v1/PersistentVolumeClaim", "the API server"); err != nil {
			return err
		}
	}
	return nil
}

func (h *handler) get(ctx context.Context, resource string, name types.NamespacedName, into runtime.Object) error {
	err := h.Read.Get().NamespaceIfScoped(name.Namespace, name.Namespace != "").Resource(resource).Name(name.Name).Do(ctx).Into(into)
	switch {
	case apierrors.IsNotFound(err):
		return problem(http.StatusNotFound, NotFound, "pod %s: there is no such pod", name)
	case err != nil:
		return problem(http.StatusBadGateway, Failed, "reading %s %s: %s", resource, name, err)
	}
	return nil
}
