package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/access"
	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/why"
)

// AboutPod returns the pod that a question is about, if it is about one alone.
func AboutPod(r *http.Request) (pod types.NamespacedName, ok bool) {
	switch strings.TrimPrefix(r.URL.Path, Prefix) {
	case "why", "records", "watch":
	default:
		return pod, false
	}
	p := paramsOf(r, "pod", "node", "reason", "since", "until", "limit", "output")
	key := p.pod("pod")
	return podName(key), p.err == nil && key != ""
}

// hidden stands for the name of a pod that the reader may not see.
const hidden = "a pod that you may not list"

// mostAsked is how many namespaces of an answer the API server is asked about. Pods of the others
// are hidden.
const mostAsked = 16

// veil hides the names of pods that a reader may not see. A nil veil hides none.
type veil struct {
	ctx    context.Context
	reader *access.Reader
	own    string          // the pod that is asked about
	sees   map[string]bool // by namespace, as far as it was asked
	// knew reports whether the namespace is or was there.
	knew func(namespace string) bool
	// known are the namespaces whose names are looked for in the texts of an answer.
	known map[string]bool
}

// veilOf returns the veil of a request, nil where nothing is hidden.
func (h *handler) veilOf(r *http.Request) *veil {
	ctx := r.Context()
	reader := access.From(ctx)
	if !reader.Narrow() {
		return nil
	}
	own, _ := AboutPod(r) // else there would be no narrow reader
	v := &veil{ctx: ctx, reader: reader, own: own.String(), sees: map[string]bool{}, knew: h.Recorder.KnewNamespace}
	v.seesPodsOf(own.Namespace) // before the others, of which a few are asked about
	return v
}

func (v *veil) seesPodsOf(namespace string) bool {
	sees, asked := v.sees[namespace]
	if !asked && len(v.sees) < mostAsked {
		sees = v.reader.SeesPodsOf(v.ctx, namespace)
		v.sees[namespace] = sees
	}
	return sees
}

// pod returns the key of a pod, or what stands for it.
func (v *veil) pod(key string) string {
	namespace, _, qualified := strings.Cut(key, "/")
	if !qualified || key == v.own || v.seesPodsOf(namespace) {
		return key
	}
	return hidden
}

// record hides the names in a record other than that of its pod.
func (v *veil) record(r records.Record) records.Record {
	if v == nil {
		return r
	}
	r.Victims, r.Blockers = slices.Clone(r.Victims), slices.Clone(r.Blockers)
	for i := range r.Victims {
		r.Victims[i] = v.pod(r.Victims[i])
	}
	if r.For != "" {
		r.For = v.pod(r.For)
	}
	r.Message = v.recorded(r.Message)
	for i := range r.Blockers {
		b := &r.Blockers[i]
		b.Reasons = slices.Clone(b.Reasons)
		for k := range b.Reasons {
			b.Reasons[k] = v.recorded(b.Reasons[k])
		}
	}
	return r
}

// slashed finds words with a slash, behind an escaped control character too.
var slashed = regexp.MustCompile(`(\\[ntrbf]|\\u[0-9a-f]{4})?([0-9]+/[0-9]+ nodes\b|[A-Za-z0-9._/-]*/[A-Za-z0-9._/-]*[A-Za-z0-9])`)

// recorded hides each word in the text of a record that may name a pod that the reader may not
// see, also of a namespace that is gone. Other words, such as and/or, stay.
func (v *veil) recorded(s string) string {
	return slashed.ReplaceAllStringFunc(s, func(found string) string {
		parts := slashed.FindStringSubmatch(found)
		if word := parts[2]; word != v.own && v.mayNamePod(word) {
			return parts[1] + hidden
		}
		return found
	})
}

// mayNamePod reports whether a word with a slash has the name of a pod that the reader may not
// see. Behind a domain or in a path only what follows "namespaces" may be a namespace.
func (v *veil) mayNamePod(word string) bool {
	if word == "affinity/selector" || strings.HasSuffix(word, " nodes") { // of the scheduler's own messages
		return false
	}
	segments := strings.Split(word, "/")
	path := segments[0] == "" || strings.Contains(segments[0], ".")
	for i, segment := range segments[:len(segments)-1] {
		if path && (i == 0 || segments[i-1] != "namespaces") {
			continue
		}
		if v.knew(segment) && !v.seesPodsOf(segment) {
			return true
		}
	}
	return false
}

// learn makes the namespaces of a cluster known.
func (v *veil) learn(cluster []machine.Event) {
	v.known = map[string]bool{}
	for _, e := range cluster {
		switch e := e.(type) {
		case machine.PodSet:
			v.known[e.Pod.Namespace] = true
		case machine.NamespaceSet:
			v.known[e.Namespace.Name] = true
		}
	}
}

// qualifiedName is NAMESPACE/NAME behind what ends a word, an escaped control character
// included.
var qualifiedName = regexp.MustCompile(`(^|\\[ntrbf]|\\u[0-9a-f]{4}|[^A-Za-z0-9._/-])([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)/[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?`)

// text hides each NAMESPACE/NAME of a namespace that is known and whose pods the reader may
// not see.
func (v *veil) text(s string) string {
	if v == nil {
		return s
	}
	return qualifiedName.ReplaceAllStringFunc(s, func(found string) string {
		parts := qualifiedName.FindStringSubmatch(found)
		if !v.known[parts[2]] || strings.TrimPrefix(found, parts[1]) == v.own || v.seesPodsOf(parts[2]) {
			return found
		}
		return parts[1] + hidden
	})
}

// value hides names in all texts of a value that JSON has decoded.
func (v *veil) value(of any) any {
	switch of := of.(type) {
	case string:
		return v.text(of)
	case []any:
		for i := range of {
			of[i] = v.value(of[i])
		}
	case map[string]any:
		for name := range of { // any order: each by itself
			of[name] = v.value(of[name])
		}
	}
	return of
}

// fixesLeftOut is the reason that an answer without all fixes gives.
const fixesLeftOut = "fixes that concern pods of namespaces whose pods you may not list are not shown"

// answer returns the answer as data, without the fixes that concern pods that are hidden.
func (v *veil) answer(a *why.Answer) (any, error) {
	shown := slices.DeleteFunc(a.Fixes, func(f fix.Fix) bool { return v.hides(f) })
	if len(shown) < len(a.Fixes) && a.Cut == "" {
		a.Cut = fixesLeftOut
	}
	a.Fixes = shown
	if c := a.GroupCause; c != nil {
		c.Fixes = slices.DeleteFunc(c.Fixes, func(f why.Shared) bool { return v.hides(f.Fix) })
	}
	return v.data(a)
}

// hides reports whether the fix names something that is hidden.
func (v *veil) hides(f fix.Fix) bool {
	if slices.ContainsFunc(f.Changes, func(c fix.Change) bool { return c.Namespace != "" && v.pod(c.Namespace+"/"+c.Name) == hidden }) {
		return true
	}
	f.First = nil // that others come first is told, and not who
	before, err := json.Marshal(f)
	if err != nil {
		return true
	}
	data, err := v.data(f)
	if err != nil {
		return true
	}
	after, err := json.Marshal(data)
	return err != nil || bytes.Contains(after, []byte(hidden)) && !bytes.Contains(before, []byte(hidden))
}

// data returns a value as data without names that are hidden.
func (v *veil) data(of any) (any, error) {
	text, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var data any
	if err := decoder.Decode(&data); err != nil {
		return nil, err
	}
	return v.value(data), nil
}
