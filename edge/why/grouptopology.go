package why

import (
	"context"
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/edge/turn"
)

// topologyText says where in the tree of levels the pod group of the scope is, or fits; "" for another
// scope, and for a group that is not placed by the tree.
func topologyText(c *Cluster, scope *Scope) string {
	w := scope.Workload
	if w == nil || w.Kind != podGroup || c.Machine == nil || !c.Machine.PlacesGroups() {
		return ""
	}
	for _, name := range c.Machine.Table().Groups().Names() {
		if name.Namespace != w.Namespace || !isGroup(name.Name, w.Name) {
			continue
		}
		text, err := c.Machine.GroupTopology(name)
		if err != nil {
			return err.Error()
		}
		if text != "" {
			return text
		}
	}
	return ""
}

// shortGroup makes a cause of a pod group of which too few pods fit. Those that fit are
// placed while it is called.
func (l *listing) shortGroup(ctx context.Context, s *turn.Short) {
	members := slices.DeleteFunc(slices.Clone(s.Members), func(p turn.Pod) bool { return !l.scope.Has(l.Cluster, p.API) })
	if len(members) == 0 {
		return
	}
	if s.Fault != "" {
		l.short[s.Name] = &Cause{Verdict: Misconfigured, Blockers: []Blocker{}, pods: members, first: l.rank[members[0].API], short: s,
			Sentence: fmt.Sprintf("not placed, as pod group %s is not valid: %s", s.Name, s.Fault)}
		return
	}
	first := l.Set.DecodePod(s.First.API)
	a := l.blockedOnly().Why(ctx, s.First.API)
	cause := &Cause{Verdict: a.Verdict, Blockers: []Blocker{}, pods: members, first: l.rank[members[0].API], short: s}
	if len(a.Groups) > 0 {
		cause.Blockers = a.nearestGroup().Blockers
	}
	why := first.Key() + " is " + a.cause()
	if a.Verdict == WouldBePlaced {
		cause.Verdict, why = Waiting, first.Key()+" has room only outside the topology domain of the others"
	}
	cause.Sentence = fmt.Sprintf("pod group %s is placed together%s, and %d of %d fit: %s",
		s.Name, l.gangText(s.Name, len(s.Fitting), len(s.Members)), len(s.Fitting), len(s.Members), why)
	l.short[s.Name] = cause
}
