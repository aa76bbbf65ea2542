package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Side is one configuration's day in numbers. Waits are in seconds, from when a pod
// was first seen to when it got its node.
type Side struct {
	Name        string  `json:"name"`
	Arrived     int     `json:"arrived"` // pods without a node
	Placed      int     `json:"placed"`
	Pending     int     `json:"pending"` // at the end
	Left        int     `json:"left"`    // deleted before they had a node
	Decisions   int     `json:"decisions"`
	Preemptions int     `json:"preemptions"`
	WaitP50     float64 `json:"waitP50"`
	WaitP90     float64 `json:"waitP90"`
	WaitP99     float64 `json:"waitP99"`
	WaitMax     float64 `json:"waitMax"`
	// Means over time, between 0 and 1.
	CPU      float64 `json:"cpu"`
	Memory   float64 `json:"memory"`
	Stranded float64 `json:"stranded"`
	// Empty and EmptyAtEnd count nodes without pods, but for those of DaemonSets and static
	// ones: the mean over time, and at the end.
	Empty      float64  `json:"empty"`
	EmptyAtEnd int      `json:"emptyAtEnd"`
	Samples    []Sample `json:"samples"`
}

// SideOf sums a day up.
func SideOf(name string, d *Day) Side {
	s := Side{Name: name, Decisions: d.Decisions, Preemptions: d.Preemptions, EmptyAtEnd: len(d.Empty), Samples: append([]Sample{}, d.Samples...)}
	var waits []time.Duration
	for _, p := range d.Pods { // any order: counts, and sorted below
		switch {
		case p.Given:
			continue
		case p.Node != "":
			s.Placed++
			waits = append(waits, p.Placed.Sub(p.Arrived))
		case p.Gone:
			s.Left++
		default:
			s.Pending++
		}
		s.Arrived++
	}
	slices.Sort(waits)
	at := func(share float64) float64 {
		if len(waits) == 0 {
			return 0
		}
		return waits[min(len(waits)-1, int(share*float64(len(waits))))].Seconds()
	}
	s.WaitP50, s.WaitP90, s.WaitP99, s.WaitMax = at(0.5), at(0.9), at(0.99), at(1)
	for _, x := range d.Samples {
		n := float64(len(d.Samples))
		s.CPU, s.Memory, s.Stranded = s.CPU+x.CPU/n, s.Memory+x.Memory/n, s.Stranded+x.Stranded/n
		s.Empty += float64(x.Empty) / n
	}
	return s
}

// Move is a pod that went elsewhere. A or B is "" where it got no node.
type Move struct {
	Pod string `json:"pod"`
	A   string `json:"a"`
	B   string `json:"b"`
}

// Comparison is one day under two configurations.
type Comparison struct {
	// Notes say what makes the sides hard to compare, such as pods that no profile of one
	// serves.
	Notes []string `json:"notes,omitempty"`

	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	A    Side      `json:"a"`
	B    Side      `json:"b"`
	Same int       `json:"same"` // pods with the same first node under both
	// Elsewhere have another node under B than under A, OnlyA and OnlyB have one
	// under one of them alone.
	Elsewhere []Move `json:"elsewhere"`
	OnlyA     []Move `json:"onlyA"`
	OnlyB     []Move `json:"onlyB"`
	// EvictedA and EvictedB were preempted under one of them alone.
	EvictedA []string `json:"evictedA"`
	EvictedB []string `json:"evictedB"`
	// EmptyA and EmptyB are the nodes that are empty at the end under one of them alone.
	EmptyA []string `json:"emptyA"`
	EmptyB []string `json:"emptyB"`
	// Workloads are those that pods without a node belong to, the worst under B first.
	Workloads []Workload `json:"workloads"`
}

// Compare compares two days of one record, on which pods of the same schedulers were decided on.
func Compare(nameA, nameB string, a, b *Day) *Comparison {
	c := &Comparison{From: a.From, To: a.To, A: SideOf(nameA, a), B: SideOf(nameB, b),
		Elsewhere: []Move{}, OnlyA: []Move{}, OnlyB: []Move{}, EvictedA: []string{}, EvictedB: []string{}}
	for uid, p := range a.Pods { // any order: sorted below
		q := b.Pods[uid]
		if q == nil || p.Given {
			continue
		}
		m := Move{p.Key, p.Node, q.Node}
		switch {
		case p.Node == q.Node && p.Node != "":
			c.Same++
		case p.Node == q.Node:
		case q.Node == "":
			c.OnlyA = append(c.OnlyA, m)
		case p.Node == "":
			c.OnlyB = append(c.OnlyB, m)
		default:
			c.Elsewhere = append(c.Elsewhere, m)
		}
		if p.Evicted && !q.Evicted {
			c.EvictedA = append(c.EvictedA, p.Key)
		}
		if q.Evicted && !p.Evicted {
			c.EvictedB = append(c.EvictedB, p.Key)
		}
	}
	for _, list := range [][]Move{c.Elsewhere, c.OnlyA, c.OnlyB} {
		slices.SortFunc(list, func(x, y Move) int { return cmp.Compare(x.Pod, y.Pod) })
	}
	slices.Sort(c.EvictedA)
	slices.Sort(c.EvictedB)
	c.EmptyA, c.EmptyB = without(a.Empty, b.Empty), without(b.Empty, a.Empty)
	c.Workloads = compareWorkloads(a, b)
	c.Notes = append(a.unserved("A"), b.unserved("B")...)
	return c
}

// unserved says of which schedulers no profile of the configuration serves the pods.
func (d *Day) unserved(configuration string) (notes []string) {
	for _, name := range slices.Sorted(maps.Keys(d.Unserved)) {
		notes = append(notes, fmt.Sprintf("no profile of %s serves %s: %s without a node", configuration, name, stay(d.Unserved[name])))
	}
	return notes
}

func stay(pods int) string {
	if pods == 1 {
		return "1 pod stays"
	}
	return fmt.Sprintf("%d pods stay", pods)
}

// without returns the names that are not among the others. Both are sorted.
func without(names, others []string) []string {
	return slices.DeleteFunc(append([]string{}, names...), func(name string) bool {
		_, is := slices.BinarySearch(others, name)
		return is
	})
}

// Against counts the pods whose first node under the day's configuration is the one
// that the record has, and lists the others.
func (d *Day) Against() (same int, elsewhere []Move) {
	elsewhere = []Move{}         // for JSON
	for uid, p := range d.Pods { // any order: sorted below
		was := d.Recorded[uid]
		switch {
		case p.Given || was == "" && p.Node == "":
		case was == p.Node:
			same++
		default:
			elsewhere = append(elsewhere, Move{p.Key, was, p.Node})
		}
	}
	slices.SortFunc(elsewhere, func(x, y Move) int { return cmp.Compare(x.Pod, y.Pod) })
	return same, elsewhere
}
