package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/fence"
)

// refusedDelays are the waits after each refused connection before a binding is sent again:
// four tries in all, as kube-scheduler v1.37 makes.
var refusedDelays = [...]time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 250 * time.Millisecond}

// bind asks the API server to bind the pod to the node and returns what is known
// afterwards. It repeats a request that an overloaded server rejected unread, up to
// maxTries times, and one for which no server accepted a connection.
func (x *Executor) bind(ctx context.Context, p *object.Pod, node string) (machine.BindResult, error) {
	binding := &v1.Binding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID},
		Target:     v1.ObjectReference{Kind: "Node", Name: node},
	}
	refused := 0 // connections
	for tries := busy(0); ; {
		err, sent := x.post(ctx, p, binding)
		if !sent && utilnet.IsConnectionRefused(err) && refused < len(refusedDelays) && sleep(ctx, refusedDelays[refused]) {
			refused++
			continue
		}
		if delay, again := tries.again(err); again && sleep(ctx, delay) {
			continue
		}
		if apierrors.IsConflict(err) {
			return x.conflict(ctx, p, node, err)
		}
		return classify(err, sent), err
	}
}

// post sends a binding once. sent reports whether a connection was obtained, so that the
// request may have reached the server. Such a request is not repeated when its answer is lost,
// since it could not be told which of the two took effect.
func (x *Executor) post(ctx context.Context, p *object.Pod, b *v1.Binding) (err error, sent bool) {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	err = x.clients.Bindings.post(ctx, "namespaces/"+p.Namespace+"/pods/"+p.Name+"/binding", b)
	return err, connected.Load()
}

// classify returns what the outcome err of a binding or write proves. It is BindDone if err is
// nil. It is BindRefused, so that the pod was not bound, if the request never left (sent is
// false, or the lease was lost) or the API server turned it down (4xx but 408). Else it is
// BindUnknown.
func classify(err error, sent bool) machine.BindResult {
	if err == nil {
		return machine.BindDone
	}
	if !sent || errors.Is(err, fence.ErrNotLeading) {
		return machine.BindRefused
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code := status.Status().Code
		if code >= 400 && code < 500 && code != http.StatusRequestTimeout {
			return machine.BindRefused
		}
	}
	return machine.BindUnknown
}

// conflict resolves an answer of 409 Conflict by reading the pod: an earlier request of
// this scheduler may have bound it already. It returns BindDone if the pod is on the node,
// BindUnknown if it is on another node or cannot be read, and BindRefused if it is not bound or
// is gone. The parameter conflict is the error of the answer.
func (x *Executor) conflict(ctx context.Context, p *object.Pod, node string, conflict error) (machine.BindResult, error) {
	now, err := x.get(ctx, p)
	switch {
	case err != nil:
		return machine.BindUnknown, fmt.Errorf("%w (reading the pod: %v)", conflict, err)
	case now != nil && now.NodeName == node:
		return machine.BindDone, nil
	case now != nil && now.NodeName != "": // another bound it: the machine is to see where
		return machine.BindUnknown, conflict
	}
	return machine.BindRefused, conflict
}

// busy counts how often an overloaded server rejected one request (429).
type busy int

// again reports whether a request with the outcome err is to be sent again, and after what
// delay. It counts the rejection then, up to maxTries in all.
func (b *busy) again(err error) (time.Duration, bool) {
	delay, away := turnedAway(err)
	if !away || *b >= maxTries-1 {
		return 0, false
	}
	*b++
	return delay, true
}

// turnedAway reports whether the server rejected the request unread because it is
// overloaded (429), and after what delay to send it again: as the server says, 1 to 5 s.
func turnedAway(err error) (time.Duration, bool) {
	if !apierrors.IsTooManyRequests(err) {
		return 0, false
	}
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(min(max(seconds, 1), 5)) * time.Second, true
}

// sleep waits for d. It returns false if the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
