package preempt

import (
	"slices"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// criteriaBounds computes, for one row, the best criteria that a plan there can have, from
// the pod's shortfall of each resource and what each pod would free. Filters may require
// more victims, never fewer.
type criteriaBounds struct {
	shortfall []int64       // by resource: what the pod lacks on the row
	frees     []int64       // scratch: what one pod frees, by resource
	pods      []*object.Pod // the pods on the row that may go
	top       []int64       // scratch of least
	left      []int64       // scratch: shortfall once some pods are gone
}

// of returns the best criteria that a plan on the row can have. It returns false if no pod there
// may be preempted, or if the pod at hand lacks resources even without all that may be.
func (b *criteriaBounds) of(c *call, row table.Row, budgets []*object.Budget) (found criteria, ok bool) {
	b.shortfall = c.Filters.Shortfall(row, b.shortfall[:0])
	b.pods = appendLowerPods(b.pods[:0], c, row)
	for _, n := range c.Nominations.PodsForNode(c.Table.Name(row)) {
		b.keep(c, n)
	}
	return b.best(c, budgets)
}

// keep adds to the shortfall what n, a pod nominated to the row, uses, since that must stay free.
// It does nothing if n has a lower priority than the pod at hand, or is that pod.
func (b *criteriaBounds) keep(c *call, n *object.Pod) {
	if n.UID == c.Pod.UID || n.Priority < c.Pod.Priority {
		return
	}
	b.frees = c.Filters.Frees(n, b.frees[:0])
	for d := range b.shortfall {
		b.shortfall[d] = resource.Add(b.shortfall[d], b.frees[d])
	}
}

// best returns the best criteria that a plan on the row can have, by sums over b.pods, which it
// sorts. It returns false if the pod does not fit even without all of them, or if there are none.
// Each criterion holds for plans that are as good in the criteria before it.
func (b *criteriaBounds) best(c *call, budgets []*object.Budget) (found criteria, ok bool) {
	pods := b.pods
	slices.SortFunc(pods, byImportance(c.Now))
	guarded, others := []*object.Pod(nil), pods
	if len(budgets) > 0 {
		guarded, others = splitByPDBViolation(pods, budgets)
	}
	if len(guarded) > 0 {
		least, enough := b.least(c, guarded, b.shortfallWithout(c, b.shortfall, others))
		switch {
		case !enough:
			return criteria{}, false
		case least == 0 && len(others) > 0:
			pods = others // no other need go
		default:
			found.numPDBViolations = max(1, least)
		}
	}
	level, left := b.level(c, pods)
	if level == nil {
		return criteria{}, false
	}
	victims, atLevel, first := b.fewest(c, pods, level, left)
	found.victims = victims
	found.highest = level[0].Priority
	found.weight = int64(atLevel) * weight(found.highest)
	for _, p := range pods[len(pods)-(victims-atLevel):] {
		found.weight += weight(p.Priority)
	}
	found.since = level[first].Started
	return found, true
}

// fewest returns lower bounds: how many of pods must go, and how many of level, the pods of the
// highest priority of which one must go. left is the shortfall without the pods below level.
// first is the index in level of the most important victim, at best.
func (b *criteriaBounds) fewest(c *call, pods, level []*object.Pod, left []int64) (victims, atLevel, first int) {
	atLevel, _ = b.least(c, level, left)
	atLevel = max(1, atLevel)
	victims, _ = b.least(c, pods, b.shortfall)
	if victims = max(victims, atLevel); victims == 1 {
		if alone := b.lastAlone(c, level); alone >= 0 {
			return 1, 1, alone
		}
		victims = 2
		if lowest := pods[len(pods)-1].Priority; lowest == level[0].Priority {
			atLevel = 2
		}
	}
	return victims, atLevel, len(level) - atLevel
}

// lastAlone returns the index of the last of the pods that frees enough, evicted by
// itself, for the pod at hand to fit; -1 if none does.
func (b *criteriaBounds) lastAlone(c *call, pods []*object.Pod) int {
	for i, p := range slices.Backward(pods) {
		b.frees = c.Filters.Frees(p, b.frees[:0])
		enough := true
		for d, short := range b.shortfall {
			enough = enough && b.frees[d] >= short
		}
		if enough {
			return i
		}
	}
	return -1
}

// level finds the lowest priority such that evicting all pods up to it covers the
// shortfall. It returns the pods of that priority, and the shortfall without the pods below
// it; nil if evicting all does not. pods are sorted by descending priority.
func (b *criteriaBounds) level(c *call, pods []*object.Pod) (level []*object.Pod, left []int64) {
	left = append(b.left[:0], b.shortfall...)
	b.left = left
	for to := len(pods); to > 0; {
		from := to - 1
		for from > 0 && pods[from-1].Priority == pods[from].Priority {
			from--
		}
		level = pods[from:to]
		if _, enough := b.least(c, level, left); enough {
			return level, left
		}
		for _, p := range level {
			b.subtractFrees(c, left, p)
		}
		to = from
	}
	return nil, nil
}

// shortfallWithout returns lack less what the pods free. The result is scratch memory, which level
// overwrites.
func (b *criteriaBounds) shortfallWithout(c *call, lack []int64, pods []*object.Pod) []int64 {
	left := append(b.left[:0], lack...)
	b.left = left
	for _, p := range pods {
		b.subtractFrees(c, left, p)
	}
	return left
}

// subtractFrees subtracts from left (what the pod at hand still lacks, by resource) what
// evicting p frees.
func (b *criteriaBounds) subtractFrees(c *call, left []int64, p *object.Pod) {
	b.frees = c.Filters.Frees(p, b.frees[:0])
	for d := range left {
		left[d] = resource.Sub(left[d], b.frees[d])
	}
}

// least returns how many of the pods have to be evicted at least to free lack (by
// resource): the most that any one resource requires, by itself. It returns false if
// evicting all of them does not free enough.
func (b *criteriaBounds) least(c *call, pods []*object.Pod, lack []int64) (least int, enough bool) {
	for d, short := range lack {
		if short <= 0 {
			continue
		}
		b.top = b.top[:0]
		for _, p := range pods {
			b.frees = c.Filters.Frees(p, b.frees[:0])
			b.top = append(b.top, b.frees[d])
		}
		slices.Sort(b.top)
		n := 0
		for ; short > 0; n++ {
			if n == len(b.top) {
				return len(pods), false
			}
			short = resource.Sub(short, b.top[len(b.top)-1-n])
		}
		least = max(least, n)
	}
	return least, true
}
