package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// source is what entries are read from.
type source interface {
	io.Reader
	io.ByteReader
}

// limits of what one entry may hold.
const (
	maxText = 8 << 20
	maxList = 1 << 22
)

// decoder reads entries. It fails on what no encoder writes; err is then the first
// reason.
type decoder struct {
	in      source
	header  *Header
	err     error
	last    time.Time
	version uint64
	objects map[uint64]*told
	next    uint64
}

// told is an object that the entries told of.
type told struct {
	kind kind
	text string
	api  api
	set  machine.Event
}

func newDecoder(in source, h *Header) *decoder {
	return &decoder{in: in, header: h, last: h.Start, objects: map[uint64]*told{}}
}

func (r *decoder) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *decoder) uint() uint64 {
	if r.err != nil {
		return 0
	}
	n, err := binary.ReadUvarint(r.in)
	if err != nil {
		r.fail(err)
	}
	return n
}

func (r *decoder) int() int64 {
	if r.err != nil {
		return 0
	}
	n, err := binary.ReadVarint(r.in)
	if err != nil {
		r.fail(err)
	}
	return n
}

func (r *decoder) bool() bool { return r.uint() == 1 }

// count is the length of a list.
func (r *decoder) count() int {
	n := r.uint()
	if n > maxList {
		r.fail(fmt.Errorf("a list of %d is too long", n))
		return 0
	}
	return int(n)
}

func (r *decoder) string() string {
	n := r.uint()
	if n > maxText {
		r.fail(fmt.Errorf("a text of %d bytes is too long", n))
	}
	if r.err != nil || n == 0 {
		return ""
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r.in, b); err != nil {
		r.fail(err)
		return ""
	}
	return string(b)
}

func (r *decoder) error() error {
	if r.uint() == 0 {
		return nil
	}
	return errors.New(r.string())
}

// known is the object with this number, counted from one.
func (r *decoder) known(ref uint64) *told {
	o := r.objects[ref-1]
	if o == nil {
		r.fail(fmt.Errorf("there is no object number %d", ref-1))
	}
	return o
}

func (r *decoder) uid() types.UID {
	ref := r.uint()
	if ref == 0 {
		return types.UID(r.string())
	}
	if o := r.known(ref); o != nil {
		return o.api.GetUID()
	}
	return ""
}

func (r *decoder) node() string {
	ref := r.uint()
	if ref == 0 {
		return r.string()
	}
	if o := r.known(ref); o != nil {
		return o.api.GetName()
	}
	return ""
}

func (r *decoder) kind() object.Kind {
	k, ok := objectOf(kind(r.uint()))
	if !ok {
		r.fail(errors.New("an unknown kind of objects"))
	}
	return k
}

// entry reads an entry. io.EOF is the end of the entries.
func (r *decoder) entry() (*Entry, error) {
	code, err := r.in.ReadByte()
	if err != nil {
		return nil, err
	}
	if code == codeSnapshot || code == codeSnapshotUnderway {
		e := &Entry{Now: r.last}
		e.Snapshot, e.Objects = r.snapshot(code)
		return e, r.unexpected()
	}
	r.last = r.last.Add(time.Duration(r.int()))
	e := &Entry{Now: r.last, Panicked: code&flagPanicked != 0}
	e.Event = r.event(code & codeMask)
	if code&flagEffects != 0 {
		e.Digest = r.digest()
		for range r.count() {
			e.Attempts = append(e.Attempts, r.attempt())
		}
	}
	return e, r.unexpected()
}

// unexpected is the first reason to fail within an entry, where none may end.
func (r *decoder) unexpected() error {
	if errors.Is(r.err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return r.err
}

// checkpoint reads what encoder.checkpoint wrote.
func (r *decoder) checkpoint() (objects []machine.Event, err error) {
	code, err := r.in.ReadByte()
	if err != nil {
		return nil, err
	}
	if code != codeCheckpoint {
		return nil, errors.New("a checkpoint is missing")
	}
	r.next = r.uint()
	for range r.count() {
		id := r.uint()
		o := &told{kind: kind(r.uint())}
		o.text = r.body("")
		if r.err != nil {
			return nil, r.err
		}
		e, a, err := r.decoded(o.kind, o.text)
		if err != nil {
			return nil, err
		}
		o.api, o.set, r.objects[id] = a, e, o
		objects = append(objects, e)
	}
	return objects, r.err
}

func (r *decoder) digest() uint32 {
	var b [4]byte
	if r.err == nil {
		if _, err := io.ReadFull(r.in, b[:]); err != nil {
			r.fail(err)
		}
	}
	return binary.LittleEndian.Uint32(b[:])
}

func (r *decoder) attempt() Attempt {
	o := Attempt{UID: r.uid()}
	if n := r.uint(); n < uint64(len(results)) {
		o.Result = results[n]
	}
	o.Node, o.Score, o.Feasible = r.node(), r.int(), int(r.uint())
	return o
}

func (r *decoder) event(code uint8) machine.Event {
	switch code {
	case codeSet:
		return r.set()
	case codeGone:
		return r.gone()
	case codeScheduleOne:
		return machine.ScheduleOne{}
	case codeTick:
		return machine.Tick{}
	case codeRewound:
		return machine.Rewound{}
	case codePodDecodeFailed:
		return machine.PodDecodeFailed{UID: types.UID(r.string()), Namespace: r.string(), Name: r.string(), SchedulerName: r.string(), Why: r.error()}
	case codeKindUnlisted:
		return machine.KindUnlisted{Kind: r.kind(), Err: r.error()}
	case codeKindListed:
		return machine.KindListed{Kind: r.kind()}
	case codePermitReply:
		return machine.PermitReply{UID: r.uid(), Plugin: r.string(), Allow: r.bool(), Message: r.string()}
	case codePermitAnswer:
		return machine.PermitReply{UID: r.uid(), Attempt: int(r.uint()), Plugin: r.string(), Allow: r.bool(), Preempt: r.bool(), Message: r.string()}
	case codeActivate:
		var uids []types.UID
		for range r.count() {
			uids = append(uids, r.uid())
		}
		return machine.Activate{UIDs: uids}
	}
	return r.reply(code)
}

func (r *decoder) reply(code uint8) machine.Event {
	switch code {
	case codeBindReply:
		return machine.BindReply{UID: r.uid(), Result: machine.BindResult(r.uint()), Err: r.error()}
	case codeEvictReply:
		return machine.EvictReply{Victim: r.uid(), Preemptor: r.uid(), Err: r.error()}
	case codeWriteReply, codePostFilterWritten:
		e := machine.WriteReply{UID: r.uid()}
		if code == codePostFilterWritten {
			e.Call = r.uint()
		}
		e.Done, e.Err = int(r.uint()), r.error()
		for range r.count() {
			if o, ok := r.shown().(machine.ObjectSet); ok {
				e.Shown = append(e.Shown, o.Object)
			}
		}
		return e
	case codeReadReply:
		e := machine.ReadReply{UID: r.uid(), Err: r.error()}
		if r.bool() {
			if p, ok := r.shown().(machine.PodSet); ok {
				e.Pod = p.Pod
			}
		}
		return e
	case codeExtenderReply:
		return r.extenderReply()
	}
	r.fail(fmt.Errorf("an unknown entry (code %d)", code))
	return nil
}

func (r *decoder) extenderReply() machine.Event {
	e := machine.ExtenderReply{UID: r.uid(), Call: r.uint(), Err: r.error()}
	for range r.count() {
		e.Passed = append(e.Passed, r.node())
	}
	for _, failed := range []*map[string]string{&e.Failed, &e.Unresolvable} {
		for range r.count() {
			if *failed == nil {
				*failed = map[string]string{}
			}
			node := r.node()
			(*failed)[node] = r.string()
		}
	}
	for range r.count() {
		if e.Scores == nil {
			e.Scores = map[string]int64{}
		}
		node := r.node()
		e.Scores[node] = r.int()
	}
	for range r.count() {
		l := machine.NodeVictims{Node: r.node(), Violations: int(r.int())}
		for range r.count() {
			l.Victims = append(l.Victims, r.uid())
		}
		e.Victims = append(e.Victims, l)
	}
	return e
}

// set reads an object that is new or changed.
func (r *decoder) set() machine.Event {
	ref, o := r.uint(), &told{}
	if r.err != nil {
		return nil
	}
	if ref > 0 {
		if o = r.known(ref); o == nil {
			return nil
		}
	} else {
		o.kind = kind(r.uint())
		r.objects[r.next] = o
		r.next++
	}
	text := r.body(o.text)
	if r.err != nil {
		return nil
	}
	if o.kind == kindNode && unchanged(o.text, text) { // a report that all is as it was
		return o.set
	}
	e, a, err := r.decoded(o.kind, text)
	if err != nil {
		r.fail(err)
		return nil
	}
	o.text, o.api, o.set = text, a, e
	return e
}

// errOldPodGroup is of a record of Kubernetes 1.36, whose PodGroups have other fields.
var errOldPodGroup = errors.New("a PodGroup of scheduling.k8s.io/v1alpha2 cannot be read any more")

// decoded returns the event that tells of the object, and the object. It refuses an object
// whose form has changed since the record was written.
func (r *decoder) decoded(k kind, text string) (machine.Event, api, error) {
	if k == numberOf(object.PodGroups) && r.header.Version <= lastVersion136 {
		return nil, nil, r.header.Refusal(errOldPodGroup)
	}
	return set(k, text)
}

// unchanged tells whether the two differ in the version alone. A decoded node does not
// have it.
func unchanged(was, is string) bool {
	_, a := split(was)
	_, b := split(is)
	return was != "" && a == b
}

// shown reads an object as a reply shows it.
func (r *decoder) shown() machine.Event {
	k, base := kind(r.uint()), ""
	if ref := r.uint(); ref > 0 {
		o := r.known(ref)
		if o == nil {
			return nil
		}
		base = o.text
	}
	text := r.body(base)
	if r.err != nil {
		return nil
	}
	e, _, err := r.decoded(k, text)
	if err != nil {
		r.fail(err)
	}
	return e
}

func (r *decoder) body(base string) string {
	_, old := split(base)
	version := ""
	if r.uint() == 0 {
		version = r.string()
	} else {
		r.version += uint64(r.int())
		version = strconv.FormatUint(r.version, 10)
	}
	front, back, between := r.uint(), r.uint(), r.string()
	if n := uint64(len(old)); front > n || back > n-front {
		r.fail(errors.New("a change is longer than the object"))
		return ""
	}
	if len(version) > 127 {
		r.fail(errors.New("a resource version is too long"))
		return ""
	}
	return join(version, old[:front]+between+old[len(old)-int(back):])
}

func (r *decoder) gone() machine.Event {
	ref := r.uint()
	if ref > 0 {
		o := r.known(ref)
		if o == nil {
			return nil
		}
		delete(r.objects, ref-1)
		return gone(o.kind, o.api)
	}
	k := kind(r.uint())
	if r.err == nil && !k.known() {
		r.fail(fmt.Errorf("no kind of objects has the number %d", k))
	}
	if r.err != nil {
		return nil
	}
	o := k.empty()
	o.SetNamespace(r.string())
	o.SetName(r.string())
	o.SetUID(types.UID(r.string()))
	return gone(k, o)
}
