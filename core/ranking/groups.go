package ranking

import (
	"slices"

	"github.com/berth-scheduler/berth/core/table"
)

// Group is the feasible rows whose values agree.
type Group struct {
	// Rows is how many they are; it may be 0.
	Rows int
	// Fits and Bonus are set by the caller of Pick: whether the rows may be chosen, and
	// what is added to the score of each.
	Fits  bool
	Bonus int64

	key     groupKey
	top     int32   // the highest score that some row has; -1: there are no rows
	ties    int32   // how many rows have it
	byScore []int32 // how many rows have the score; nil: the index is brief

	// lists holds, by score from lowest on, at least the rows that have the score,
	// and some that had it before; listed counts them all.
	lists     [][]table.Row
	listed    int
	lowest    int32
	unwritten bool // the lists were started, and the rows are not in them yet
}

// groupKey holds a group's values: the shared ones by the id of their
// combination, and its own.
type groupKey struct {
	shared int32
	own    values
}

// none stands for no group; unlisted is above any score.
const (
	none     = -1
	unlisted = maxScore
)

// Groups returns the groups, where the index is Grouped. They stay in place until the
// next Update.
func (x *Index) Groups() []Group { return x.groups }

// Own returns the group's k-th own value.
func (g *Group) Own(k int) int64 { return g.key.own[k] }

// sharedGroups returns the groups of rows, where shared values alone tell rows apart.
func (s *Shape) sharedGroups() []int32 {
	if s.Shared == nil {
		return nil
	}
	return s.Shared.of
}

// addCombinations adds a group for each new combination of shared values. It serves
// indexes without own values.
func (x *Index) addCombinations() {
	for id := len(x.groups); id < len(x.shape.Shared.list); id++ {
		x.addGroup(groupKey{shared: int32(id)})
	}
}

func (x *Index) addGroup(key groupKey) int32 {
	n := len(x.groups)
	if n == cap(x.groups) {
		x.groups = append(x.groups, Group{})
	}
	x.groups = x.groups[:n+1]
	g := &x.groups[n] // one that was there before Vacate: its room is used again
	*g = Group{key: key, byScore: g.byScore[:0], top: -1, lowest: unlisted}
	if !x.shape.Brief {
		g.byScore = extend(g.byScore, int(x.shape.Highest)+1)
	}
	return int32(n)
}

// groupFor finds or makes the group for the row's values; none where there are too
// many groups.
func (x *Index) groupFor(r table.Row, was State) int32 {
	shared := x.shape.Shared.of[r]
	if x.shape.Own == 0 {
		return shared
	}
	if was.feasible() && int(was>>scoreBits) < len(x.groups) && x.agrees(r, shared, &x.groups[was>>scoreBits].key) {
		return int32(was >> scoreBits)
	}
	hash := mix(0, uint64(shared))
	for _, column := range x.own {
		hash = mix(hash, uint64(column[r]))
	}
	id, known := x.byKey.find(hash, func(id int32) bool { return x.agrees(r, shared, &x.groups[id].key) })
	if known {
		return id
	}
	if len(x.groups) >= maxGroups(len(x.states)) {
		return none
	}
	key := groupKey{shared: shared}
	for k, column := range x.own {
		key.own[k] = column[r]
	}
	id = x.addGroup(key)
	x.byKey.add(id, hash, x.hashOfGroup)
	return id
}

// hashOfGroup returns the hash of what tells the group's rows from others.
func (x *Index) hashOfGroup(id int32) uint64 {
	key := &x.groups[id].key
	hash := mix(0, uint64(key.shared))
	for _, value := range key.own[:x.shape.Own] {
		hash = mix(hash, uint64(value))
	}
	return hash
}

func (x *Index) agrees(r table.Row, shared int32, key *groupKey) bool {
	if shared != key.shared {
		return false
	}
	for k, column := range x.own {
		if column[r] != key.own[k] {
			return false
		}
	}
	return true
}

// remove takes a row with the score off the counts. It returns false if the highest score
// of the rest is unknown then.
func (g *Group) remove(score int32) bool {
	g.Rows--
	brief := len(g.byScore) == 0
	if !brief {
		g.byScore[score]--
	}
	if score < g.top {
		return true
	}
	if g.ties--; g.ties > 0 {
		return true
	}
	if g.top = -1; brief {
		return g.Rows == 0
	}
	g.findTop(score)
	return true
}

// findTop finds the highest score that some row has, and how many have it. It searches
// downward from the given score.
func (g *Group) findTop(score int32) {
	for g.top, g.ties = score, 0; g.top >= 0; g.top-- {
		if g.ties = g.byScore[g.top]; g.ties > 0 {
			return
		}
	}
}

func (x *Index) addRow(id, score int32, r table.Row) {
	g := &x.groups[id]
	g.Rows++
	if !x.shape.Brief {
		g.byScore[score]++
	}
	if score > g.top {
		g.top, g.ties = score, 0
	}
	if score == g.top {
		g.ties++
	}
	if score >= g.lowest {
		x.addToList(id, score, r)
	}
}

// eachBest calls f with the rows of all groups whose highest total is best,
// perhaps with some more than once.
func (x *Index) eachBest(best int64, f func(table.Row)) {
	if x.shape.Brief {
		x.walkBest(best, f)
		return
	}
	missing := false
	for id := range x.groups {
		if g := &x.groups[id]; g.hasBest(best) && g.top < g.lowest {
			g.startLists()
			missing = true
		}
	}
	if missing {
		x.writeLists()
	}
	for id := range x.groups {
		g := &x.groups[id]
		if !g.hasBest(best) {
			continue
		}
		g.trimList(g.top-g.lowest, stateOf(int32(id), g.top), x.states)
		for _, r := range g.lists[g.top-g.lowest] {
			f(r)
		}
	}
}

// trimList removes from the i-th list the rows whose state is no longer at.
func (g *Group) trimList(i int32, at State, states []State) {
	list := g.lists[i]
	g.lists[i] = slices.DeleteFunc(list, func(r table.Row) bool { return states[r] != at })
	g.listed -= len(list) - len(g.lists[i])
}

// walkBest calls f with each row whose total is best, in one walk over all rows. It
// serves brief indexes, which keep no lists.
func (x *Index) walkBest(best int64, f func(table.Row)) {
	for r, s := range x.states {
		if s.feasible() {
			if g := &x.groups[s>>scoreBits]; s.score() == g.top && g.hasBest(best) {
				f(table.Row(r))
			}
		}
	}
}

func (g *Group) hasBest(best int64) bool {
	return g.Fits && g.Rows > 0 && g.Bonus+int64(g.top) == best
}

// startLists makes empty lists for the group's best rows, about a sixteenth of its rows,
// so that one walk over all rows serves for a while.
func (g *Group) startLists() {
	g.lowest, g.unwritten = g.top, true
	for n := int(g.byScore[g.top]); n < g.Rows/16 && g.lowest > 0; n += int(g.byScore[g.lowest]) {
		g.lowest--
	}
	g.lists, g.listed = make([][]table.Row, g.top-g.lowest+1), 0
}

// writeLists fills the lists that were started, in one walk over all rows.
func (x *Index) writeLists() {
	for r, s := range x.states {
		if !s.feasible() {
			continue
		}
		if g := &x.groups[s>>scoreBits]; g.unwritten {
			if at := s.score() - g.lowest; at >= 0 {
				g.lists[at] = append(g.lists[at], table.Row(r))
				g.listed++
			}
		}
	}
	for id := range x.groups {
		x.groups[id].unwritten = false
	}
}

// addToList adds a row to the group's list for the score. It trims the list when many of
// its rows left. It drops all lists of the group when they are too long; the next search
// for the best rows makes new ones.
func (x *Index) addToList(id, score int32, r table.Row) {
	g := &x.groups[id]
	if g.listed > 64+2*g.Rows {
		g.lists, g.listed, g.lowest = nil, 0, unlisted
		return
	}
	i := score - g.lowest
	for len(g.lists) <= int(i) {
		g.lists = append(g.lists, nil)
	}
	if before := len(g.lists[i]); before > 8+2*int(g.byScore[score]) {
		slices.Sort(g.lists[i])
		g.lists[i] = slices.Compact(g.lists[i])
		g.listed -= before - len(g.lists[i])
		g.trimList(i, stateOf(id, score), x.states)
	}
	g.lists[i] = append(g.lists[i], r)
	g.listed++
}
