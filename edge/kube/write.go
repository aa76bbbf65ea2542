package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
)

// startWrite carries writes out, in order, up to the first that fails.
func (h *Hands) startWrite(e machine.Write) {
	h.settling.submit(func(ctx context.Context) {
		done := machine.Written{UID: e.Pod.UID}
		for ; done.Done < len(e.Writes); done.Done++ {
			if done.Err = h.write(ctx, &e.Writes[done.Done]); done.Err != nil {
				break
			}
		}
		if !e.Unanswered {
			h.report(done)
		}
	})
}

// write patches an object, unless it has changed since the decision. A patch
// whose reply was lost and that took effect is refused when it is sent again:
// the pod is then tried anew, and finds what it wrote. A strategic one is sent
// again until there is a reply: what it gives to the pod stays taken meanwhile.
func (h *Hands) write(ctx context.Context, w *framework.Write) error {
	at := endpoints[w.Object.Kind]
	if at.patch == nil {
		return fmt.Errorf("%s: no way to write it", w.Describe())
	}
	body, err := patchBody(w)
	if err != nil {
		return fmt.Errorf("%s: %w", w.Describe(), err)
	}
	for try := 1; ; try++ {
		err := h.patchObject(ctx, w, body)
		if delay, busy := turnedAway(err); busy && try < maxTries && sleep(ctx, delay) {
			continue
		}
		if w.Strategic && err != nil && !errors.Is(err, ErrNotLeading) && classify(err, true) == machine.BindUnknown && sleep(ctx, min(time.Second<<min(try-1, 4), 10*time.Second)) {
			continue
		}
		return err
	}
}

func (h *Hands) patchObject(ctx context.Context, w *framework.Write, body []byte) error {
	at := endpoints[w.Object.Kind]
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	kind := types.MergePatchType
	if w.Strategic {
		kind = types.StrategicMergePatchType
	}
	r := at.patch(h.clients).Patch(kind).Resource(at.resource).Name(w.Object.Name).
		NamespaceIfScoped(w.Object.Namespace, w.Object.Namespace != "").MaxRetries(0).Body(body)
	if w.Subresource != "" {
		r = r.SubResource(w.Subresource)
	}
	return r.Do(ctx).Error()
}

// patchBody adds to the patch of which object, in which state, it is.
func patchBody(w *framework.Write) ([]byte, error) {
	patch := maps.Clone(w.Patch)
	meta, _ := patch["metadata"].(map[string]any)
	if meta = maps.Clone(meta); meta == nil {
		meta = map[string]any{}
	}
	if meta["uid"] = w.Object.UID; !w.Strategic {
		meta["resourceVersion"] = w.Object.Version
	}
	patch["metadata"] = meta
	return json.Marshal(patch)
}
