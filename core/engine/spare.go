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

// spare is the columns of a view that is not kept, a guest; when it leaves the
// next one has them.
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
		raw     [][]int64 // for whichever scorers need one
	}
}

// lend makes the view a guest, with spare columns; so does its static part
// where it shares none.
func (e *Engine) lend(v *view) {
	s := &spare{}
	if n := len(e.spares); n > 0 {
		s, e.spares = e.spares[n-1], e.spares[:n-1]
	}
	v.lent, e.guests[v.class.key] = s, v
	v.at, v.groups, v.causes = s.at, s.groups, s.causes
	if v.scattered() {
		v.final = append(s.final[:0], 0) // never nil, or the view would have groups
	}
	if p, q := v.static, &s.static; p.key == "" {
		p.first, p.verdict, p.final, p.tupleOf = q.first, q.verdict, q.final, q.tupleOf
		p.raw = make([][]int64, len(p.scorers))
		for k := range p.scorers {
			if n := len(q.raw); p.scorers[k].NormalizeScore != nil && n > 0 {
				p.raw[k], q.raw = q.raw[n-1], q.raw[:n-1]
			}
		}
	}
}

// takeBack sends a guest away.
func (e *Engine) takeBack(v *view) {
	s := v.lent
	s.at, s.groups, s.causes = v.at, v.groups, v.causes
	if v.scattered() {
		s.final = v.final
	}
	if p, q := v.static, &s.static; p.key == "" {
		q.first, q.verdict, q.final, q.tupleOf = p.first, p.verdict, p.final, p.tupleOf
		for _, column := range p.raw {
			if column != nil {
				q.raw = append(q.raw, column)
			}
		}
	}
	if e.guests[v.class.key] == v {
		delete(e.guests, v.class.key)
	}
	e.spares = append(e.spares, s)
}

// dismiss sends the guest of the last decision away.
func (e *Engine) dismiss() {
	if e.guest != nil {
		e.takeBack(e.guest)
		e.guest = nil
	}
}
