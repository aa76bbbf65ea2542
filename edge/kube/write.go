package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// pendingWrites is a Write effect under way. Its writes are sent in order, up to the first
// that fails. Between two tries it occupies no worker.
type pendingWrites struct {
	machine.Write
	done  machine.WriteReply // the reply so far; Done is the index of the present write
	begun bool               // it counts in Executor.unanswered

	// State of the present write.
	busy     busy              // how often the server was too busy for it
	readNext bool              // its last reply was lost: read the object next
	lost     machine.LostReply // tries and reads after a lost reply
}

// startWrite queues a Write effect. Its WriteReply is reported at the end.
func (x *Executor) startWrite(e machine.Write) {
	x.continueWrite(&pendingWrites{Write: e, done: machine.WriteReply{UID: e.Pod.UID, Call: e.Call}}, 0)
}

// continueWrite queues a job, after a delay, that sends the remaining writes. It
// reports the reply when they are done or one has failed.
func (x *Executor) continueWrite(w *pendingWrites, delay time.Duration) {
	next := func() {
		x.requests.submit(func(ctx context.Context) {
			if !w.begun {
				w.begun = true
				x.unanswered.Add(1)
			}
			for w.done.Err == nil && w.done.Done < len(w.Writes) {
				if delay := x.tryWrite(ctx, w); delay > 0 {
					x.continueWrite(w, delay)
					return
				}
			}
			x.report(w.done)
			x.unanswered.Add(-1)
		})
	}
	if delay <= 0 {
		next()
		return
	}
	time.AfterFunc(delay, next)
}

// tryWrite takes one step of w (writeNext). It returns how long to wait before the next one; 0
// means not to wait. After a panic the result of the write is unknown, so the object is read
// next. If ctx has ended then, the write fails instead.
func (x *Executor) tryWrite(ctx context.Context, w *pendingWrites) (delay time.Duration) {
	err := contained("Write", func() error {
		delay = x.writeNext(ctx, w)
		return nil
	})
	switch {
	case err == nil:
		return delay
	case ctx.Err() != nil:
		w.done.Err = err
		return 0
	}
	x.logger.Error(err, "Failed to write, reading the object", "write", w.Writes[w.done.Done].Describe())
	w.readNext = true
	w.lost.ReadFailed()
	return w.lost.Delay()
}

// writeNext sends the first write of w that is not done, or reads its object if the last
// reply was lost, to see whether the write was carried out. It records the outcome in w.done.
// It returns how long to wait before it is called again; 0 means not to wait.
func (x *Executor) writeNext(ctx context.Context, w *pendingWrites) time.Duration {
	at := &w.Writes[w.done.Done]
	if w.readNext {
		return x.readBack(ctx, w, at)
	}
	shown, err := x.send(ctx, at)
	if delay, again := w.busy.again(err); again {
		return delay
	}
	switch {
	case err == nil:
		x.advance(w, shown)
	case classify(err, true) == machine.BindUnknown && ctx.Err() == nil:
		w.readNext = true
		return w.lost.Delay()
	case w.lost.Reads() > 0:
		w.readNext, w.lost.Refusal = true, err
		return w.lost.Delay()
	default:
		w.done.Err = err
	}
	return 0
}

// readBack reads the object of the write at, whose reply was lost. It records whether the
// write took effect, failed, or must be sent again. A read that fails is repeated after the
// delay that readBack returns, else the delay is 0.
func (x *Executor) readBack(ctx context.Context, w *pendingWrites, at *framework.Write) time.Duration {
	now, err := x.readObject(ctx, at)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing && ctx.Err() == nil {
		w.lost.ReadFailed()
		return w.lost.Delay()
	}
	w.lost.NotShown()
	switch {
	case ctx.Err() != nil:
		w.done.Err = fmt.Errorf("%s: %w", at.Describe(), ctx.Err())
	case missing && at.Delete:
		x.advance(w, nil)
	case !missing && happened(now, at):
		x.advance(w, now)
	case missing && at.Create == nil || !missing && at.Object.UID != "" && now.GetUID() != at.Object.UID:
		w.done.Err = fmt.Errorf("%s: it is gone", at.Describe())
	case w.lost.Refusal != nil:
		w.done.Err = w.lost.Refusal
	case !repeatable(at) && now.GetResourceVersion() != at.Object.Version:
		w.done.Err = fmt.Errorf("%s: it has changed meanwhile", at.Describe())
	case w.lost.Exhausted():
		w.done.Err = fmt.Errorf("%s: no answer in %d tries, and it is not written", at.Describe(), w.lost.Reads())
	default:
		w.readNext = false
	}
	return 0
}

// happened reports whether now, the object as read after a lost reply, shows that the write
// took effect.
func happened(now metav1.Object, w *framework.Write) bool {
	switch {
	case w.Create != nil: // nobody else makes one of its name
		return true
	case w.Delete:
		return w.Object.UID != "" && now.GetUID() != w.Object.UID
	}
	return holds(now, w)
}

// repeatable reports whether the write may be sent again even if the object has changed.
func repeatable(w *framework.Write) bool { return w.Strategic || w.Create != nil || w.Delete }

// advance records that the present write is done and goes on to the next. shown is the
// object in its reply, if any; one that cannot be decoded is left to the watch.
func (x *Executor) advance(w *pendingWrites, shown metav1.Object) {
	if shown != nil {
		x.replied.record(w.Writes[w.done.Done].Object.Kind.Resource(), shown.GetResourceVersion())
	}
	_ = caught(func() {
		if o := decode.Object(shown); o != nil {
			if x.record != nil {
				x.record(machine.ObjectSet{Object: o}, shown)
			}
			w.done.Shown = append(w.done.Shown, o)
		}
	})
	w.done.Done++
	w.busy, w.readNext, w.lost = 0, false, machine.LostReply{}
}

// send creates, patches or deletes an object once and returns the object in the reply, nil
// for a deletion. To delete an object that is gone already succeeds. A merge patch fails if
// the object has changed since the decision.
func (x *Executor) send(ctx context.Context, w *framework.Write) (metav1.Object, error) {
	r, err := x.request(w)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.Describe(), err)
	}
	if w.Delete {
		err := r.Do(ctx).Error()
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return nil, err
	}
	return x.shown(w, r.Do(ctx))
}

// shown decodes the object of the write's kind in a reply, converted to v1 if it is a
// ResourceClaim. It returns the error of the request, too.
func (x *Executor) shown(w *framework.Write, r rest.Result) (metav1.Object, error) {
	now := decode.Empty(w.Object.Kind)
	if w.Object.Kind == object.ResourceClaims {
		return now, x.clients.devices.into(now.(runtime.Object), r)
	}
	return now, r.Into(now.(runtime.Object))
}

// request returns the request of the write, not yet sent; an error if the scheduler writes no
// objects of the kind, or the body cannot be encoded.
func (x *Executor) request(w *framework.Write) (*rest.Request, error) {
	client := x.clients.writerOf(w.Object.Kind)
	if client == nil {
		return nil, fmt.Errorf("no client writes objects of kind %s", w.Object.Kind)
	}
	to := func(r *rest.Request) *rest.Request {
		if w.Object.Kind == object.ResourceClaims {
			r = x.clients.devices.of(r)
		}
		return r.Resource(w.Object.Kind.Resource()).NamespaceIfScoped(w.Object.Namespace, w.Object.Namespace != "").MaxRetries(0)
	}
	switch {
	case w.Create != nil:
		return x.clients.devices.body(to(client.Post()), w.Create)
	case w.Delete && w.Object.UID == "":
		return to(client.Delete()).Name(w.Object.Name).Body(&metav1.DeleteOptions{}), nil
	case w.Delete:
		return to(client.Delete()).Name(w.Object.Name).Body(metav1.NewPreconditionDeleteOptions(string(w.Object.UID))), nil
	}
	body, err := patchBody(w)
	if err != nil {
		return nil, err
	}
	kind := types.MergePatchType
	if w.Strategic {
		kind = types.StrategicMergePatchType
	}
	r := to(client.Patch(kind)).Name(w.Object.Name).Body(body)
	if w.Subresource != "" {
		r = r.SubResource(w.Subresource)
	}
	return r, nil
}

// readObject reads the object that the write is about from the API server.
func (x *Executor) readObject(ctx context.Context, w *framework.Write) (metav1.Object, error) {
	r := x.clients.writerOf(w.Object.Kind).Get()
	if w.Object.Kind == object.ResourceClaims {
		r = x.clients.devices.of(r)
	}
	return x.shown(w, r.Resource(w.Object.Kind.Resource()).Name(w.Object.Name).
		NamespaceIfScoped(w.Object.Namespace, w.Object.Namespace != "").Do(ctx))
}

// patchBody returns the JSON of the write's patch with the object's UID, and for a merge
// patch its resource version: the API server rejects it if these differ.
func patchBody(w *framework.Write) ([]byte, error) {
	patch := maps.Clone(w.Patch)
	meta, _ := patch["metadata"].(map[string]any)
	if meta = maps.Clone(meta); meta == nil {
		meta = map[string]any{}
	}
	if w.Object.UID != "" {
		meta["uid"] = w.Object.UID
	}
	if !w.Strategic {
		meta["resourceVersion"] = w.Object.Version
	}
	patch["metadata"] = meta
	return json.Marshal(patch)
}

// holds reports whether the object has every value that the write's patch sets.
func holds(now metav1.Object, w *framework.Write) bool {
	has, err := plain(now)
	if err != nil {
		return false
	}
	says, err := plain(w.Patch)
	return err == nil && covers(has, says)
}

// plain returns the value as JSON's types (map, slice, scalars), so that an object and a
// patch can be compared field by field.
func plain(v any) (out any, err error) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	return out, err
}

// covers reports whether has, an object as JSON, holds all that says, a patch, sets. A field
// that is null in says must be absent in has. Each element of a list in says must be in the same
// list in has, or must not be there if says deletes it.
func covers(has, says any) bool {
	switch says := says.(type) {
	case nil:
		return has == nil
	case map[string]any:
		fields, ok := has.(map[string]any)
		if !ok {
			return false
		}
		for name, value := range says {
			if of, taken := strings.CutPrefix(name, takenFromList); taken {
				if !lacks(fields[of], value) {
					return false
				}
				continue
			}
			if !covers(fields[name], value) {
				return false
			}
		}
		return true
	case []any:
		list, _ := has.([]any)
		for _, element := range says {
			if !coversElement(list, element) {
				return false
			}
		}
		return true
	}
	return has == says
}

// takenFromList begins the name of a field of a strategic patch. The rest of the name is that
// of a list, from which the field's values are deleted.
const takenFromList = "$deleteFromPrimitiveList/"

// lacks reports whether the list has none of the values, all scalars: whether a patch that
// deletes them from the list has had its effect.
func lacks(list, values any) bool {
	has, _ := list.([]any)
	gone, _ := values.([]any)
	return !slices.ContainsFunc(gone, func(v any) bool { return slices.Contains(has, v) })
}

// coversElement reports whether an element of the list covers element. If element is marked
// with "$patch": "delete", it reports whether none does.
func coversElement(list []any, element any) bool {
	fields, _ := element.(map[string]any)
	gone := fields["$patch"] == "delete"
	if gone {
		fields = maps.Clone(fields)
		delete(fields, "$patch")
		element = fields
	}
	for _, has := range list {
		if covers(has, element) {
			return !gone
		}
	}
	return gone
}
