package fix

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// onNodes looks at what blocks the pod on nodes, the nearest misses first: for each
// blocker there are ways to lift it, and one way for each is a candidate.
func (s *search) onNodes(d *decision.Decision) {
	for _, g := range groupsOf(d.Nodes) {
		if len(s.found) >= mostFixes && obstacles(g[0]) > 1 {
			return
		}
		for _, n := range s.variants(g) {
			s.onNode(n)
		}
	}
}

// groupsOf are the infeasible nodes by their blockers: the fewest obstacles, then the
// most nodes first.
func groupsOf(nodes []decision.Node) (groups [][]*decision.Node) {
	at := map[string]int{}
	for i := range nodes {
		n := &nodes[i]
		if n.Feasible {
			continue
		}
		key := fmt.Sprintf("%q", n.Blockers)
		g, known := at[key]
		if !known {
			g = len(groups)
			at[key] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], n)
	}
	slices.SortStableFunc(groups, func(a, b []*decision.Node) int {
		return cmp.Or(cmp.Compare(obstacles(a[0]), obstacles(b[0])), cmp.Compare(len(b), len(a)), strings.Compare(a[0].Name, b[0].Name))
	})
	return groups[:min(mostGroups, len(groups))]
}

// obstacles counts what blocks the pod on the node. A cordon and its taint are one.
func obstacles(n *decision.Node) int {
	by := func(plugin string) bool {
		return slices.ContainsFunc(n.Blockers, func(b decision.Blocker) bool { return b.Plugin == plugin })
	}
	if by(names.NodeUnschedulable) && by(names.TaintToleration) {
		return len(n.Blockers) - 1
	}
	return len(n.Blockers)
}

// variants picks nodes of a group that differ in what is to be lifted: of each sort
// the one with the most room, the smallest effort first.
func (s *search) variants(group []*decision.Node) []*decision.Node {
	type variant struct {
		node   *decision.Node
		effort int
		short  float64
	}
	best := map[string]variant{}
	for _, n := range group {
		if !s.spend(s.variantWork(n.Name)) {
			break
		}
		taints := s.untolerated(n.Name)
		labels := s.unlabelled(n.Name)
		near := s.nearMisses(n.Name)
		v := variant{n, len(taints) + len(labels), s.shortage(n.Name)}
		if near != "" {
			v.effort = 0
		}
		key := fmt.Sprint(taints, labels, near)
		if b, known := best[key]; !known || v.short < b.short {
			best[key] = v
		}
	}
	var all []variant
	for _, v := range best { // any order: sorted below
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b variant) int {
		return cmp.Or(cmp.Compare(a.effort, b.effort), cmp.Compare(a.short, b.short), strings.Compare(a.node.Name, b.node.Name))
	})
	var picked []*decision.Node
	for _, v := range all[:min(mostVariants, len(all))] {
		picked = append(picked, v.node)
	}
	return picked
}

// shortage is how much of what the pod requests is missing on the node, as a sum
// of shares.
func (s *search) shortage(node string) (sum float64) {
	row, ok := s.table.Find(node)
	if !ok {
		return 0
	}
	s.eachRequest(func(name v1.ResourceName, request int64) {
		if request > 0 {
			sum += max(0, float64(request-s.free(row, name))) / float64(request)
		}
	})
	return sum
}

func (s *search) free(row table.Row, name v1.ResourceName) int64 {
	_, free := sums.Free(s.table, name, row)
	return free
}

// onNode tries each combination of ways to lift the node's blockers.
func (s *search) onNode(n *decision.Node) {
	row, ok := s.table.Find(n.Name)
	if !ok {
		return
	}
	combos := [][]edit{nil}
	for _, b := range n.Blockers {
		ways := s.ways(b, row)
		if len(ways) == 0 {
			return
		}
		var next [][]edit
		for _, c := range combos {
			for _, w := range ways {
				if len(next) < mostCombos {
					next = append(next, merge(c, w))
				}
			}
		}
		combos = next
	}
	for _, c := range combos {
		s.consider(join(s.base, s.withVictims(c, row)))
	}
}

// merge is two lists of edits in one, each edit once: a cordon has two blockers.
func merge(a, b []edit) []edit {
	all := slices.Clone(a)
	for i := range b {
		if !slices.ContainsFunc(a, func(e edit) bool { return e.say == b[i].say && e.say != "" }) {
			all = append(all, b[i])
		}
	}
	return all
}

// somePods stands in a combination for pods that go, until it is known which.
var somePods = edit{kind: deletePod}

// withVictims puts the pods that have to go in the place of somePods.
func (s *search) withVictims(edits []edit, row table.Row) []edit {
	rest := slices.DeleteFunc(slices.Clone(edits), func(e edit) bool { return e.kind == deletePod && e.remove == nil })
	if len(rest) == len(edits) {
		return edits
	}
	return join(rest, s.fewest(join(s.base, rest), row))
}

// ways are the ways to lift a blocker of a row, those that change the pod first.
func (s *search) ways(b decision.Blocker, row table.Row) (ways [][]edit) {
	switch b.Plugin {
	case names.NodeResourcesFit:
		ways = slices.Concat(s.rename(b, row), s.lower(b, row), s.takeBack(row))
	case names.TaintToleration:
		ways = s.tolerate(row)
	case names.NodeUnschedulable:
		ways = [][]edit{{s.uncordoned(row)}}
	case names.NodeAffinity:
		ways = s.loosenNodes(row)
	case names.InterPodAffinity:
		ways = s.loosenPods(row)
	case names.PodTopologySpread:
		ways = s.loosenSpread(row)
	case names.NodePorts:
		ways = s.movePorts(row)
	case names.VolumeBinding:
		ways = s.makeVolumes()
	case names.DynamicResources:
		ways = s.lowerDevices(row)
	}
	switch b.Plugin {
	case names.NodeAffinity, names.PodTopologySpread, names.VolumeBinding, names.VolumeZone, names.InterPodAffinity:
		ways = append(ways, s.label(row, b.Plugin)...)
	}
	if b.Plugin == names.NodeAffinity && s.chosen {
		sendElsewhere(ways)
	}
	if b.Code == decision.Unschedulable {
		ways = append(ways, []edit{somePods})
	}
	return slices.DeleteFunc(ways, func(w []edit) bool { return len(w) == 0 })
}

// sendElsewhere marks the edits that let the pod go where its node selector and affinity do not
// let it, but for names that are set right.
func sendElsewhere(ways [][]edit) {
	for _, way := range ways {
		for i := range way {
			if way[i].kind != correctName {
				way[i].stage = max(way[i].stage, elsewhere)
			}
		}
	}
}

// choosesOne reports whether the pod's own node selector and affinity allow one of the nodes.
func choosesOne(nodes []decision.Node) bool {
	return slices.ContainsFunc(nodes, func(n decision.Node) bool {
		return !slices.ContainsFunc(n.Blockers, func(b decision.Blocker) bool { return b.Plugin == names.NodeAffinity })
	})
}

// nodeEdit is an edit of the node at the row.
func (s *search) nodeEdit(row table.Row, say string, ops ...Op) edit {
	return edit{kind: changeNode, target: target{"v1", "Node", "", s.table.Name(row)}, ops: ops, say: say}
}
