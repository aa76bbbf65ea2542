package loop

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/recovered"
)

// What panics is tried again after firstPause, then after twice as long each time.
const (
	firstPause  = time.Second
	lastPause   = 10 * time.Second // at most, for cycles and ticks: all pods wait
	longPause   = time.Minute      // at most, for an event or effect about one object
	reportPause = time.Minute      // between two log messages about panics at one place
)

// pause is how long something that has panicked is not tried again. The zero pause is over.
type pause struct {
	wait  time.Duration // the length of the pause
	until time.Time
}

// after ends the pause if ok: the last try succeeded. Else it begins a pause at now that is
// twice as long as the one before: from firstPause to at most last.
func (p *pause) after(ok bool, now time.Time, last time.Duration) {
	if ok {
		*p = pause{}
		return
	}
	p.wait = min(max(2*p.wait, firstPause), last)
	p.until = now.Add(p.wait)
}

// lost holds the events and effects that panicked and are to be tried again, at most one
// for each subject. While an event waits, a newer one of its kind about the same object
// replaces it, so that an object whose events always panic costs one step a minute.
type lost struct {
	waiting map[subject]*again
	rest    time.Time // nothing is tried before this, as the last try panicked
}

// subject is what an event or an effect is about: an object, by kind and name, or an effect
// and its outcome, by type and id.
type subject struct {
	of   string               // such as "pod", or the Go type of an effect or a reply
	name types.NamespacedName // of an object
	id   string               // of an effect or reply: the pod's UID and the call, say
}

// again is an event or effect that waits for another try.
type again struct {
	kind  string           // the Go type of the event or effect
	try   func() (ok bool) // false: it panicked again
	pause pause
}

// next returns when the first retry is due; false if nothing waits.
func (l *lost) next() (due time.Time, any bool) {
	for _, a := range l.waiting { // any order: takes the earliest
		if !any || a.pause.until.Before(due) {
			due, any = a.pause.until, true
		}
	}
	if due.Before(l.rest) {
		due = l.rest
	}
	return due, any
}

// give lets the machine handle an event from the inbox. If the step panics, the event waits
// to be given again. If an event of the same type and subject waits already, e takes its
// place and is not handled now. If one of another type waits for the subject, e is handled
// now and the other one is dropped.
func (l *Loop) give(e machine.Event) {
	if len(l.lost.waiting) == 0 {
		if !l.step(e) {
			l.lose(subjectOf(e), e, &again{})
		}
		return
	}
	about := subjectOf(e)
	before := l.lost.waiting[about]
	switch {
	case before != nil && before.kind == fmt.Sprintf("%T", e):
		before.try = l.trying(e)
	case l.step(e):
		delete(l.lost.waiting, about)
	case before != nil:
		l.lose(about, e, before)
	default:
		l.lose(about, e, &again{})
	}
}

// errLostRead is the outcome of a read whose reply made a step panic. It makes the machine
// read the pod again.
var errLostRead = errors.New("a read of the pod was lost in a panic of the scheduler")

// trying returns a function that gives the machine the event again and returns false if the
// step panics. In place of a ReadReply, which would be outdated, it gives one with an error,
// so that the machine reads the pod again.
func (l *Loop) trying(e machine.Event) func() bool {
	if read, ok := e.(machine.ReadReply); ok {
		e = machine.ReadReply{UID: read.UID, Err: errLostRead}
	}
	return func() bool { return l.step(e) }
}

// lose schedules an event about the subject, whose step panicked, to be given to the machine
// again. a is what waited for the subject before, or is empty: the pause is twice the last
// one of a, within firstPause and longPause.
func (l *Loop) lose(about subject, e machine.Event, a *again) {
	a.kind, a.try = fmt.Sprintf("%T", e), l.trying(e)
	a.pause.after(false, time.Now(), longPause)
	l.lost.waiting[about] = a
}

// loseEffect schedules an effect that panicked to be tried again, if the machine waits for
// its outcome. Other effects, such as Events and status patches, are dropped.
func (l *Loop) loseEffect(e machine.Effect) {
	kind, id := fmt.Sprintf("%T", e), ""
	switch e := e.(type) {
	case machine.Bind:
		id = string(e.Pod.UID)
	case machine.BindByExtender:
		id = string(e.Pod.UID)
	case machine.RunPlugins:
		if e.Point == "PostBind" {
			return
		}
		id = string(e.Pod.UID) + " " + e.Point
	case machine.Write:
		id = fmt.Sprintf("%s %d", e.Pod.UID, e.Call)
	case machine.ReadPod:
		id = string(e.Pod.UID)
	case machine.CallExtender:
		id = fmt.Sprintf("%s %d", e.Pod.UID, e.Call)
	case machine.Evict:
		id = string(e.Victim.UID)
	default:
		return
	}
	about := subject{of: kind, id: id}
	a := l.lost.waiting[about]
	if a == nil {
		a = &again{kind: kind}
	}
	a.try = func() bool { return l.do(e) }
	a.pause.after(false, time.Now(), longPause)
	l.lost.waiting[about] = a
}

// giveAgain tries the events and effects whose pause is over at now, the longest overdue
// first. It stops at the first that panics, and nothing is tried for firstPause then.
func (l *Loop) giveAgain(now time.Time) {
	if len(l.lost.waiting) == 0 || now.Before(l.lost.rest) {
		return
	}
	due := slices.DeleteFunc(slices.Collect(maps.Keys(l.lost.waiting)), func(s subject) bool {
		return l.lost.waiting[s].pause.until.After(now)
	})
	slices.SortFunc(due, func(a, b subject) int {
		return l.lost.waiting[a].pause.until.Compare(l.lost.waiting[b].pause.until)
	})
	for _, s := range due {
		a := l.lost.waiting[s]
		if !a.try() {
			a.pause.after(false, now, longPause)
			l.lost.rest = now.Add(firstPause)
			return
		}
		delete(l.lost.waiting, s)
	}
}

// subjectOf returns what the event is about: the object, or the effect whose outcome it is.
func subjectOf(e machine.Event) subject {
	named := func(of, namespace, name string) subject {
		return subject{of: of, name: types.NamespacedName{Namespace: namespace, Name: name}}
	}
	switch e := e.(type) {
	case machine.NodeSet:
		return named("node", "", e.Node.Name)
	case machine.NodeGone:
		return named("node", "", e.Name)
	case machine.PodSet:
		return named("pod", e.Pod.Namespace, e.Pod.Name)
	case machine.PodGone:
		return named("pod", e.Namespace, e.Name)
	case machine.PodDecodeFailed:
		return named("pod", e.Namespace, e.Name)
	case machine.BudgetSet:
		return named("poddisruptionbudget", e.Budget.Namespace, e.Budget.Name)
	case machine.BudgetGone:
		return named("poddisruptionbudget", e.Namespace, e.Name)
	case machine.SelectorOwnerSet:
		return named(e.Owner.Kind.String(), e.Owner.Namespace, e.Owner.Name)
	case machine.SelectorOwnerGone:
		return named(e.Kind.String(), e.Namespace, e.Name)
	case machine.NamespaceSet:
		return named("namespace", "", e.Namespace.Name)
	case machine.NamespaceGone:
		return named("namespace", "", e.Name)
	case machine.ObjectSet:
		m := e.Object.Head()
		return named(objectKind(m.Kind), m.Namespace, m.Name)
	case machine.ObjectGone:
		return named(objectKind(e.Kind), e.Namespace, e.Name)
	case machine.KindUnlisted:
		return subject{of: "listing of " + objectKind(e.Kind)}
	case machine.KindListed:
		return subject{of: "listing of " + objectKind(e.Kind)}
	}
	return outcomeOf(e)
}

// objectKind returns the name of an object's kind by which lost events about one object are
// recognized (subject.of).
func objectKind(k object.Kind) string { return fmt.Sprintf("object %d", k) }

// outcomeOf returns the subject of an event that is not about an object: its type and, for a
// reply, the pod and the call that it answers.
func outcomeOf(e machine.Event) subject {
	s := subject{of: fmt.Sprintf("%T", e)}
	switch e := e.(type) {
	case machine.BindReply:
		s.id = string(e.UID)
	case machine.WriteReply:
		s.id = fmt.Sprintf("%s %d", e.UID, e.Call)
	case machine.ReadReply:
		s.id = string(e.UID)
	case machine.EvictReply:
		s.id = string(e.Victim)
	case machine.ExtenderReply:
		s.id = fmt.Sprintf("%s %d", e.UID, e.Call)
	case machine.PreBindReply:
		s.id = string(e.UID)
	case machine.PreBindBegins:
		s.id = string(e.UID)
	case machine.PostFilterReply:
		s.id = fmt.Sprintf("%s %d", e.UID, e.Call)
	case machine.PermitReply:
		s.id = string(e.UID) + " " + e.Plugin
	case machine.NominationSet:
		s.id = string(e.UID)
	}
	return s
}

// report is when panics at one place in the code were last logged.
type report struct {
	last  time.Time
	quiet int // panics since then, which were not logged
}

// contain must be deferred. It recovers a panic, logs it, and calls repair. A panic at one
// place in the code is logged once a minute at most. what names the step. Without a panic
// contain does nothing.
func (l *Loop) contain(what string, repair func()) {
	r := recover()
	if r == nil {
		return
	}
	p, now := recovered.From("", r), time.Now()
	before, known := l.reports[p.Site]
	if known && now.Sub(before.last) < reportPause {
		before.quiet++
		l.reports[p.Site] = before
	} else {
		l.reports[p.Site] = report{last: now}
		l.options.Logger.Error(p, "A step of the scheduler panicked, it will be tried again",
			"step", what, "panicsSinceLastReport", before.quiet, "stack", p.WithStack().Stack)
	}
	repair()
}
