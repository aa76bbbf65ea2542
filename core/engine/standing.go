package engine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// standing is where a row stands in a view, in one number: a place that is
// read and written with each change should take no more of the processor's
// cache. Where it is negative no pod of the class may go there; else it holds
// the row's group and, in the bits below, its final score.
type standing int32

// vacant: there is no node. What is below stands for a cause.
const vacant standing = -1

func because(cause int32) standing { return -2 - standing(cause) }
func (s standing) cause() int32    { return int32(-2 - s) }
func (s standing) feasible() bool  { return s >= 0 }

// standings keeps where each row of a view stands, and the counts from which
// the best rows are read off without a walk. Rows whose raw scores and cells
// agree form a group: whatever the extremes and the domains' counts are,
// filters by cells give them the same verdict and normalised scorers the same
// score, so that within a group the order by final scores stands. As these are
// small integers, a group counts its rows for each; a pick compares the
// groups' highest.
type standings struct {
	at       []standing // by row
	causes   causes
	feasible int

	parts  []part
	static *static
	own    int // how many of the parts are numbers that the view has for itself
	groups []group
	byKey  map[groupKey]int32
	bits   uint // of a standing, that hold the final score

	// final holds the final scores by row where rows are too scattered to be
	// grouped, nil otherwise; a feasible row then stands at 0.
	final    []int64
	poisoned int // feasible rows with a score out of range

	highest int64 // the most that a row's final score can be
	counts  []framework.CellCount
	totals  []int64 // of the groups, but for final scores (this decision)
}

// part is one of the numbers by which rows are grouped: a normalised scorer's
// raw score or cell, or a filter's cell.
type part struct {
	scorer *scorer
	place  int // of the scorer in the view
	filter *filter
	column func() []int64
	// own: the column is the view's and not the static part's. at is its place
	// among its like.
	own bool
	at  int
}

// groupKey holds a group's numbers: the id of those that the static part has,
// then the view's own.
type groupKey struct {
	tuple int32
	own   tuple
}

// tuple is some numbers in a row. Views that would need more are scanned.
type tuple [maxParts]int64

const maxParts = 8

// maxFinal bounds the counts of a group.
const maxFinal = 1 << 12

// manyGroups is how many groups are so many that a scan is as good; it bounds
// their memory, too: 40 bytes a row.
func manyGroups(rows int) int { return 16 + rows/32 }

type group struct {
	key    groupKey
	rows   int
	top    int32   // the highest final score that some row has
	having []int32 // by final score, how many rows
	// lists holds, by final score from this one on, at least the rows that have
	// it, and some that had it before; listed counts them all.
	lists   [][]table.Row
	listed  int
	from    int32
	filling bool
	// fits: it has rows, and no filter by cells rejects them (this decision).
	fits bool
}

// none stands for no group; unlisted is more than any score.
const (
	none     = -1
	unlisted = maxFinal
)

// arrange finds the parts by which the view's rows are grouped.
func (v *view) arrange() {
	s := &v.standings
	s.static = v.static
	nodeOnly := 0
	for k := range v.scorers {
		switch c := &v.scorers[k]; {
		case c.cells != nil:
			s.parts = append(s.parts, part{scorer: c, place: k, column: c.cells.column, own: true, at: s.own})
			s.own++
		case c.NormalizeScore == nil:
			s.highest += maxScore * c.weight
		case c.Locality == framework.NodeOnly:
			s.parts = append(s.parts, part{scorer: c, place: k, column: c.raw, at: nodeOnly})
			nodeOnly++
		default:
			s.parts = append(s.parts, part{scorer: c, place: k, column: c.raw, own: true, at: s.own})
			s.own++
		}
	}
	for _, f := range v.cellFilters {
		s.parts = append(s.parts, part{filter: f, column: f.cells.column, own: true, at: s.own})
		s.own++
	}
	for s.bits = 1; s.highest >= 1<<s.bits; s.bits++ {
	}
	if s.own > maxParts || s.highest >= maxFinal {
		s.scatter()
	}
}

// scatter gives up groups, for good.
func (s *standings) scatter() { s.final = make([]int64, len(s.at)) }

func (s *standings) scattered() bool { return s.final != nil }

// size makes room for n rows; new ones are vacant.
func (s *standings) size(n int) {
	for r := len(s.at); r < n; r++ {
		s.at = append(s.at, vacant)
	}
	if s.scattered() {
		s.final = extend(s.final, n)
	}
}

// clear makes every row vacant.
func (s *standings) clear() {
	for r := range s.at {
		s.at[r] = vacant
	}
	s.causes.reset()
	s.feasible, s.poisoned = 0, 0
	s.groups = s.groups[:0]
	clear(s.byKey)
}

// seat notes what was found out about the rows. It returns false where it
// cannot: there are too many groups, too many causes, or a score is none. All
// rows are then to be seated anew.
func (s *standings) seat(rows []table.Row, found *scratch) bool {
	if s.own == 0 && !s.scattered() {
		s.joinTuples()
	}
	for i, r := range rows {
		was, now := s.at[r], vacant
		switch first := found.first[i]; {
		case first == noNode:
		case first != feasible:
			now = because(s.causes.id(blockKey{first, found.verdict[i]}))
		case s.scattered():
			now = 0
		default:
			g := s.static.tupleOf[r]
			if s.own > 0 {
				g = s.group(r, g, was)
			}
			if g == none || found.final[i] < 0 {
				return false
			}
			now = s.stand(g, int32(found.final[i]))
		}
		if s.scattered() {
			s.note(r, was, now, found.final[i])
		}
		if was != now {
			s.leave(was)
			s.join(r, now)
			s.at[r] = now
		}
	}
	return len(s.causes.keys) <= 64+len(s.at)
}

// seatFirst is seat for rows that are all vacant, of a view whose groups are
// the static part's tuples. Of the groups it counts the rows by score only;
// sum is to follow.
func (s *standings) seatFirst(rows []table.Row, found *scratch) bool {
	s.joinTuples()
	for i, r := range rows {
		switch first := found.first[i]; {
		case first == feasible:
			tuple, final := s.static.tupleOf[r], found.final[i]
			if final < 0 {
				return false
			}
			s.groups[tuple].having[final]++
			s.at[r] = s.stand(tuple, int32(final))
		case first != noNode:
			cause := s.causes.id(blockKey{first, found.verdict[i]})
			s.causes.rows[cause]++
			s.at[r] = because(cause)
		}
	}
	return true
}

// sum adds up what seatFirst has counted.
func (s *standings) sum() {
	for id := range s.groups {
		g := &s.groups[id]
		for score, n := range g.having {
			if n > 0 {
				g.rows += int(n)
				g.top = int32(score)
			}
		}
		s.feasible += g.rows
	}
}

// note keeps the final score of a row that is in no group.
func (s *standings) note(r table.Row, was, now standing, final int64) {
	if was.feasible() && s.final[r] < 0 {
		s.poisoned--
	}
	if s.final[r] = final; now.feasible() && final < 0 {
		s.poisoned++
	}
}

func (s *standings) leave(was standing) {
	switch {
	case was == vacant:
	case !was.feasible():
		s.causes.rows[was.cause()]--
	case s.scattered():
		s.feasible--
	default:
		g := &s.groups[was>>s.bits]
		s.feasible--
		g.rows--
		g.having[s.below(was)]--
		for g.top > 0 && g.having[g.top] == 0 {
			g.top--
		}
	}
}

func (s *standings) join(r table.Row, now standing) {
	switch {
	case now == vacant:
	case !now.feasible():
		s.causes.rows[now.cause()]++
	case s.scattered():
		s.feasible++
	default:
		g, score := &s.groups[now>>s.bits], s.below(now)
		s.feasible++
		g.rows++
		g.having[score]++
		g.top = max(g.top, score)
		if score >= g.from {
			s.enlist(int32(now>>s.bits), score, r)
		}
	}
}

// joinTuples has a group for each of the static part's tuples, where these
// alone tell rows apart.
func (s *standings) joinTuples() {
	for id := len(s.groups); id < len(s.static.tuples); id++ {
		s.addGroup(groupKey{tuple: int32(id)})
	}
}

func (s *standings) addGroup(key groupKey) int32 {
	n := len(s.groups)
	if n == cap(s.groups) {
		s.groups = append(s.groups, group{})
	}
	s.groups = s.groups[:n+1]
	g := &s.groups[n] // one that was before: its room can be used again
	*g = group{key: key, having: resize(g.having, int(s.highest)+1), from: unlisted}
	clear(g.having)
	return int32(n)
}

// group finds or makes the group for the row's numbers, where the view has
// some of its own; none when they are too many.
func (s *standings) group(r table.Row, tuple int32, was standing) int32 {
	if was.feasible() && s.same(r, tuple, &s.groups[was>>s.bits].key) {
		return int32(was >> s.bits)
	}
	key := groupKey{tuple: tuple}
	for i := range s.parts {
		if p := &s.parts[i]; p.own {
			key.own[p.at] = p.column()[r]
		}
	}
	id, known := s.byKey[key]
	if !known {
		if len(s.groups) >= manyGroups(len(s.at)) {
			return none
		}
		if s.byKey == nil {
			s.byKey = map[groupKey]int32{}
		}
		id = s.addGroup(key)
		s.byKey[key] = id
	}
	return id
}

func (s *standings) same(r table.Row, tuple int32, key *groupKey) bool {
	if tuple != key.tuple {
		return false
	}
	for i := range s.parts {
		if p := &s.parts[i]; p.own && p.column()[r] != key.own[p.at] {
			return false
		}
	}
	return true
}

// number is what the group has for the part.
func (s *standings) number(g *group, p *part) int64 {
	if !p.own {
		return s.static.tuples[g.key.tuple][p.at]
	}
	return g.key.own[p.at]
}

// score is the final score of a feasible row.
func (s *standings) score(r table.Row) int64 {
	if s.scattered() {
		return s.final[r]
	}
	return int64(s.below(s.at[r]))
}

// groupOf is the group of a row, nil where it is not feasible.
func (s *standings) groupOf(r table.Row) *group {
	if !s.at[r].feasible() {
		return nil
	}
	return &s.groups[s.at[r]>>s.bits]
}

// first tells how the row stands with the filters: feasible, noNode, or which
// of them rejects it first and how.
func (s *standings) first(r table.Row) blockKey {
	switch at := s.at[r]; {
	case at.feasible():
		return blockKey{filter: feasible}
	case at == vacant:
		return blockKey{filter: noNode}
	default:
		return s.causes.keys[at.cause()]
	}
}

// judge asks the filters by cells about the groups and returns the number of
// feasible rows.
func (s *standings) judge() int {
	rows := 0
	for g := range s.groups {
		group := &s.groups[g]
		group.fits = group.rows > 0
		for i := range s.parts {
			if f := s.parts[i].filter; f != nil && group.fits {
				group.fits = f.CellFilter.Filter(&f.in, s.number(group, &s.parts[i])) == framework.Fits
			}
		}
		if group.fits {
			rows += group.rows
		}
	}
	return rows
}

// each calls f with the rows of all groups whose highest score comes to best
// with the group's total, perhaps with some more than once.
func (s *standings) each(best int64, f func(table.Row)) {
	tied := func(g int) bool {
		return s.groups[g].fits && s.totals[g]+int64(s.groups[g].top) == best
	}
	missing := false
	for g := range s.groups {
		if group := &s.groups[g]; tied(g) && group.top < group.from {
			group.startLists()
			missing = true
		}
	}
	if missing {
		s.fill()
	}
	for g := range s.groups {
		if tied(g) {
			top := s.groups[g].top
			for _, r := range s.groups[g].lists[top-s.groups[g].from] {
				if s.at[r] == s.stand(int32(g), top) {
					f(r)
				}
			}
		}
	}
}

// startLists makes room for lists of the group's best rows: a sixteenth of
// them, so that what one walk over all rows finds lasts for a while.
func (g *group) startLists() {
	g.from, g.filling = g.top, true
	for n := int(g.having[g.top]); n < g.rows/16 && g.from > 0; n += int(g.having[g.from]) {
		g.from--
	}
	g.lists, g.listed = make([][]table.Row, g.top-g.from+1), 0
}

// fill walks all rows for the lists that were started.
func (s *standings) fill() {
	for r, at := range s.at {
		if !at.feasible() {
			continue
		}
		if g := &s.groups[at>>s.bits]; g.filling {
			if at := s.below(at) - g.from; at >= 0 {
				g.lists[at] = append(g.lists[at], table.Row(r))
				g.listed++
			}
		}
	}
	for g := range s.groups {
		s.groups[g].filling = false
	}
}

// enlist adds a row to the group's list for the score, from which rows that
// went are taken out when they are many. Where all lists together are too long
// for the group they are given up, until the best rows are asked for again.
func (s *standings) enlist(id, score int32, r table.Row) {
	g := &s.groups[id]
	if g.listed > 64+2*g.rows {
		g.lists, g.listed, g.from = nil, 0, unlisted
		return
	}
	i := int(score - g.from)
	for len(g.lists) <= i {
		g.lists = append(g.lists, nil)
	}
	list := g.lists[i]
	if before := len(list); before > 8+2*int(g.having[score]) {
		at := s.stand(id, score)
		slices.Sort(list)
		list = slices.DeleteFunc(slices.Compact(list), func(r table.Row) bool { return s.at[r] != at })
		g.listed -= before - len(list)
	}
	g.lists[i] = append(list, r)
	g.listed++
}

func (s *standings) stand(group, score int32) standing {
	return standing(group)<<s.bits | standing(score)
}

// below is the final score in a standing.
func (s *standings) below(at standing) int32 { return int32(at) & (1<<s.bits - 1) }
