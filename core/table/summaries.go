package table

import "iter"

// Summary is what preemption reads of each pod on many rows. The summaries of a row lie
// side by side in memory, where the pods do not.
type Summary struct {
	Priority         int32
	Terms            int32 // number of its affinity terms, of all four kinds
	MilliCPU, Memory int64 // MilliCPU and Memory (bytes) are those of Demand.Usage
}

// summaryOf returns the summary of a placed pod, for preemption. The pod's affinity terms
// must have been set.
func summaryOf(pl *Placed) Summary {
	p := pl.Pod
	return Summary{p.Priority, int32(len(pl.terms)), p.Demand.Usage.MilliCPU, p.Demand.Usage.Memory}
}

// Summaries returns the summaries of the row's pods, in the order of Pods. The slice
// belongs to the table and is valid until the next change.
func (t *Table) Summaries(r Row) []Summary { return t.summaries[r] }

// CountLower returns how many pods on the row have a priority lower than priority.
func (t *Table) CountLower(r Row, priority int32) (n int) {
	for i := range t.summaries[r] {
		if t.summaries[r][i].Priority < priority {
			n++
		}
	}
	return n
}

// Lower returns the pods on the row that have a priority lower than priority, in the order
// of Pods.
func (t *Table) Lower(r Row, priority int32) iter.Seq[*Placed] {
	return func(yield func(*Placed) bool) {
		for i := range t.summaries[r] {
			if t.summaries[r][i].Priority < priority && !yield(t.pods[r][i]) {
				return
			}
		}
	}
}
