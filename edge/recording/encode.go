package recording

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
)

// known is an object that a stream of entries has told of and that is not gone.
type known struct {
	id   uint64
	kind kind
	uid  types.UID
	text string // as Objects writes it
}

// address is where the API has an object.
type address struct {
	kind            kind
	namespace, name string
}

// encoder writes entries. Each is as short as what came before allows: an object
// that is known is named by its number, and only what changed of it is written.
type encoder struct {
	out     []byte
	names   *Names
	last    time.Time // of the entry before
	version uint64    // the last resource version that is a number
	next    uint64    // the number of the next new object
	objects map[address]*known
	pods    map[types.UID]*known
}

func newEncoder(names *Names, start time.Time) *encoder {
	return &encoder{names: names, last: start, objects: map[address]*known{}, pods: map[types.UID]*known{}}
}

func (w *encoder) uint(n uint64)     { w.out = binary.AppendUvarint(w.out, n) }
func (w *encoder) int(n int64)       { w.out = binary.AppendVarint(w.out, n) }
func (w *encoder) string(s string)   { w.uint(uint64(len(s))); w.out = append(w.out, s...) }
func (w *encoder) name(s string)     { w.string(w.names.Of(s)) }
func (w *encoder) uid(uid types.UID) { w.ref(w.pods[uid], string(uid)) }
func (w *encoder) node(name string)  { w.ref(w.objects[address{kindNode, "", name}], w.names.Of(name)) }
func (w *encoder) bool(b bool)       { w.uint(map[bool]uint64{true: 1}[b]) }
func (w *encoder) ref(o *known, s string) {
	if o != nil {
		w.uint(o.id + 1)
		return
	}
	w.uint(0)
	w.string(s)
}

func (w *encoder) error(err error) {
	if err == nil {
		w.uint(0)
		return
	}
	w.uint(1)
	text := err.Error()
	if w.names != nil {
		text = "an error (its text is redacted)"
	}
	w.string(text)
}

// entry writes an entry. On an error nothing is written.
func (w *encoder) entry(e *Entry) error {
	at, code := len(w.out), uint8(0)
	if e.Panicked {
		code |= flagPanicked
	}
	if e.Digest != 0 {
		code |= flagEffects
	}
	w.out = append(w.out, code)
	w.int(int64(e.Now.Sub(w.last)))
	c, err := w.event(e.Event)
	if err != nil {
		w.out = w.out[:at]
		return err
	}
	w.out[at] |= c
	w.last = e.Now
	if e.Digest == 0 {
		return nil
	}
	w.out = binary.LittleEndian.AppendUint32(w.out, e.Digest)
	w.uint(uint64(len(e.Attempts)))
	for i := range e.Attempts {
		w.attempt(&e.Attempts[i])
	}
	return nil
}

// checkpointPart is how many bytes of a checkpoint are made at a time, about.
const checkpointPart = 1 << 20

// checkpoint yields, in parts, that with which a segment begins: all objects that are known.
func (w *encoder) checkpoint() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		w.version = 0
		w.out = append(w.out[:0], codeCheckpoint)
		w.uint(w.next)
		w.uint(uint64(len(w.objects)))
		for _, o := range slices.SortedFunc(maps.Values(w.objects), func(a, b *known) int { return cmp.Compare(a.id, b.id) }) {
			w.uint(o.id)
			w.uint(uint64(o.kind))
			w.body("", o.text)
			if len(w.out) >= checkpointPart {
				yield(w.out)
				w.out = w.out[:0]
			}
		}
		yield(w.out)
		w.out = w.out[:0]
	}
}

// follow takes note of the object that the event tells of, and writes nothing.
func (w *encoder) follow(e machine.Event) {
	at := len(w.out)
	_, _ = w.event(e)
	w.out = w.out[:at]
}

func (w *encoder) attempt(o *Attempt) {
	w.uid(o.UID)
	w.uint(uint64(max(0, slices.Index(results, o.Result))))
	w.node(o.Node)
	w.int(o.Score)
	w.uint(uint64(o.Feasible))
}

// addressOf is where the API has the object that the event tells of; false: it tells
// of none.
func addressOf(e machine.Event) (at address, ok bool) {
	switch e := e.(type) {
	case machine.PodSet:
		at = address{kindPod, e.Pod.Namespace, e.Pod.Name}
	case machine.NodeSet:
		at = address{kindNode, "", e.Node.Name}
	case machine.NamespaceSet:
		at = address{kindNamespace, "", e.Namespace.Name}
	case machine.BudgetSet:
		at = address{kindBudget, e.Budget.Namespace, e.Budget.Name}
	case machine.SelectorOwnerSet:
		at = address{ownerKinds[e.Owner.Kind], e.Owner.Namespace, e.Owner.Name}
	case machine.ObjectSet:
		m := e.Object.Head()
		at = address{numberOf(m.Kind), m.Namespace, m.Name}
	case machine.PodGone:
		at = address{kindPod, e.Namespace, e.Name}
	case machine.NodeGone:
		at = address{kindNode, "", e.Name}
	case machine.NamespaceGone:
		at = address{kindNamespace, "", e.Name}
	case machine.BudgetGone:
		at = address{kindBudget, e.Namespace, e.Name}
	case machine.SelectorOwnerGone:
		at = address{ownerKinds[e.Kind], e.Namespace, e.Name}
	case machine.ObjectGone:
		at = address{numberOf(e.Kind), e.Namespace, e.Name}
	}
	return at, at.kind != 0
}

// event writes the event after its code, which it returns.
func (w *encoder) event(e machine.Event) (code uint8, err error) {
	at, _ := addressOf(e)
	switch e := e.(type) {
	case machine.PodSet:
		return codeSet, w.set(at, e.Pod.UID, e.Pod.Recorded)
	case machine.NodeSet:
		return codeSet, w.set(at, e.Node.UID, e.Node.Recorded)
	case machine.NamespaceSet:
		return codeSet, w.set(at, "", e.Namespace.Recorded)
	case machine.BudgetSet:
		return codeSet, w.set(at, "", e.Budget.Recorded)
	case machine.SelectorOwnerSet:
		return codeSet, w.set(at, "", e.Owner.Recorded)
	case machine.ObjectSet:
		return codeSet, w.set(at, e.Object.Head().UID, e.Object.Head().Recorded)
	case machine.PodGone:
		w.gone(at, e.UID)
		return codeGone, nil
	case machine.NodeGone, machine.NamespaceGone, machine.BudgetGone, machine.SelectorOwnerGone, machine.ObjectGone:
		w.gone(at, "")
		return codeGone, nil
	}
	return w.other(e)
}

// other writes an event that tells of no object of the API.
func (w *encoder) other(e machine.Event) (code uint8, err error) {
	switch e := e.(type) {
	case machine.ScheduleOne:
		return codeScheduleOne, nil
	case machine.Tick:
		return codeTick, nil
	case machine.Rewound:
		return codeRewound, nil
	case machine.PodDecodeFailed:
		w.string(string(e.UID))
		w.name(e.Namespace)
		w.name(e.Name)
		w.string(e.SchedulerName)
		w.error(e.Why)
		return codePodDecodeFailed, nil
	case machine.KindUnlisted:
		w.uint(uint64(numberOf(e.Kind)))
		w.error(e.Err)
		return codeKindUnlisted, nil
	case machine.KindListed:
		w.uint(uint64(numberOf(e.Kind)))
		return codeKindListed, nil
	case machine.PermitReply:
		w.uid(e.UID)
		w.uint(uint64(e.Attempt))
		w.string(e.Plugin)
		w.bool(e.Allow)
		w.bool(e.Preempt)
		w.string(e.Message)
		return codePermitAnswer, nil
	case machine.Activate:
		w.uint(uint64(len(e.UIDs)))
		for _, uid := range e.UIDs {
			w.uid(uid)
		}
		return codeActivate, nil
	}
	return w.reply(e)
}

// reply writes the outcome of an effect.
func (w *encoder) reply(e machine.Event) (code uint8, err error) {
	switch e := e.(type) {
	case machine.BindReply:
		w.uid(e.UID)
		w.uint(uint64(e.Result))
		w.error(e.Err)
		return codeBindReply, nil
	case machine.EvictReply:
		w.uid(e.Victim)
		w.uid(e.Preemptor)
		w.error(e.Err)
		return codeEvictReply, nil
	case machine.WriteReply:
		code = codeWriteReply
		w.uid(e.UID)
		if e.Call != 0 {
			code = codePostFilterWritten
			w.uint(e.Call)
		}
		w.uint(uint64(e.Done))
		w.error(e.Err)
		w.uint(uint64(len(e.Shown)))
		for _, o := range e.Shown {
			m := o.Head()
			if err := w.shown(address{numberOf(m.Kind), m.Namespace, m.Name}, m.Recorded); err != nil {
				return 0, err
			}
		}
		return code, nil
	case machine.ReadReply:
		w.uid(e.UID)
		w.error(e.Err)
		w.bool(e.Pod != nil)
		if e.Pod != nil {
			return codeReadReply, w.shown(address{kindPod, e.Pod.Namespace, e.Pod.Name}, e.Pod.Recorded)
		}
		return codeReadReply, nil
	case machine.ExtenderReply:
		w.extenderReply(e)
		return codeExtenderReply, nil
	}
	return 0, fmt.Errorf("a record cannot hold %T", e)
}

func (w *encoder) extenderReply(e machine.ExtenderReply) {
	w.uid(e.UID)
	w.uint(e.Call)
	w.error(e.Err)
	w.uint(uint64(len(e.Passed)))
	for _, n := range e.Passed {
		w.node(n)
	}
	for _, failed := range []map[string]string{e.Failed, e.Unresolvable} {
		w.uint(uint64(len(failed)))
		for _, n := range slices.Sorted(maps.Keys(failed)) {
			w.node(n)
			w.string(failed[n])
		}
	}
	w.uint(uint64(len(e.Scores)))
	for _, n := range slices.Sorted(maps.Keys(e.Scores)) {
		w.node(n)
		w.int(e.Scores[n])
	}
	w.uint(uint64(len(e.Victims)))
	for _, l := range e.Victims {
		w.node(l.Node)
		w.int(int64(l.Violations))
		w.uint(uint64(len(l.Victims)))
		for _, uid := range l.Victims {
			w.uid(uid)
		}
	}
}

// set writes an object that is new or changed.
func (w *encoder) set(at address, uid types.UID, text string) error {
	if text == "" {
		return fmt.Errorf("a record of %s %s cannot be made: it was not kept as the API has it", at.namespace, at.name)
	}
	o := w.objects[at]
	if o == nil {
		w.uint(0)
		w.uint(uint64(at.kind))
		o = &known{id: w.next, kind: at.kind}
		w.next++
		w.objects[at] = o
	} else {
		w.uint(o.id + 1)
	}
	w.body(o.text, text)
	if at.kind == kindPod && o.uid != uid {
		delete(w.pods, o.uid)
		w.pods[uid] = o
	}
	o.uid, o.text = uid, text
	return nil
}

// shown writes an object as a reply shows it. What is known of it stays.
func (w *encoder) shown(at address, text string) error {
	if text == "" {
		return fmt.Errorf("a record of a reply about %s %s cannot be made: it was not kept as the API has it", at.namespace, at.name)
	}
	o, base := w.objects[at], ""
	if w.uint(uint64(at.kind)); o != nil {
		base = o.text
		w.uint(o.id + 1)
	} else {
		w.uint(0)
	}
	w.body(base, text)
	return nil
}

// body writes the text as what differs from the base: the version, then how many
// bytes are the same in front and behind, and those between.
func (w *encoder) body(base, text string) {
	_, old := split(base)
	version, now := split(text)
	w.resourceVersion(version)
	front := 0
	for front < min(len(old), len(now)) && old[front] == now[front] {
		front++
	}
	back := 0
	for back < min(len(old), len(now))-front && old[len(old)-1-back] == now[len(now)-1-back] {
		back++
	}
	w.uint(uint64(front))
	w.uint(uint64(back))
	w.string(now[front : len(now)-back])
}

func (w *encoder) resourceVersion(version string) {
	n, err := strconv.ParseUint(version, 10, 63)
	if err != nil || strconv.FormatUint(n, 10) != version {
		w.uint(0)
		w.string(version)
		return
	}
	w.uint(1)
	w.int(int64(n) - int64(w.version))
	w.version = n
}

// gone writes that an object is no more.
func (w *encoder) gone(at address, uid types.UID) {
	o := w.objects[at]
	if o == nil || at.kind == kindPod && o.uid != uid {
		w.uint(0)
		w.uint(uint64(at.kind))
		w.name(at.namespace)
		w.name(at.name)
		w.string(string(uid))
		return
	}
	w.uint(o.id + 1)
	delete(w.objects, at)
	if at.kind == kindPod {
		delete(w.pods, uid)
	}
}
