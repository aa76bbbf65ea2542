package compat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/object"
)

// Signatures. Plugins whose answers the engine may keep for a while sign pods. As in
// kube-scheduler, all plugins of a profile that filter or score have to sign a pod; Berth asks
// hosted ones alone, as the engine has classes of its own for the others.

// findSigners sets signers, signerNames and signs from the enabled plugins.
func (h *Host) findSigners() {
	var names []string
	h.signers, h.signs = nil, true
	for pt := range signedPoints {
		for _, p := range h.at(pt) {
			if p.sign == nil {
				h.signs = false
			} else if !slices.Contains(h.signers, p) {
				h.signers, names = append(h.signers, p), append(names, p.name)
			}
		}
	}
	h.signerNames = strings.Join(names, ",")
}

// Sign returns the signature that the hosted plugins give the pod: pods with equal signatures get
// equal answers from them. It returns false if one of them does not sign the pod or fails, if none
// filters or scores, or if Filter has answered in the attempt already. The attempt then goes on
// without a signature. A signed attempt may take over the last one's verdicts (shareAnswers).
func (h *Host) Sign(p *object.Pod) (signature string, signed bool) {
	c := h.cycles[p.UID]
	if !h.signs || len(h.signers) == 0 || c == nil || len(c.statuses) > 0 || h.hangs.refuse(p.UID, h.signerNames) != nil {
		return "", false
	}
	var failed error
	err := h.call(&c.left, p.UID, "SignPod", h.signerNames, func() { signature, signed, failed = h.signatureOf(c.ctx, c.pod) })
	if err == nil {
		err = failed
	}
	if err != nil {
		h.options.Logger.Error(err, "SignPod failed for plugin", "plugin", h.signerNames, "pod", klog.KObj(c.pod))
		if c.left <= 0 {
			c.cancel(err)
		}
		return "", false
	}
	if signed {
		h.shareAnswers(c, signature)
	}
	return signature, signed
}

// signatureOf calls SignPod of the signers and joins their fragments as JSON. signed is
// false if one of them refuses; err is set if one returns an error.
func (h *Host) signatureOf(ctx context.Context, pod *v1.Pod) (signature string, signed bool, err error) {
	var all map[string]any
	for _, p := range h.signers {
		fragments, status := p.sign.SignPod(ctx, pod)
		if !status.IsSuccess() {
			if status.Code() == fwk.Error {
				err = fmt.Errorf("plugin %q: %w", p.name, errorOf(status))
			}
			return "", false, err
		}
		for _, f := range fragments {
			if all == nil {
				all = map[string]any{}
			}
			all[f.Key] = f.Value
		}
	}
	if all == nil {
		return "", true, nil
	}
	b, err := json.Marshal(all)
	return string(b), err == nil, err
}

// mostAnswers bounds the statuses that a cycle takes over from the last: if there are as many, it
// takes none.
const mostAnswers = 1024

// shareAnswers lets the cycle use the numbers of Filter statuses (verdicts) of the last
// signed cycle, if that had the same signature: the engine may reuse verdicts from then,
// and they must still stand for the same statuses.
func (h *Host) shareAnswers(c *cycle, signature string) {
	if h.lastSignature == signature && h.lastAnswers != nil && len(h.lastAnswers.statuses) < mostAnswers {
		c.answers = h.lastAnswers
	}
	h.lastSignature, h.lastAnswers = signature, c.answers
}

// SignPod returns a signature that is equal for pods that no plugin of the profile can tell
// apart; nil if a hosted plugin does not sign the pod or the loop does not answer.
func (h *handle) SignPod(ctx context.Context, pod *v1.Pod) fwk.PodSignature {
	if !h.signs {
		return nil
	}
	hosted, signed, err := h.signatureOf(ctx, pod)
	if err != nil {
		h.options.Logger.Error(err, "SignPod failed for plugin", "plugin", h.signerNames, "pod", klog.KObj(pod))
	}
	if !signed {
		return nil
	}
	own, known := "", false
	if h.ask(func() { own, known = h.machine.Signature(h.name, corePod(pod)) }) != nil || !known {
		return nil
	}
	return fwk.PodSignature(own + "\x00" + hosted)
}
