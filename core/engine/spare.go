package engine

import "github.com/berth-scheduler/berth/core/framework"

// firstSight tells whether the class whose key is at hand comes by for the
// first time. Of such a class only that is remembered: it may never come
// back, and the next one can use its columns.
func (e *Engine) firstSight() bool {
	h := hash(string(e.keyBuf))
	if _, known := e.seen[h]; known {
		return false
	}
	if len(e.seen) >= seenClasses {
		clear(e.seen)
	}
	e.seen[h] = struct{}{}
	return true
}

// spare is the columns of a view that is not kept, lent to one after the
// other. What such a view answers is good until the next decision.
type spare struct {
	at     []standing
	final  []int64
	groups []group
	causes causes

	static struct {
		first   []int16
		verdict []framework.Verdict
		final   []int64
		tupleOf []int32
		raw     [][]int64
	}
}

// receive makes the view the guest, with the spare columns; so does its static
// part where it shares none.
func (e *Engine) receive(v *view) {
	s := &e.spare
	v.at, v.groups, v.causes = s.at, s.groups, s.causes
	if v.scattered() {
		v.final = s.final
	}
	if p, q := v.static, &s.static; p.key == "" {
		p.first, p.verdict, p.final, p.tupleOf, p.raw = q.first, q.verdict, q.final, q.tupleOf, q.raw
	}
	e.guest = v
}

// dismiss takes the columns back from the guest.
func (e *Engine) dismiss() {
	v, s := e.guest, &e.spare
	if v == nil {
		return
	}
	s.at, s.groups, s.causes = v.at, v.groups, v.causes
	if v.scattered() {
		s.final = v.final
	}
	if p, q := v.static, &s.static; p.key == "" {
		q.first, q.verdict, q.final, q.tupleOf = p.first, p.verdict, p.final, p.tupleOf
	}
	e.guest = nil
}
