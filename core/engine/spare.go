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

// spare is the columns of views that are not kept, lent to one after the
// other. What a lent view answers is good until the next decision.
type spare struct {
	view, static struct {
		first   []int16
		verdict []framework.Verdict
		final   []int64
	}
	tally map[blockKey]int
}

// lend gives the view columns, and its static part too where it shares none.
func (s *spare) lend(v *view) {
	if s.tally == nil {
		s.tally = map[blockKey]int{}
	}
	clear(s.tally)
	v.first, v.verdict, v.final, v.tally = s.view.first, s.view.verdict, s.view.final, s.tally
	if p := v.static; p.key == "" {
		p.first, p.verdict, p.final = s.static.first, s.static.verdict, s.static.final
	}
	v.lent = s
}

// keep takes the columns back, as they may have grown.
func (s *spare) keep(v *view) {
	s.view.first, s.view.verdict, s.view.final = v.first, v.verdict, v.final
	if p := v.static; p.key == "" {
		s.static.first, s.static.verdict, s.static.final = p.first, p.verdict, p.final
	}
}
