package machine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// A group that names levels of its profile's tree (profile.GroupTopology) is placed in one
// domain of the narrowest level in which it fits: from its preferred level up to its required
// one, and without that up to the whole cluster. Of the domains of that level the tightest is
// chosen.

// wholeCluster stands for the level whose one domain is all nodes.
const wholeCluster = -1

// levelRange is the part of the tree in which a group is placed, as indices in levels, of which the
// first is the widest.
type levelRange struct {
	levels            []string // the profile's; nil: the group is not placed by the tree
	widest, narrowest int      // the required, else wholeCluster; the preferred, else the required
}

// levelsOf returns the levels at which a group of the profile is placed; none if it is not placed
// by the tree. A fault is why it cannot be placed at all; "" for nothing.
func levelsOf(o *Options, p *profile.Profile, g *object.PodGroup) (of levelRange, fault string) {
	required, from := g.Required, "its annotation "+object.RequiredTopology
	if required == "" && g.TopologyKey != "" {
		required, from = g.TopologyKey, "its spec.schedulingConstraints.topology"
		if o.GroupPlacements && g.Preferred == "" && !slices.Contains(p.Levels, required) {
			return levelRange{}, "" // a plugin generates its placements
		}
	}
	if p.Levels == nil || required == "" && g.Preferred == "" {
		return levelRange{}, ""
	}
	unknown := func(from, key string) string {
		return fmt.Sprintf("%s is %.100q, which is no level of %s: %s", from, key, profile.GroupTopology, strings.Join(p.Levels, ", "))
	}
	of = levelRange{p.Levels, slices.Index(p.Levels, required), slices.Index(p.Levels, cmp.Or(g.Preferred, required))}
	switch {
	case required != "" && of.widest < 0:
		return of, unknown(from, required)
	case of.narrowest < 0:
		return of, unknown("its annotation "+object.PreferredTopology, g.Preferred)
	case g.TopologyKey != "" && g.TopologyKey != required:
		return of, fmt.Sprintf("its spec.schedulingConstraints.topology is %.100q, but its annotation %s is %q", g.TopologyKey, object.RequiredTopology, required)
	case of.narrowest < of.widest:
		return of, fmt.Sprintf("its annotation %s is %q, which is wider than the required level %q", object.PreferredTopology, g.Preferred, required)
	}
	return of, ""
}

// name returns the name of a level for messages: its label key without the prefix, such as zone
// for topology.kubernetes.io/zone, or cluster for wholeCluster. level is an index in levels.
func (r levelRange) name(level int) string {
	if level == wholeCluster {
		return "cluster"
	}
	return r.levels[level][strings.LastIndexByte(r.levels[level], '/')+1:]
}

// pathOf returns the path of the domain of the level that the node is in: its values of the levels
// from the widest on, with slashes between. in is false if the node is nil or lacks one of the
// labels.
func (r levelRange) pathOf(n *object.Node, level int) (path string, in bool) {
	if n == nil {
		return "", false
	}
	var b strings.Builder
	for i, key := range r.levels[:level+1] {
		value, has := n.Labels[key]
		if !has {
			return "", false
		}
		if i > 0 {
			b.WriteByte('/') // no value has one
		}
		b.WriteString(value)
	}
	return b.String(), true
}

// domain is a domain of a level, with what is counted of it before the group is tried there.
type domain struct {
	placement *framework.Placement // nil: all nodes
	rows      []table.Row
	most      int // at most so many waiting pods of the group fit
	room      int // at most so many pods of each class of the group fit, added up
	turn      int // drawn: decides between equals
}

// compare orders domains as they are tried: first the domain in which the most waiting pods of the
// group can fit, then the one with the least room, then the one with the lowest drawn number.
func (d *domain) compare(o *domain) int {
	return cmp.Or(d.compareRoom(o), cmp.Compare(d.turn, o.turn))
}

// compareRoom compares what the domains hold, as compare does.
func (d *domain) compareRoom(o *domain) int {
	return cmp.Or(cmp.Compare(o.most, d.most), cmp.Compare(d.room, o.room))
}

// domainSearch tries a group in the domains of its levels.
type domainSearch struct {
	*podGroups
	levelRange
	cycle   *groupCycle
	queued  []*groupMember // the pods in the order of the queue
	classes []memberClass
	// tries bounds the domains that are tried at one level. orders is in how many more domains, of
	// all levels together, other orders than the queue's may be tried.
	tries, orders int
	seed          uint64 // of the draws between equal domains
}

// memberClass is the pods of a group that are of one class.
type memberClass struct {
	first *groupMember
	pods  int   // how many they are
	holds []int // by row: at most so many of them fit; 0 before count
}

// run tries the group in the domains of its levels. The results in the chosen domain are left in
// the cycle; if the group fits in none, those in the best domain of the widest level. The records
// of the pods name that domain, unless it is the whole cluster.
func (s *domainSearch) run() {
	s.search()
	if c := s.cycle; c.placement != nil {
		for _, mb := range c.members {
			mb.record.Domain = c.placement.Name
		}
	}
}

// search implements run, except for the domain in the records.
func (s *domainSearch) search() {
	c := s.cycle
	all := framework.PlacementProgress{Remaining: len(c.members), Scheduled: s.scheduled()}
	if status := s.placementFeasible(c, all); status != nil && status.Code != decision.Wait {
		s.tryPlacement(c, nil) // ends at once, and says so
		return
	}
	if err := s.count(nil, func(k int, r table.Row, n int) { s.classes[k].holds[r] = n }); err != nil {
		c.groupTry = s.newTry(c, nil)
		c.status = &decision.Status{Code: decision.Error, Err: err}
		return
	}
	for level := s.narrowest; level >= s.widest; level-- {
		chosen, order := s.tryLevel(level)
		if chosen == nil && c.status != nil && c.status.Code == decision.Error {
			return
		}
		if chosen != nil {
			s.tryIn(chosen, order) // what is tried last is what hosted plugins know of
			return
		}
	}
	s.reportBest()
}

// newDomainSearch returns a new search for the group of the cycle.
func newDomainSearch(l *podGroups, c *groupCycle, of levelRange) *domainSearch {
	first := c.members[0]
	s := &domainSearch{
		podGroups: l, levelRange: of, cycle: c, queued: c.members, seed: draw.Seed(l.options.Seed, first.pod.UID, first.record.Attempt),
		tries: max(1, mostTries/len(c.members)/(of.narrowest-of.widest+1)), orders: max(1, mostReordered/len(c.members)),
	}
	byTemplate := map[string]int{}
	for _, mb := range c.members {
		template := string(mb.pod.AppendTemplate(nil))
		k, known := byTemplate[template]
		if !known {
			k = len(s.classes)
			byTemplate[template] = k
			s.classes = append(s.classes, memberClass{first: mb})
		}
		s.classes[k].pods++
	}
	for k := range s.classes {
		s.classes[k].holds = make([]int, l.table.Rows())
	}
	return s
}

// scheduled returns how many pods of the group have a node.
func (s *domainSearch) scheduled() int {
	return s.table.Groups().Named(s.cycle.name).Scheduled()
}

// count calls visit with the number of pods of each class that each of the rows (nil: all) holds at
// most, while no waiting pod of the group is nominated. n is engine.HoldsAny for a class whose pods
// cannot be decided on. The error is a plugin's panic.
func (s *domainSearch) count(rows []table.Row, visit func(class int, r table.Row, n int)) error {
	among := rows
	if rows == nil {
		among = s.liveRows()
	}
	return s.decideEach(rows, func(k int, o *engine.Outcome) {
		for _, r := range among {
			if o == nil { // the try says why it fails
				visit(k, r, engine.HoldsAny)
			} else {
				visit(k, r, o.Holds(r))
			}
		}
	})
}

// decideEach decides on the first pod of each class, within the rows (nil: all), while no
// waiting pod of the group is nominated. It calls visit with the outcome; nil if the pod
// cannot be decided on. The error is a plugin's panic.
func (s *domainSearch) decideEach(rows []table.Row, visit func(class int, o *engine.Outcome)) error {
	for _, mb := range s.queued {
		s.nominateMember(mb, "")
	}
	defer func() {
		for _, mb := range s.queued {
			s.nominateMember(mb, mb.kept)
		}
	}()
	return s.guard.run("scheduling cycle", "", func() {
		for k := range s.classes {
			mb := s.classes[k].first
			if s.scheduling.cannotTry(mb.attempt) != nil || s.extenders.of(mb.pod) != nil {
				visit(k, nil)
				continue
			}
			o := s.engine.DecideWithin(rows, mb.request, s.nominations)
			visit(k, o)
			s.engine.Reuse(o)
		}
	})
}

// liveRows returns the rows that have a node.
func (s *domainSearch) liveRows() (rows []table.Row) {
	for _, r := range s.table.All() {
		if s.table.Node(r) != nil {
			rows = append(rows, r)
		}
	}
	return rows
}

// domains returns the domains of the level in the order in which they are tried, also those that
// are too small. If pods of the group are placed, it returns only their domain; it returns none if
// they are in several, or if a node of theirs lacks a label of the level. wholeCluster always has
// one domain.
func (s *domainSearch) domains(level int) (list []*domain) {
	if level == wholeCluster {
		d := &domain{rows: s.liveRows()}
		s.weigh(d)
		return []*domain{d}
	}
	pinned, bound := "", false
	for uid := range s.table.Groups().Named(s.cycle.name).Placed() {
		path, in := s.pathOf(s.table.Node(s.table.Pod(uid).Row), level)
		if !in || bound && path != pinned {
			return nil
		}
		pinned, bound = path, true
	}
	byPath := map[string]*domain{}
	for _, r := range s.table.All() {
		path, in := s.pathOf(s.table.Node(r), level)
		if !in || bound && path != pinned {
			continue
		}
		d := byPath[path]
		if d == nil {
			d = &domain{placement: &framework.Placement{Name: s.name(level) + " " + path}}
			byPath[path] = d
			list = append(list, d)
		}
		d.rows = append(d.rows, r)
	}
	for i, d := range list {
		d.placement.Rows, d.turn = d.rows, draw.Number(s.seed+uint64(i), math.MaxInt32)
		s.weigh(d)
	}
	slices.SortFunc(list, (*domain).compare)
	return list
}

// weigh sets most and room of the domain, from holds of the classes.
func (s *domainSearch) weigh(d *domain) {
	for k := range s.classes {
		holds := 0
		for _, r := range d.rows {
			holds += s.classes[k].holds[r]
		}
		d.room += holds
		d.most += min(holds, s.classes[k].pods)
	}
}

// mayFit reports whether the group may fit in the domain, by the most pods that may have a node
// there. At least one pod must.
func (s *domainSearch) mayFit(d *domain) bool {
	progress := framework.PlacementProgress{Remaining: d.most, Tried: len(s.queued) - d.most, Scheduled: s.scheduled()}
	status := s.placementFeasible(s.cycle, progress)
	return d.most > 0 && (status == nil || status.Code == decision.Wait)
}

// tryLevel tries the group in the domains of the level. It returns the one that places the most
// pods of the group, of several such the one with the least room left, and the try there, which has
// the order. chosen is nil if the group fits in none, or if a plugin failed: cycle.status is the
// error then.
func (s *domainSearch) tryLevel(level int) (chosen *domain, order groupTry) {
	c := s.cycle
	list := slices.DeleteFunc(s.domains(level), func(d *domain) bool { return !s.mayFit(d) })
	all := len(list)
	list = nextPlacements(list, s.tries, s.queued[0].record.Attempt)
	c.partial = c.partial || len(list) < all
	slices.SortFunc(list, (*domain).compare)
	placed, left := 0, 0
	for _, d := range list {
		s.tryOrders(d)
		switch fitting := c.fitting(); {
		case c.status != nil && c.status.Code == decision.Error:
			return nil, groupTry{}
		case c.status != nil || fitting == 0:
		default:
			if rest := s.roomLeft(d); chosen == nil || fitting > placed || fitting == placed && rest < left {
				chosen, order, placed, left = d, c.groupTry, fitting, rest
			}
			if len(s.classes) == 1 && fitting == d.most {
				return chosen, order // those that follow hold no more pods, or have more room
			}
		}
	}
	return chosen, order
}

// tryIn tries the group in the domain, in the order of an earlier try. The results are left in
// the cycle.
func (s *domainSearch) tryIn(d *domain, as groupTry) {
	c := s.cycle
	c.placements = 1
	c.members = as.members
	s.tryPlacement(c, d.placement)
	c.order = as.order
}

// tryOrders tries the group in the domain in the order of the queue, and in other orders if it does
// not fit in that. After s.orders domains it leaves the other orders to the next attempts
// (cycle.partial).
func (s *domainSearch) tryOrders(d *domain) {
	c := s.cycle
	c.placements = 2 // what is tried may not be carried out
	c.members = s.queued
	s.tryPlacement(c, d.placement)
	switch {
	case c.status == nil || c.status.Code != decision.Unschedulable:
	case s.orders > 0:
		s.orders--
		s.tryOtherOrders(c, []*framework.Placement{d.placement})
	case len(s.classes) > 1:
		c.partial = true
	}
}

// roomLeft returns how many pods of each class of the group the domain holds beside those that were
// just found a node there, added up. It is MaxInt if a plugin panics.
func (s *domainSearch) roomLeft(d *domain) (left int) {
	c := s.cycle
	if len(s.classes) == 1 || c.profile.Host != nil { // hosted plugins would not see the pods
		return d.room - c.fitting()
	}
	for _, mb := range c.members {
		if mb.fits {
			s.table.Place(mb.pod, mb.row)
		}
	}
	err := s.count(d.rows, func(_ int, _ table.Row, n int) { left += n })
	for _, mb := range slices.Backward(c.members) {
		if mb.fits {
			s.table.RemovePod(mb.pod.UID)
		}
	}
	if err != nil {
		return math.MaxInt
	}
	return left
}

// reportBest leaves in the cycle, for a group that fits in no domain that was tried, the try in the
// domain of the widest level that holds the most of its pods, with how many fit there. That domain
// is tried even if the cycle has not come to it, and chosen if the group fits. Of equal domains it
// is the first by name, so that all answers about the group name the same.
func (s *domainSearch) reportBest() {
	c := s.cycle
	c.members, c.placements = s.queued, 1
	list := s.domains(s.widest)
	switch {
	case len(list) == 0:
		c.groupTry = s.newTry(c, nil)
		c.status = &decision.Status{Code: decision.Unschedulable, Reasons: []string{s.noDomainReason()}}
		return
	case s.widest == wholeCluster:
		s.tryPlacement(c, nil)
		return
	}
	best := slices.MinFunc(list, func(d, o *domain) int {
		return cmp.Or(d.compareRoom(o), cmp.Compare(d.placement.Name, o.placement.Name))
	}).placement
	var fit GroupFit
	if err := s.guard.run("scheduling cycle", "", func() { fit, _ = s.fitIn(c, best, func() bool { return true }) }); err != nil {
		c.status = &decision.Status{Code: decision.Error, Err: err}
		return
	}
	if fits := c.fitting(); fit.Feasible && fits > 0 {
		s.tryPlacement(c, best)
	} else {
		why := fmt.Sprintf("it fits in no %s; best %s: %s", s.name(s.widest), best.Name, s.shortfall(fits))
		c.status = &decision.Status{Code: decision.Unschedulable, Reasons: []string{why}}
	}
}

// shortfall returns a text: fits of the waiting pods fit, and how many must if that is not all.
func (s *domainSearch) shortfall(fits int) string {
	text := fmt.Sprintf("%d of %d fit", fits, len(s.queued))
	must := s.cycle.group.MinCount - s.scheduled()
	if s.cycle.group.Gang && must > 0 && must < len(s.queued) {
		text += fmt.Sprintf(", %d must", must)
	}
	return text
}

// noDomainReason returns the message for a group that has no domain of its widest level. There are
// two reasons: placed pods of the group are in several domains, or no node has the level's labels.
func (s *domainSearch) noDomainReason() string {
	for range s.table.Groups().Named(s.cycle.name).Placed() {
		return fmt.Sprintf("its pods that have a node are not in one %s", s.name(s.widest))
	}
	return fmt.Sprintf("no node is in a %s: it would have the labels %s", s.name(s.widest), strings.Join(s.levels[:s.widest+1], ", "))
}

// placedIn returns a text, for the group's condition, that says where the group was placed: in p,
// or in the whole cluster if p is nil. It returns "" for a group that is not placed by the tree.
func (r levelRange) placedIn(p *framework.Placement) string {
	if r.levels == nil {
		return ""
	}
	narrowest, where := r.name(r.narrowest), "the whole cluster"
	if p != nil {
		if where = p.Name; strings.HasPrefix(where, narrowest+" ") {
			return "placed in " + where
		}
	}
	return fmt.Sprintf("placed in %s: it fits in no %s", where, narrowest)
}
