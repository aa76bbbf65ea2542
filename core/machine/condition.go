package machine

import (
	"cmp"
	"container/list"
	"fmt"
	"slices"
	"time"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// conditionToWrite returns what to write so that the API says c of the pod: nil where
// it does, and was not asked to say anything else meanwhile. A watch that lags
// still shows what was there before the last write.
func conditionToWrite(ps *podState, c *object.Condition) *object.Condition {
	if *c == ps.entry.Pod.Scheduled && (ps.condition == nil || *ps.condition == *c) {
		return nil
	}
	ps.condition = c
	return c
}

// How long a condition stands before it is looked at whether it is true still, and the
// time between two such looks.
const (
	conditionAge   = time.Minute
	conditionPause = 200 * time.Millisecond
)

// conditions lists the PodScheduled conditions of unschedulable pods, the oldest first. A
// condition is true at the time of the last attempt; events that do not help the pod may
// change its reasons. So a condition that is conditionAge old is computed again without
// an attempt, at most one in each conditionPause.
type conditions struct {
	*step
	pods *pods
	// present returns the condition that an attempt for the pod would end with now, nil if
	// only an attempt can tell.
	present func(*object.Pod) *object.Condition

	order list.List // of *podState
	next  time.Time // none is looked at before
}

// clear forgets all conditions.
func (l *conditions) clear() {
	l.order.Init()
	l.next = time.Time{}
}

// track records that the pod's condition is true as of now.
func (l *conditions) track(ps *podState) {
	l.untrack(ps)
	if ps.entry.Place() == queue.Unschedulable {
		ps.statedAt, ps.statedNews = l.now, l.news
		ps.stated = l.order.PushBack(ps)
	}
}

// untrack removes the pod's condition from those to renew.
func (l *conditions) untrack(ps *podState) {
	if ps.stated != nil {
		l.order.Remove(ps.stated)
		ps.stated = nil
	}
}

// oldest returns the pod whose condition is to be renewed next, and when. It
// returns nil if nothing has happened since the oldest was true.
func (l *conditions) oldest() (ps *podState, due time.Time) {
	first := l.order.Front()
	if first == nil {
		return nil, due
	}
	if ps = first.Value.(*podState); ps.statedNews == l.news {
		return nil, due
	}
	if due = ps.statedAt.Add(conditionAge); due.Before(l.next) {
		due = l.next
	}
	return ps, due
}

// renew computes the oldest condition again if it is due, and emits a patch if
// it changed. It skips pods that are not unschedulable any more, since they are tried
// again.
func (l *conditions) renew() {
	for {
		ps, due := l.oldest()
		if ps == nil || due.After(l.now) {
			return
		}
		l.track(ps)
		if ps.stated == nil {
			continue
		}
		l.next = l.now.Add(conditionPause)
		if c := l.present(ps.entry.Pod); c != nil {
			if c = conditionToWrite(ps, c); c != nil {
				l.emit(PatchStatus{Pod: ps.entry.Pod, Condition: c})
			}
		}
		return
	}
}

// saved returns the conditions as a snapshot has them.
func (l *conditions) saved() map[*podState]*SavedStated {
	saved := map[*podState]*SavedStated{}
	for e := l.order.Front(); e != nil; e = e.Next() {
		ps := e.Value.(*podState)
		saved[ps] = &SavedStated{Nth: len(saved), Age: queue.Age(l.now.Sub(ps.statedAt)), Latest: ps.statedNews == l.news}
		if len(saved) == 1 && l.next.After(l.now) {
			saved[ps].Pause = l.next.Sub(l.now)
		}
	}
	return saved
}

// restore restores the conditions of the pods of a snapshot.
func (l *conditions) restore(now time.Time, pods []SavedPod) {
	saved := slices.DeleteFunc(slices.Clone(pods), func(s SavedPod) bool {
		return s.Stated == nil || l.pods.entry(s.UID) == nil
	})
	slices.SortFunc(saved, func(a, b SavedPod) int { return cmp.Compare(a.Stated.Nth, b.Stated.Nth) })
	for _, s := range saved {
		ps := l.pods.byUID[s.UID]
		ps.statedAt, ps.stated = s.Stated.Age.Time(now), l.order.PushBack(ps)
		if s.Stated.Latest {
			ps.statedNews = l.news
		}
		if s.Stated.Pause > 0 {
			l.next = now.Add(s.Stated.Pause)
		}
	}
}

// verify returns an error if a condition belongs to a pod that does not wait,
// or the list is out of order.
func (l *conditions) verify() error {
	states := make([]*podState, 0, l.order.Len())
	for e := l.order.Front(); e != nil; e = e.Next() {
		ps := e.Value.(*podState)
		if ps.stated != e || ps.entry == nil || l.pods.byUID[ps.pod.UID] != ps {
			return fmt.Errorf("the condition of pod %s is kept; it is the pod's own: %t, in the queue: %t", ps.pod.Key(), ps.stated == e, ps.entry != nil)
		}
		states = append(states, ps)
	}
	if !slices.IsSortedFunc(states, func(a, b *podState) int {
		return cmp.Or(a.statedAt.Compare(b.statedAt), cmp.Compare(a.statedNews, b.statedNews))
	}) {
		return fmt.Errorf("the oldest condition is not the first")
	}
	return nil
}
