package engine

import (
	"math"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// nominatedNodes lists the rows that pods are nominated to. It is kept between decisions:
// with many nominations, most count against few pods.
type nominatedNodes struct {
	list     []nominatedNode
	at       []int32 // by row, where it is in the list, plus one; 0: it is not
	revision uint64  // of the nominations
	nodes    uint64  // the table's NodeRevision
	known    bool    // the list is current at revision
}

type nominatedNode struct {
	row             table.Row
	pods            []*object.Pod
	highest, lowest int32 // of their priorities
}

// follow brings the list up to date.
func (l *nominatedNodes) follow(t *table.Table, n Nominator) {
	nodes, now, known := changedNominations(n, l.revision)
	if known = known && l.known && l.nodes == t.NodeRevision(); !known {
		nodes = n.NominatedNodes()
		*l = nominatedNodes{list: l.list[:0], at: make([]int32, t.Rows()), nodes: t.NodeRevision(), known: true}
	}
	for _, name := range nodes {
		if r, ok := t.Find(name); ok {
			l.set(r, n.NominatedTo(name))
		}
	}
	l.revision = now
}

// set replaces the list of pods nominated to the row. An empty list removes the row.
func (l *nominatedNodes) set(r table.Row, pods []*object.Pod) {
	at := int(l.at[r]) - 1
	switch {
	case len(pods) == 0 && at >= 0: // the last one of the list takes its place
		last := len(l.list) - 1
		l.list[at] = l.list[last]
		l.at[l.list[at].row], l.at[r] = int32(at)+1, 0
		l.list[last] = nominatedNode{}
		l.list = l.list[:last]
		return
	case len(pods) == 0:
		return
	case at < 0:
		at = len(l.list)
		l.list, l.at[r] = append(l.list, nominatedNode{}), int32(at)+1
	}
	n := nominatedNode{row: r, pods: pods, highest: math.MinInt32, lowest: math.MaxInt32}
	for _, p := range pods {
		n.highest, n.lowest = max(n.highest, p.Priority), min(n.lowest, p.Priority)
	}
	l.list[at] = n
}

// on returns what is nominated to the row, nil if nothing is.
func (l *nominatedNodes) on(r table.Row) *nominatedNode {
	if int(r) < len(l.at) && l.at[r] > 0 {
		return &l.list[l.at[r]-1]
	}
	return nil
}

// countedOn lists the pods nominated to the row that count against the pod.
func (x *feasibility) countedOn(r table.Row, nominated Nominator) []*object.Pod {
	if nominated == nil {
		return nil
	}
	l := &x.engine.nominated
	l.follow(x.engine.table, nominated)
	return x.counted(l.on(r), nominated)
}

// counted lists those of the nominated pods that count against the pod. Where all of them
// do, no pod is looked at.
func (x *feasibility) counted(n *nominatedNode, nominated Nominator) []*object.Pod {
	switch {
	case n == nil || n.highest < x.pod.Priority:
		return nil
	case n.lowest >= x.pod.Priority && n.row != x.ownRow(nominated):
		return n.pods
	}
	return slices.DeleteFunc(slices.Clone(n.pods), func(p *object.Pod) bool {
		return p.UID == x.pod.UID || p.Priority < x.pod.Priority
	})
}

// ownRow returns the row that the pod itself is nominated to, -1 if none.
func (x *feasibility) ownRow(nominated Nominator) table.Row {
	if !x.nominated.ownKnown {
		x.nominated.own, x.nominated.ownKnown = -1, true
		if r, ok := x.engine.table.Find(nominated.NominatedNode(x.pod.UID)); ok {
			x.nominated.own = r
		}
	}
	return x.nominated.own
}
