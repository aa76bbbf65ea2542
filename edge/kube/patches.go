package kube

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A patch that fails is tried again after a wait that doubles. That of a pod is given up
// after about eight minutes; by then the pod's next attempt, which writes the state of that
// time, is due. kube-scheduler tries four times within half a second.
const (
	statusTries   = 24                     // again, after the first try
	statusBackoff = 100 * time.Millisecond // before the second try
	statusWait    = 30 * time.Second       // at most, before any try
)

// statusPause is the time between two patches of one object that differ in words alone.
// The words of some plugins and extenders vary from one attempt to the next.
const statusPause = time.Second

// patches is a queue of status patches with at most one waiting patch for each object: a
// later one is merged into it. Patches of one object are sent one after the other. P is the
// type of the machine's effect that asks for the patch.
type patches[P any] struct {
	pool  *pool
	merge func(earlier, later P) P      // returns one patch with the effect of both
	send  func(context.Context, P) bool // sends a patch; false: it is to be tried again
	// rewords reports whether the later patch, after the earlier, may wait for statusPause:
	// it changes nothing but words or counts.
	rewords func(earlier, later P) bool
	// lasting is set if a patch that fails is never given up: nothing makes the machine ask
	// for it again.
	lasting bool

	mu   sync.Mutex
	open map[types.UID]*openPatch[P] // by the object's UID
}

// openPatch is the state of one object in patches: what waits and what was sent.
type openPatch[P any] struct {
	patch   *P     // to be sent; nil: none waits
	queued  bool   // a job of the pool or a timer will send it
	sending *P     // sent and not answered; nil: none is
	tries   int    // so far that failed, of patch or of one that was merged into it
	sent    *P     // what was sent less than statusPause ago; nil: nothing
	then    func() // to be called when sending is answered; nil: nobody waits
}

// newPatches returns an empty queue whose patches are sent by jobs of the pool.
func newPatches[P any](p *pool, merge func(earlier, later P) P, rewords func(earlier, later P) bool, send func(context.Context, P) bool) *patches[P] {
	return &patches[P]{pool: p, merge: merge, rewords: rewords, send: send, open: map[types.UID]*openPatch[P]{}}
}

// add queues a patch of the object with this UID, or merges it into the one that waits.
func (q *patches[P]) add(uid types.UID, patch P) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.open[uid]
	if s == nil {
		s = &openPatch[P]{}
		q.open[uid] = s
	}
	if s.patch != nil {
		patch = q.merge(*s.patch, patch)
	}
	s.patch = &patch
	q.enqueue(uid, s)
}

// pending returns the number of objects with a patch that waits or is not answered.
func (q *patches[P]) pending() int { return q.count(func(*P) bool { return true }) }

// count returns the number of objects with a patch that waits or is not answered and for
// which is reports true.
func (q *patches[P]) count(is func(*P) bool) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range q.open { // any order: a sum
		if s.patch != nil && is(s.patch) || s.sending != nil && is(s.sending) {
			n++
		}
	}
	return n
}

// enqueue submits a job that sends the object's waiting patch. It submits none if a job or
// timer of the object waits already, if a patch of it is being sent (next enqueues
// afterwards), or if the patch only rewords what was sent within statusPause (rest enqueues it
// then). It forgets the object if the pool is closed. The caller holds mu.
func (q *patches[P]) enqueue(uid types.UID, s *openPatch[P]) {
	if s.sent != nil && s.patch != nil && q.rewords(*s.sent, *s.patch) {
		return // rest enqueues it when statusPause is over
	}
	if !s.queued && s.sending == nil {
		s.queued = q.pool.submit(func(ctx context.Context) { q.next(ctx, uid) })
	}
	if !s.queued && s.sending == nil {
		delete(q.open, uid) // closed: nothing will be sent any more
	}
}

// cancel drops the object's waiting patch and calls the function then, which starts a binding
// of the pod, once no patch of the object is being sent: at once in most cases, else when the
// answer has come. If the patch that was being sent fails, it is not tried again.
func (q *patches[P]) cancel(uid types.UID, then func()) {
	q.mu.Lock()
	s := q.open[uid]
	if s != nil {
		s.patch = nil
		if s.sending != nil {
			s.then = then
			q.mu.Unlock()
			return
		}
	}
	q.mu.Unlock()
	then()
}

// next sends the object's waiting patch, if it was not cancelled, and waits for the answer. It
// queues the patch again if it is to be tried again, else a patch that came meanwhile. At the
// end it calls openPatch.then. It is the job that enqueue submits.
func (q *patches[P]) next(ctx context.Context, uid types.UID) {
	q.mu.Lock()
	s := q.open[uid]
	patch := s.patch
	s.patch, s.queued, s.sending = nil, false, patch
	q.mu.Unlock()

	done := patch == nil || q.send(ctx, *patch)

	q.mu.Lock()
	then := s.then
	s.then, s.sending = nil, nil
	if !done && then == nil && (q.lasting || s.tries < statusTries) {
		q.again(ctx, uid, s, *patch)
	} else {
		s.tries = 0
		if patch != nil {
			q.rest(uid, s, *patch)
		}
		q.goOn(uid, s)
	}
	q.mu.Unlock()
	if then != nil {
		then()
	}
}

// rest records for statusPause what was sent. Patches that only reword it wait until the
// pause is over. The caller holds mu.
func (q *patches[P]) rest(uid types.UID, s *openPatch[P], sent P) {
	if s.sent != nil {
		sent = q.merge(*s.sent, sent)
	}
	s.sent = &sent
	time.AfterFunc(statusPause, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if s.sent == &sent {
			s.sent = nil
			q.goOn(uid, s)
		}
	})
}

// goOn enqueues the object's waiting patch, or removes the object's entry if nothing is
// left to do or to remember. The caller holds mu.
func (q *patches[P]) goOn(uid types.UID, s *openPatch[P]) {
	switch {
	case s.patch != nil:
		q.enqueue(uid, s)
	case s.sent == nil && !s.queued && s.sending == nil && q.open[uid] == s:
		delete(q.open, uid)
	}
}

// again puts back a patch that failed, merged with a later one that came meanwhile, and
// enqueues it after a delay that doubles with each try, up to statusWait. The caller holds mu.
func (q *patches[P]) again(ctx context.Context, uid types.UID, s *openPatch[P], failed P) {
	if s.patch != nil {
		failed = q.merge(failed, *s.patch)
	}
	s.patch, s.queued = &failed, true
	wait := min(statusBackoff<<min(s.tries, statusTries), statusWait)
	s.tries++
	time.AfterFunc(wait, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		s.queued = false
		q.enqueue(uid, s)
	})
}
