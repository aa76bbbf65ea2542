package machine

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// A group whose pods are unequal may fit in one order and not in another. The order of the
// queue, which is kube-scheduler's, is tried first and kept if the group fits. The others are
// tried only where kube-scheduler would leave the group pending or evict pods for it.

// Orders in which the pods of a group are tried, in PodGroupDone.
const (
	LargestFirst     = "largest first"      // by the dominant share of the cluster
	FewestNodesFirst = "fewest nodes first" // by the number of nodes on which a pod fits alone
	SmallestFirst    = "smallest first"     // the pods that must fit are the smallest
)

// mostReordered bounds the pods times placements that are tried in other orders in one cycle,
// since a cycle is one step.
const mostReordered = 2000

// reordering tries a group that does not fit in the order of the queue in other orders.
type reordering struct {
	groups  *podGroups
	cycle   *groupCycle
	members []rankedMember // in the order of the queue
	weighed bool           // the shares of members are set
	best    *groupTry      // the first try of those that place the most pods; nil: none fits
}

// rankedMember is a pod of a group with what it is ordered by.
type rankedMember struct {
	*groupMember
	template string  // its class: AppendTemplate of the pod
	share    float64 // its dominant share of what the cluster's nodes can allocate
	nodes    int     // number of nodes that it fits on now
}

// tryOtherOrders tries the group, which fits in none of the placements (nil: all nodes), in other
// orders. It leaves in c the first try of those that place the most pods; if the group fits in no
// order, c is as before, except that c.partial is set if placements are left for later attempts.
func (l *podGroups) tryOtherOrders(c *groupCycle, placements []*framework.Placement) {
	queued, before := c.groupTry, c.placements
	r := &reordering{groups: l, cycle: c, members: ranked(queued.members)}
	if r.members == nil {
		return
	}
	c.placements = 2 // what is tried may not be carried out
	next := nextPlacements(placements, max(1, mostReordered/len(r.members)), r.members[0].record.Attempt)
	c.partial = c.partial || len(next) < len(placements)
	for _, p := range next {
		if r.try(p) {
			break
		}
	}
	c.placements = before
	if r.best == nil {
		r.best = &queued
	}
	if c.profile.Host == nil {
		c.groupTry = *r.best
		return
	}
	r.tryAs(r.best.members, r.best.placement, r.best.order) // what is tried last is what hosted plugins know of
	c.status = r.best.status
}

// ranked returns the pods with their classes, nil if all are of one class: no order differs
// from another then.
func ranked(of []*groupMember) []rankedMember {
	members := make([]rankedMember, len(of))
	unequal := false
	for i, mb := range of {
		members[i] = rankedMember{groupMember: mb, template: string(mb.pod.AppendTemplate(nil))}
		unequal = unequal || members[i].template != members[0].template
	}
	if !unequal {
		return nil
	}
	return members
}

// tryAs tries the group in the placement, its pods in the given order, whose name is name. The
// result is left in the cycle; nothing stays assumed.
func (r *reordering) tryAs(order []*groupMember, p *framework.Placement, name string) {
	c := r.cycle
	c.members = order
	c.groupTry = r.groups.newTry(c, p)
	c.order = name
	r.groups.tryGroup(c)
	r.groups.undoGroup(c)
}

// try tries the group in other orders in one placement, and sets best to a try that places more
// pods than best. done is true if nothing more is to be tried: all pods fit, or a plugin failed.
func (r *reordering) try(p *framework.Placement) (done bool) {
	orders, err := r.orders(p)
	if err != nil {
		return true
	}
	c := r.cycle
	for _, order := range orders {
		r.tryAs(order.members, p, order.order)
		switch {
		case c.status == nil:
			if try := c.groupTry; r.best == nil || try.fitting() > r.best.fitting() {
				r.best = &try
			}
			if c.fitting() == len(r.members) {
				return true
			}
		case c.status.Code == decision.Error:
			return true
		}
	}
	return false
}

// fitting returns how many of the pods that were tried fit.
func (t *groupTry) fitting() (n int) {
	for _, mb := range t.members {
		if mb.fits {
			n++
		}
	}
	return n
}

// orders returns the orders in which the group is worth a try in the placement, besides that of the
// queue. There are none if too few of the pods fit on any node as it is, so that no order helps.
// The error is a plugin's panic.
func (r *reordering) orders(p *framework.Placement) (orders []groupTry, err error) {
	reach, err := r.countNodes(p)
	if err != nil {
		return nil, err
	}
	l := r.groups
	progress := framework.PlacementProgress{Remaining: reach, Scheduled: l.table.Groups().Named(r.cycle.name).Scheduled()}
	if s := l.placementFeasible(r.cycle, progress); s != nil && s.Code != decision.Wait {
		return nil, nil
	}
	r.weigh()
	known := [][]*groupMember{plainMembers(r.members)}
	add := func(name string, members []rankedMember) {
		sorted := plainMembers(members)
		if !slices.ContainsFunc(known, func(k []*groupMember) bool { return slices.Equal(k, sorted) }) {
			known = append(known, sorted)
			orders = append(orders, groupTry{members: sorted, order: name})
		}
	}
	add(LargestFirst, r.sorted(largestFirst))
	add(FewestNodesFirst, r.sorted(func(a, b rankedMember) int { return cmp.Or(cmp.Compare(a.nodes, b.nodes), largestFirst(a, b)) }))
	if needs := max(0, r.cycle.group.MinCount-progress.Scheduled); r.cycle.group.Gang && needs < len(r.members) {
		smallest := r.sorted(func(a, b rankedMember) int { return largestFirst(b, a) })
		slices.SortStableFunc(smallest[:needs], largestFirst) // of those that must fit: so they fit best
		add(SmallestFirst, smallest)
	}
	return orders, nil
}

// sorted returns the pods in the order of compare; equals keep the order of the queue.
func (r *reordering) sorted(compare func(a, b rankedMember) int) []rankedMember {
	return slices.SortedStableFunc(slices.Values(r.members), compare)
}

// largestFirst orders pods by their dominant share of the cluster, the largest first.
func largestFirst(a, b rankedMember) int { return cmp.Compare(b.share, a.share) }

// plainMembers returns the pods in the same order, without what they are ordered by.
func plainMembers(members []rankedMember) []*groupMember {
	plain := make([]*groupMember, len(members))
	for i := range members {
		plain[i] = members[i].groupMember
	}
	return plain
}

// countNodes sets nodes of each pod: on how many nodes of the placement it fits alone, while no
// waiting pod of the group has, or is nominated to, a node. It returns how many pods may have a
// node: those that fit on one now, and those whose filters look beyond the node. The error is a
// plugin's panic.
func (r *reordering) countNodes(p *framework.Placement) (reach int, err error) {
	l := r.groups
	for _, mb := range r.members {
		l.nominateMember(mb.groupMember, "")
	}
	defer func() {
		for _, mb := range r.members {
			l.nominateMember(mb.groupMember, mb.kept)
		}
	}()
	type answer struct {
		nodes int
		may   bool
	}
	byClass := map[string]answer{}
	rows := (&groupTry{placement: p}).rows()
	for i := range r.members {
		mb := &r.members[i]
		found, known := byClass[mb.template]
		if !known {
			err := l.guard.run("scheduling cycle", "", func() {
				if l.scheduling.cannotTry(mb.attempt) != nil || l.extenders.of(mb.pod) != nil {
					return
				}
				o := l.engine.DecideWithin(rows, mb.request, l.nominations)
				found = answer{o.Feasible, o.Feasible > 0 || !o.Local()}
				l.engine.Reuse(o)
			})
			if err != nil {
				return 0, err
			}
			byClass[mb.template] = found
		}
		if mb.nodes = found.nodes; found.may {
			reach++
		}
	}
	return reach, nil
}

// weigh sets the dominant share of each pod, if that was not done yet: the largest part that it
// requests of what all nodes together can allocate of a resource.
func (r *reordering) weigh() {
	if r.weighed {
		return
	}
	r.weighed = true
	totals := map[v1.ResourceName]float64{v1.ResourceCPU: 0, v1.ResourceMemory: 0, v1.ResourceEphemeralStorage: 0}
	for _, mb := range r.members {
		for _, s := range mb.pod.Demand.Requests.Scalars {
			totals[s.Name] = 0
		}
	}
	for name := range totals { // any order: each has a sum of its own
		for _, row := range r.groups.table.All() {
			if n := r.groups.table.Node(row); n != nil {
				totals[name] += float64(n.Allocatable.Of(name))
			}
		}
	}
	for i := range r.members {
		r.members[i].share = dominantShare(r.members[i].pod, totals)
	}
}

// dominantShare returns the largest part of a total that the pod requests.
func dominantShare(p *object.Pod, totals map[v1.ResourceName]float64) (share float64) {
	for name, total := range totals { // any order: a maximum
		if asks := p.Demand.Requests.Of(name); asks > 0 {
			share = max(share, float64(asks)/total) // infinite where no node has any
		}
	}
	return share
}
