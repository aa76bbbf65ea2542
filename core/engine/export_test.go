package engine

// SetBudget bounds the rows that all views together may hold.
func (e *Engine) SetBudget(rows int) { e.budget = rows }

// FixedRows is what a view counts for besides its rows.
const FixedRows = fixedRows

// SeenClasses is how many classes that came by once may be remembered.
const SeenClasses = seenClasses

// Kept is how many views, static parts and classes that came by once are kept.
func (e *Engine) Kept() (views, statics, seen int) {
	return len(e.views), len(e.statics), len(e.seen)
}

// See notes that a class with that key came by.
func (e *Engine) See(key []byte) {
	e.keyBuf = append(e.keyBuf[:0], key...)
	e.firstSight()
}

// Keeping is for how many views, kept or not, plugins keep something.
func (e *Engine) Keeping() int { return len(e.keeping) }
