package machine

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
)

func flying(e Effect) (types.UID, bool) {
	switch e := e.(type) {
	case Bind:
		return e.Pod.UID, true
	case BindByExtender:
		return e.Pod.UID, true
	case Write:
		return e.Pod.UID, true
	case ReadPod:
		return e.Pod.UID, true
	}
	return "", false
}

func asBind(e Effect) (Bind, bool) {
	if by, ok := e.(BindByExtender); ok {
		return Bind{Pod: by.Pod, Node: by.Node}, true
	}
	b, ok := e.(Bind)
	return b, ok
}

func asEffects(binds []Bind) (effects []Effect) {
	for _, b := range binds {
		effects = append(effects, b)
	}
	return effects
}

type fate int

// answer carries the i-th request out and tells the machine.
func (w *world) answer(i int, how fate) {
	w.Helper()
	r := w.requests[i]
	w.requests = slices.Delete(w.requests, i, i+1)
	switch e := r.(type) {
	case Bind:
		w.answerBind(e, how)
	case BindByExtender:
		w.answerBind(Bind{Pod: e.Pod, Node: e.Node}, how)
	case CallExtender:
		w.answerAsk(e, how)
	case Write:
		if how == fine {
			w.step(WriteReply{UID: e.Pod.UID, Call: e.Call})
		} else {
			w.step(WriteReply{UID: e.Pod.UID, Call: e.Call, Err: errFate})
		}
	case ReadPod:
		w.answerRead(e, how)
	case Evict:
		if how != fine {
			w.escaped[e.Victim.UID] = true
			w.step(EvictReply{Victim: e.Victim.UID, Preemptor: e.Preemptor.UID, Err: errFate})
			return
		}
		w.evicted[e.Victim.UID] = true
		w.change(e.Victim, func(p *object.Pod) { p.Terminating = true })
		w.step(EvictReply{Victim: e.Victim.UID, Preemptor: e.Preemptor.UID})
	case PatchStatus:
		w.change(e.Pod, func(p *object.Pod) {
			if e.Condition != nil {
				p.Scheduled = *e.Condition
			}
			if e.Nominated != nil {
				p.NominatedNode = *e.Nominated
			}
		})
	}
}

func (w *world) answerBind(b Bind, how fate) {
	w.Helper()
	uid := b.Pod.UID
	switch how {
	case lost:
		w.bind(b)
		w.step(BindReply{UID: uid, Result: BindUnknown, Err: errFate})
		return
	case vanished:
		w.step(BindReply{UID: uid, Result: BindUnknown, Err: errFate})
		return
	case delayed:
		w.late = append(w.late, b)
		w.step(BindReply{UID: uid, Result: BindUnknown, Err: errFate})
		return
	case refused:
		if !slices.ContainsFunc(w.late, func(l Bind) bool { return l.Pod.UID == uid }) {
			break
		}
		fallthrough
	case fine:
		p := w.pods[b.Pod.Key()]
		if w.bind(b) || p != nil && p.UID == uid && p.NodeName == b.Node {
			w.step(BindReply{UID: uid, Result: BindDone})
			return
		}
	}
	w.step(BindReply{UID: uid, Result: BindRefused, Err: errFate})
}

// answerRead: a binding does not stay delayed for as long as the machine asks.
func (w *world) answerRead(e ReadPod, how fate) {
	w.Helper()
	uid := e.Pod.UID
	if w.reads[uid]++; w.reads[uid] >= maxReads/2 {
		w.late = slices.DeleteFunc(w.late, func(b Bind) bool { return b.Pod.UID == uid })
	}
	if how != fine {
		w.step(ReadReply{UID: uid, Err: errFate})
		return
	}
	w.step(ReadReply{UID: uid, Pod: w.pods[e.Pod.Key()]})
}

// arrive lets a delayed binding happen.
func (w *world) arrive(i int) {
	w.bind(w.late[i])
	w.late = slices.Delete(w.late, i, i+1)
}

// cycle lets the machine decide, in this mood.
func (w *world) cycle(point string, m mood) {
	w.Helper()
	if point != "" {
		w.moody.moods[point] = m
	}
	w.step(ScheduleOne{})
}
