package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/why"
)

// Bounds of a question about all pending pods.
const (
	mostPending = 10_000   // pods that are looked at
	mostBytes   = 64 << 20 // of these pods, in protobuf: in memory they take about four times as much
	pageSize    = 50       // pods that are read at a time: each may have 1.5 MB
	mostLeftOut = 10       // pods of which it is said why they are left out
	mostNodes   = 30       // nodes that are read to say since when they keep pods away
)

// whyAll says what blocks pending pods, as `berth why --all` does: as a WhyList or, where the
// question names no kind, as a WhyAll, which older tools know.
func (h *handler) whyAll(r *http.Request) (any, error) {
	p := paramsOf(r, "output", "kind", "namespace", "selector", "workload")
	output, kind := p.one("output", "json", "json", "text", "wide"), p.one("kind", "WhyAll", "WhyAll", "WhyList")
	scope := why.Scope{Namespace: p.values.Get("namespace")}
	var err error
	if scope.Selector, err = labels.Parse(p.values.Get("selector")); err != nil {
		p.fail("selector", err.Error())
	}
	if text := p.values.Get("workload"); text != "" {
		kind, name, ok := why.ParseWorkload(text)
		if scope.Workload = (&why.Workload{Kind: kind, Namespace: scope.Namespace, Name: name}); !ok || scope.Namespace == "" {
			p.fail("workload", "must be KIND/NAME, and goes with a namespace")
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	list, err := h.list(r.Context(), scope)
	switch {
	case err != nil:
		return nil, err
	case output != "json":
		return textOf(map[string]string{PendingHeader: strconv.Itoa(list.Pods)}, list, output == "wide")
	case kind == "WhyAll":
		return list.Older(), nil
	}
	return list, nil
}

func (h *handler) list(ctx context.Context, scope why.Scope) (*why.List, error) {
	var now knowledge
	if err := h.look(ctx, func(m *machine.Machine) { now = take(m, "") }); err != nil {
		return nil, err
	}
	copied, err := h.copyOf(ctx, &now, "")
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, problem(http.StatusNotImplemented, Unsupported, "this daemon cannot say why pods wait: %s", err)
	}
	set := manifest.NewSet()
	set.KeepWritten = true
	leftOut, err := h.readPending(ctx, set, &now, mostPending)
	if err == nil {
		err = set.Resolve()
	}
	if err != nil {
		return nil, err
	}
	set.Nodes = now.apiNodes()
	cluster := why.Cluster{Machine: copied, Set: set, Now: h.Now(), Look: h.looker(ctx), LookNode: h.nodeLooker(ctx, mostNodes), Read: func(p *v1.Pod) {
		_ = h.readClaims(ctx, set, p) // then no fix of the claim is found
	}}
	if err := scope.Check(&cluster); err != nil {
		return nil, problem(http.StatusNotFound, NotFound, "%s", err)
	}
	list, err := cluster.All(ctx, scope)
	if err != nil {
		return nil, err
	}
	list.LeftOut = leftOut
	return list, nil
}

// readPending adds the pods without a node to the set, as they were written, as long as fewer than
// most were read. Those are left out which the set or the snapshot has: they are being bound, or are
// bound since. It says what was left out for another reason.
func (h *handler) readPending(ctx context.Context, set *manifest.Set, now *knowledge, most int) (leftOut []string, err error) {
	known := now.placed()
	for _, p := range set.Pods {
		known[p.UID] = true
	}
	options := metav1.ListOptions{FieldSelector: "spec.nodeName=", Limit: pageSize}
	for read, bytes := 0, 0; ; {
		var page v1.PodList
		if err := h.Read.Get().Resource("pods").VersionedParams(&options, scheme.ParameterCodec).Do(ctx).Into(&page); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, problem(http.StatusBadGateway, Failed, "listing pods: %s", err)
		}
		for i := range page.Items {
			bytes += page.Items[i].Size()
			if known[page.Items[i].UID] {
				continue
			}
			page.Items[i].ManagedFields = why.KeepWriters(page.Items[i].ManagedFields)
			if err := set.Add(h.PodFields(&page.Items[i]), "v1/Pod", "the API server"); err != nil && len(leftOut) < mostLeftOut {
				leftOut = append(leftOut, err.Error())
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
		if read += max(len(page.Items), 1); read >= most || bytes >= mostBytes { // 1: empty pages end, too
			leftOut = append(leftOut, fmt.Sprintf("all pods without a node but %d: no more are looked at", read))
			break
		}
	}
	return leftOut, nil
}
