package recording

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// A snapshot since version 3 of the format holds what is under way, too. It names objects
// as they were at some time: as what differs from what is known of them.

// underway writes the part of a snapshot that version 2 did not have.
func (w *encoder) underway(s *machine.Snapshot) error {
	w.uint(uint64(len(s.Groups)))
	for _, g := range s.Groups {
		if w.names != nil {
			g.Condition.Message = ""
		}
		w.json(g)
	}
	for _, uids := range [][]string{textsOf(s.Members), textsOf(s.Line)} {
		w.json(uids)
	}
	if err := errors.Join(w.assumed(s), w.knownPods(s.Known)); err != nil {
		return err
	}
	if err := w.eventsInFlight(&s.Queue.Events); err != nil {
		return err
	}
	for i := range s.Queue.Entries {
		if e := &s.Queue.Entries[i]; e.Place == queue.InFlight {
			if err := w.podsAsTheyWere(e.Pod, e.Changed); err != nil {
				return err
			}
		}
	}
	for i := range s.Pods {
		if u := s.Pods[i].Underway; u != nil {
			if w.names != nil && len(u.Taken) > 0 {
				return errors.New("a redacted record cannot hold what devices take of a node")
			}
			if err := errors.Join(w.podsAsTheyWere(podsOf(u)...), w.kept(u)); err != nil {
				return err
			}
		}
	}
	w.json(w.redactedGroups(s.Queue.Groups))
	w.json(w.redactedQuotas(s.Quotas))
	w.json(w.redactedStatuses(s.Statuses))
	return nil
}

// redactedGroups names the groups of the queue as the record does.
func (w *encoder) redactedGroups(groups []queue.SavedGroup) []queue.SavedGroup {
	groups = slices.Clone(groups)
	for i := range groups {
		g := &groups[i]
		g.Namespace, g.Name = w.names.Of(g.Namespace), w.names.group(g.Name)
	}
	return groups
}

// redactedQuotas names the ElasticQuotas as the record does. What was reported of them does
// not count in a record without texts.
func (w *encoder) redactedQuotas(s *machine.SavedQuotas) *machine.SavedQuotas {
	if s == nil || w.names == nil {
		return s
	}
	redacted := &machine.SavedQuotas{Asked: map[string]object.Amounts{}}
	for identity, used := range s.Asked { // any order: into a map
		parts := strings.SplitN(identity, "/", 3)
		for i := range min(2, len(parts)) {
			parts[i] = w.names.Of(parts[i])
		}
		redacted.Asked[strings.Join(parts, "/")] = used
	}
	return redacted
}

// redactedStatuses leaves out who a PodGroup is occupied by.
func (w *encoder) redactedStatuses(s *machine.SavedStatuses) *machine.SavedStatuses {
	if s == nil || w.names == nil {
		return s
	}
	redacted := &machine.SavedStatuses{Asked: maps.Clone(s.Asked), Ended: s.Ended}
	for uid, status := range redacted.Asked { // any order: each by itself
		status.OccupiedBy = ""
		redacted.Asked[uid] = status
	}
	return redacted
}

func textsOf[T ~string](list []T) []string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = string(s)
	}
	return texts
}

// podsOf lists the pods of what is under way for a pod, nil for one that it has not.
func podsOf(u *machine.SavedUnderway) []*object.Pod {
	pods := []*object.Pod{u.Shown, u.Placed}
	for _, b := range []*machine.SavedBinding{u.Binding, u.Ended} {
		if b != nil {
			pods = append(pods, b.Pod)
		}
	}
	if u.Extender != nil {
		pods = append(pods, u.Extender.Pod)
	}
	return pods
}

// knownPods writes the pods that the machine knows otherwise than the watch told, and those
// that it does not know: a read told of them.
func (w *encoder) knownPods(known []*object.Pod) error {
	there, others := make(map[uint64]bool, len(known)), []*object.Pod(nil)
	for _, p := range known {
		o := w.objects[address{kindPod, p.Namespace, p.Name}]
		if o != nil {
			there[o.id] = true
		}
		if o == nil || o.uid != p.UID || o.text != p.Recorded {
			others = append(others, p)
		}
	}
	slices.SortFunc(others, func(a, b *object.Pod) int { return cmp.Compare(a.UID, b.UID) })
	if err := w.podsAsTheyWere(others...); err != nil {
		return err
	}
	var unknown []uint64
	for _, o := range w.objects { // any order: sorted below
		if o.kind == kindPod && !there[o.id] {
			unknown = append(unknown, o.id)
		}
	}
	slices.Sort(unknown)
	w.json(unknown)
	return nil
}

// podsAsTheyWere writes how many pods follow, and each.
func (w *encoder) podsAsTheyWere(pods ...*object.Pod) error {
	w.uint(uint64(len(pods)))
	for _, p := range pods {
		if err := w.podAsItWas(p); err != nil {
			return err
		}
	}
	return nil
}

// podAsItWas writes a pod, or that there is none, and the node that it is on.
func (w *encoder) podAsItWas(p *object.Pod) error {
	if w.bool(p != nil); p == nil {
		return nil
	}
	w.node(p.NodeName)
	return w.shown(address{kindPod, p.Namespace, p.Name}, p.Recorded)
}

func (w *encoder) nodeAsItWas(n *object.Node) error {
	if w.bool(n != nil); n == nil {
		return nil
	}
	return w.shown(address{kindNode, "", n.Name}, n.Recorded)
}

func (w *encoder) objectAsItWas(o object.Object) error {
	if w.bool(o != nil); o == nil {
		return nil
	}
	m := o.Head()
	return w.shown(address{numberOf(m.Kind), m.Namespace, m.Name}, m.Recorded)
}

func (w *encoder) ownerAsItWas(o *object.SelectorOwner) error {
	if w.bool(o != nil); o == nil {
		return nil
	}
	return w.shown(address{ownerKinds[o.Kind], o.Namespace, o.Name}, o.Recorded)
}

// namespaceAsItWas writes the labels of a namespace, which may be gone.
func (w *encoder) namespaceAsItWas(n *object.Namespace) {
	if w.bool(n != nil); n == nil {
		return
	}
	o := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: maps.Clone(n.Labels)}}
	if w.names != nil {
		w.names.redact(o)
	}
	w.string(o.Name)
	w.json(o.Labels)
}

// eventsInFlight writes the events that the queue keeps.
func (w *encoder) eventsInFlight(l *queue.SavedEvents) error {
	w.json(l)
	w.uint(uint64(len(l.Last)))
	for _, e := range l.Last {
		if e.Resource == framework.HostedObject {
			return errors.New("a record cannot hold an event of a hosted plugin")
		}
		w.uint(uint64(e.Resource))
		w.uint(uint64(e.ActionType))
		err := errors.Join(w.podAsItWas(e.OldPod), w.podAsItWas(e.NewPod), w.nodeAsItWas(e.OldNode), w.nodeAsItWas(e.NewNode),
			w.objectAsItWas(e.OldObject), w.objectAsItWas(e.NewObject), w.ownerAsItWas(e.OldSelectorOwner), w.ownerAsItWas(e.NewSelectorOwner))
		if err != nil {
			return err
		}
		w.namespaceAsItWas(e.OldNamespace)
		w.namespaceAsItWas(e.NewNamespace)
	}
	return nil
}

// redactedUnderway names nodes as the record does, and has no texts.
func (w *encoder) redactedUnderway(u *machine.SavedUnderway) *machine.SavedUnderway {
	if u == nil || w.names == nil {
		return u
	}
	r := *u
	r.Node, r.Binding, r.Ended = w.names.Of(r.Node), w.redactedBinding(r.Binding), w.redactedBinding(r.Ended)
	if x := u.Extender; x != nil {
		c := *x
		c.Said.Passed, c.Said.Refused, c.Said.Scores = w.redactedList(x.Said.Passed), redactedKeys(w.names, x.Said.Refused), redactedKeys(w.names, x.Said.Scores)
		c.Shown, c.Open = redactedKeys(w.names, x.Shown), maps.Clone(x.Open)
		for number, open := range c.Open { // any order: each by itself
			open.Nodes = w.redactedList(open.Nodes)
			c.Open[number] = open
		}
		r.Extender = &c
	}
	return &r
}

func (w *encoder) redactedBinding(b *machine.SavedBinding) *machine.SavedBinding {
	if b == nil {
		return nil
	}
	c, redacted := *b, "an error (its text is redacted)"
	if c.Node = w.names.Of(b.Node); c.Lost.Refusal != nil {
		c.Lost.Refusal = &redacted
	}
	if b.Failed != nil {
		f := *b.Failed
		if f.Reasons = nil; f.Err != nil {
			f.Err = &redacted
		}
		c.Failed = &f
	}
	c.Kept = slices.Clone(b.Kept)
	for i := range c.Kept {
		c.Kept[i].Name = w.names.claimOf(b.Pod.Name, c.Kept[i].Name)
	}
	return &c
}

func (w *encoder) redactedList(names []string) []string {
	if names == nil {
		return nil
	}
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = w.names.Of(name)
	}
	return list
}

func redactedKeys[T any](names *Names, m map[string]T) map[string]T {
	if m == nil {
		return nil
	}
	redacted := make(map[string]T, len(m))
	for name, v := range m { // any order: into a map
		redacted[names.Of(name)] = v
	}
	return redacted
}

// underway reads what encoder.underway wrote, and returns the events that tell of the
// objects as the machine knows them.
func (r *decoder) underway(s *machine.Snapshot) (objects []machine.Event) {
	for range r.count() {
		var g machine.SavedGroup
		r.json(&g)
		s.Groups = append(s.Groups, g)
	}
	r.json(&s.Members)
	r.json(&s.Line)
	r.assumed(s)
	objects = r.knownPods()
	r.eventsInFlight(&s.Queue.Events)
	for i := range s.Queue.Entries {
		if e := &s.Queue.Entries[i]; e.Place == queue.InFlight {
			r.podsAsTheyWere(&e.Pod, &e.Changed)
		}
	}
	for i := range s.Pods {
		u := s.Pods[i].Underway
		if u == nil {
			continue
		}
		places := []**object.Pod{&u.Shown, &u.Placed}
		for _, b := range []*machine.SavedBinding{u.Binding, u.Ended} {
			if b != nil {
				places = append(places, &b.Pod)
			}
		}
		if u.Extender != nil {
			places = append(places, &u.Extender.Pod)
		}
		r.podsAsTheyWere(places...)
		r.kept(u)
	}
	if r.header.Version > lastWithoutGroups {
		r.json(&s.Queue.Groups)
		r.json(&s.Quotas)
		r.json(&s.Statuses)
	}
	if r.err == nil {
		if err := s.Queue.Valid(); err != nil {
			r.fail(err)
		}
	}
	return objects
}

func (r *decoder) knownPods() (objects []machine.Event) {
	others := make([]*object.Pod, min(r.count(), maxList))
	for i := range others {
		others[i] = r.podAsItWas()
	}
	var unknown []uint64
	r.json(&unknown)
	if r.err != nil {
		return nil
	}
	left := map[address]bool{}
	for _, p := range others {
		if p == nil {
			r.fail(errors.New("a pod that the scheduler knows is missing"))
			return nil
		}
		left[address{kindPod, p.Namespace, p.Name}] = true
	}
	for _, id := range unknown {
		if o := r.known(id + 1); o != nil {
			left[address{o.kind, o.api.GetNamespace(), o.api.GetName()}] = true
		}
	}
	for _, e := range r.all() {
		if at, _ := addressOf(e); !left[at] {
			objects = append(objects, e)
		}
	}
	for _, p := range others {
		objects = append(objects, machine.PodSet{Pod: p})
	}
	return objects
}

func (r *decoder) podsAsTheyWere(places ...**object.Pod) {
	if n := r.count(); n != len(places) {
		r.fail(fmt.Errorf("%d pods are written where %d belong", n, len(places)))
	}
	for _, at := range places {
		*at = r.podAsItWas()
	}
}

func (r *decoder) podAsItWas() *object.Pod {
	if !r.bool() {
		return nil
	}
	node := r.node()
	e, ok := r.shown().(machine.PodSet)
	switch {
	case !ok:
		r.fail(errors.New("a pod is missing"))
		return nil
	case e.Pod.NodeName != node:
		bound := *e.Pod
		bound.NodeName = node
		return &bound
	}
	return e.Pod
}

func (r *decoder) nodeAsItWas() *object.Node {
	return readAsItWas[machine.NodeSet](r, "a node").Node
}

func (r *decoder) objectAsItWas() object.Object {
	return readAsItWas[machine.ObjectSet](r, "an object").Object
}

func (r *decoder) ownerAsItWas() *object.SelectorOwner {
	return readAsItWas[machine.SelectorOwnerSet](r, "an owner of a selector").Owner
}

// readAsItWas reads an event that shows an object, the zero event where none is written. It
// fails if another kind of object is written.
func readAsItWas[E machine.Event](r *decoder, what string) (e E) {
	if !r.bool() {
		return e
	}
	e, ok := r.shown().(E)
	if !ok {
		r.fail(errors.New(what + " is missing"))
	}
	return e
}

func (r *decoder) namespaceAsItWas() *object.Namespace {
	if !r.bool() {
		return nil
	}
	n := &object.Namespace{Name: r.string()}
	r.json(&n.Labels)
	return n
}

func (r *decoder) eventsInFlight(l *queue.SavedEvents) {
	r.json(l)
	for i := range l.Old {
		o := &l.Old[i]
		o.Resource, o.Bit = r.resource(o.Resource), r.bit(o.Bit)
	}
	for range r.count() {
		if r.err != nil {
			return
		}
		e := &framework.Event{Resource: r.resource(framework.EventResource(r.uint())), ActionType: r.actions(framework.ActionType(r.uint()))}
		e.OldPod, e.NewPod, e.OldNode, e.NewNode = r.podAsItWas(), r.podAsItWas(), r.nodeAsItWas(), r.nodeAsItWas()
		e.OldObject, e.NewObject = r.objectAsItWas(), r.objectAsItWas()
		e.OldSelectorOwner, e.NewSelectorOwner = r.ownerAsItWas(), r.ownerAsItWas()
		e.OldNamespace, e.NewNamespace = r.namespaceAsItWas(), r.namespaceAsItWas()
		l.Last = append(l.Last, e)
	}
}

// resource returns the resource of an event from its number in the record. Kubernetes 1.36 had
// no TargetPod.
func (r *decoder) resource(n framework.EventResource) framework.EventResource {
	if r.header.Version <= lastVersion136 && n >= framework.TargetPod {
		n++
	}
	return n
}

// bit returns the bit of an action from that in the record. Kubernetes 1.36 had no
// UpdatePodScaleUp.
func (r *decoder) bit(n int) int {
	if scaleUp := bits.TrailingZeros32(uint32(framework.UpdatePodScaleUp)); r.header.Version <= lastVersion136 && n >= scaleUp && n < 31 {
		n++
	}
	return n
}

// actions returns a set of actions from that in the record, bit by bit.
func (r *decoder) actions(recorded framework.ActionType) (a framework.ActionType) {
	if recorded == framework.All {
		return framework.All
	}
	for n := range 32 {
		if recorded&(1<<n) != 0 {
			a |= 1 << r.bit(n)
		}
	}
	return a
}
