package engine

// SetBudget bounds the rows that all views together may hold.
func (e *Engine) SetBudget(rows int) { e.cache.budget = rows }

// FixedRows is what a view counts for besides its rows.
const FixedRows = fixedRows

// SeenClasses is how many classes that came by once may be remembered.
const SeenClasses = seenClasses

// Kept is how many views that are not on trial, views on trial, bytes of partitions and
// classes that came by once are kept.
func (e *Engine) Kept() (views, trials, bytes, seen int) {
	_, bytes = e.cache.store.Len()
	return e.cache.promoted, len(e.cache.views) - e.cache.promoted, bytes, len(e.cache.seen)
}

// See notes that a class with that signature came by.
func (e *Engine) See(signature []byte) { e.cache.visit(e.classes.With(signature)) }

// WithKept is for how many views plugins keep something.
func (e *Engine) WithKept() int { return len(e.cache.withKept) }

// IsStale tells whether the request remembers another class than the pod is of.
func (e *Engine) IsStale(r *Request) bool {
	return !e.plain && string(e.classes.Keys(r.Profile).AppendSignature(nil, e.table, r.Pod)) != e.classOf(r).Signature
}
