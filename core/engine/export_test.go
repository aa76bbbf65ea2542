package engine

// SetBudget bounds the rows that all views together may hold.
func (e *Engine) SetBudget(rows int) { e.budget = rows }

// FixedRows is what a view counts for besides its rows.
const FixedRows = fixedRows
