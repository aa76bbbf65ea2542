package fix

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/workload"
)

// Bounds of the search for pods whose going would help.
const (
	mostCrowded = 40  // nodes that are looked at
	mostHolders = 100 // nodes with pods that are in the way of others
	mostSets    = 600 // sets of pods of one node that are tried
)

// gates removes the scheduling gates, without which no attempt is made.
func (s *search) gates() []edit {
	if len(s.pod.Gates) == 0 {
		return nil
	}
	return []edit{{kind: removeGate, say: "remove the scheduling " + terminal.Plural(len(s.pod.Gates), "gate", "gates") + " " + list(s.pod.Gates),
		ops: []Op{{Op: "remove", Path: "/spec/schedulingGates"}}}}
}

// deletions looks for the fewest pods of one node without which the pod is placed.
func (s *search) deletions(d *decision.Decision) {
	best := -1
	for _, n := range s.crowded(d) {
		if best > 0 && n.least > best {
			break
		}
		if gone := s.fewest(s.base, n.row); len(gone) > 0 && (best < 0 || len(gone) < best) {
			if s.consider(join(s.base, gone)) {
				best = len(gone)
			}
		}
	}
	if best < 0 {
		s.holders(d)
	}
}

// crowdedNode is a node on which pods are in the way, and the least number of
// them.
type crowdedNode struct {
	row      table.Row
	least    int
	priority int32 // of the least important pod that alone would do
	short    float64
}

// crowded are the nodes where nothing blocks the pod but what others take, those
// first where the fewest pods have to go.
func (s *search) crowded(d *decision.Decision) (all []crowdedNode) {
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if n.Feasible || slices.ContainsFunc(n.Blockers, func(b decision.Blocker) bool { return b.Code != decision.Unschedulable }) {
			continue
		}
		row, ok := s.table.Find(n.Name)
		if !ok {
			continue
		}
		if !s.spend(1 + len(s.table.Pods(row))*(1+len(s.pod.Demand.Requests.Scalars))/100) {
			break
		}
		if c := s.crowdedAt(row); c.least <= mostEdits {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b crowdedNode) int {
		return cmp.Or(cmp.Compare(a.least, b.least), cmp.Compare(a.priority, b.priority), cmp.Compare(a.short, b.short), cmp.Compare(s.table.Name(a.row), s.table.Name(b.row)))
	})
	return all[:min(mostCrowded, len(all))]
}

// crowdedAt counts the pods of the row that have to go so that resources suffice.
func (s *search) crowdedAt(row table.Row) crowdedNode {
	c := crowdedNode{row: row, least: 1, priority: 1<<31 - 1, short: s.shortage(s.table.Name(row))}
	type need struct {
		short int64
		frees []int64
	}
	var needs []need
	s.eachRequest(func(name v1.ResourceName, request int64) {
		if short := request - s.free(row, name); short > 0 {
			n := need{short: short}
			for _, pl := range s.table.Pods(row) {
				n.frees = append(n.frees, pl.Pod.Demand.Usage.Of(name))
			}
			needs = append(needs, n)
		}
	})
	for i, pl := range s.table.Pods(row) {
		if !slices.ContainsFunc(needs, func(n need) bool { return n.frees[i] < n.short }) {
			c.priority = min(c.priority, pl.Pod.Priority)
		}
	}
	for _, n := range needs {
		slices.SortFunc(n.frees, func(a, b int64) int { return cmp.Compare(b, a) })
		count := 0
		for ; n.short > 0 && count < len(n.frees); count++ {
			n.short -= n.frees[count]
		}
		c.least = max(c.least, count)
	}
	return c
}

func (s *search) eachRequest(f func(name v1.ResourceName, request int64)) {
	r := &s.pod.Demand.Requests
	f(v1.ResourceCPU, r.MilliCPU)
	f(v1.ResourceMemory, r.Memory)
	f(v1.ResourceEphemeralStorage, r.EphemeralStorage)
	for _, q := range r.Scalars {
		f(q.Name, q.Value)
	}
}

// fewest returns the fewest pods of the row, of them the least important, without which the pod
// fits there once the edits are made. It returns nil if that does not help.
func (s *search) fewest(edits []edit, row table.Row) []edit {
	if s.crowdedAt(row).least > mostEdits {
		return nil
	}
	fits := func(gone []edit) bool {
		blockers, ok := s.blockers(join(edits, gone), row)
		return ok && len(blockers) == 0
	}
	all := s.departures(row)
	if len(all) == 0 || !fits(all) {
		return nil
	}
	sets := mostSets
	for size := 1; size <= len(all) && sets > 0; size++ {
		if gone := choose(all, size, &sets, fits); gone != nil {
			return gone
		}
	}
	return reduce(all, fits)
}

// podsOn are the pods that run on the row or are nominated to it, the least
// important first, but for replicas of the pod's own controller: that would replace one,
// and another replica would wait instead.
func (s *search) podsOn(row table.Row) (pods []*object.Pod) {
	for _, pl := range s.table.Pods(row) {
		pods = append(pods, pl.Pod)
	}
	for _, p := range s.machine.Nominator().NominatedTo(s.table.Name(row)) {
		if p.UID != s.pod.UID && p.Priority >= s.pod.Priority {
			pods = append(pods, p)
		}
	}
	pods = slices.DeleteFunc(pods, func(p *object.Pod) bool { return s.isReplica(p, s.pod) })
	slices.SortFunc(pods, func(a, b *object.Pod) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

// departures are the pods of the row that can be made to go, the least important first.
// Nothing is won by those of DaemonSets and static ones, which come back, and by those
// whose replacement would be tried before the pod.
func (s *search) departures(row table.Row) (all []edit) {
	node := s.table.Name(row)
	for _, p := range s.podsOn(row) {
		switch {
		case p.Controller.Replacement == object.SameNode, p.Controller.Replacement == object.AnyNode && p.Priority > s.pod.Priority:
		case p.Terminating:
			if e := s.release(p, node); e != nil {
				all = append(all, *e)
			}
		case p.NodeName == "":
			all = append(all, edit{kind: deletePod, remove: p, say: fmt.Sprintf("delete pod %s, which waits for %s", p.Key(), node)})
		default:
			all = append(all, edit{kind: deletePod, remove: p, say: fmt.Sprintf("delete pod %s on %s", p.Key(), node)})
		}
	}
	return all
}

// release lets a pod go that is being deleted: one that finalizers hold, or whose kubelet
// does not answer. Others go by themselves.
func (s *search) release(p *object.Pod, node string) *edit {
	e := &edit{kind: releasePod, stage: undoes, remove: p}
	at := slices.IndexFunc(s.set.Pods, func(o *v1.Pod) bool { return o.UID == p.UID })
	switch {
	case at >= 0 && len(s.set.Pods[at].Finalizers) > 0:
		finalizers := s.set.Pods[at].Finalizers
		e.say = fmt.Sprintf("take the %s %s off pod %s, which is terminating on %s", terminal.Plural(len(finalizers), "finalizer", "finalizers"), list(finalizers), p.Key(), node)
	case Lost(s.nodes[node]):
		e.say = fmt.Sprintf("delete pod %s, which is terminating on the lost node %s, by force", p.Key(), node)
	default:
		return nil
	}
	return e
}

// Lost reports whether the node's kubelet has stopped to answer.
func Lost(n *v1.Node) bool {
	return n != nil && (slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady && c.Status == v1.ConditionUnknown }) ||
		slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool {
			return t.Key == v1.TaintNodeUnreachable || t.Key == v1.TaintNodeOutOfService
		}))
}

// inVain reports whether it is no help that the pod preempts the victims: one of them is being
// deleted already, which that does not hasten, or is of the pod's own workload, of which another
// pod waits then.
func (s *search) inVain(p *object.Pod, victims []types.NamespacedName, node string) bool {
	row, ok := s.table.Find(node)
	return ok && slices.ContainsFunc(s.table.Pods(row), func(pl *table.Placed) bool {
		return slices.Contains(victims, pl.Pod.NamespacedName()) && (pl.Pod.Terminating || s.sameWorkload(p, pl.Pod))
	})
}

// isReplica reports whether one controller has both pods: as the scheduler knows it or, of
// controllers that it does not know, such as Jobs, as their API objects have it.
func (s *search) isReplica(a, b *object.Pod) bool {
	if a.Namespace != b.Namespace || a.Controller.Name != "" {
		return a.Namespace == b.Namespace && a.Controller == b.Controller
	}
	x, y := s.owner(a), s.owner(b)
	return x != nil && y != nil && x.Kind == y.Kind && x.Name == y.Name
}

func (s *search) owner(p *object.Pod) *metav1.OwnerReference {
	if api := s.apiOf(p); api != nil {
		return metav1.GetControllerOfNoCopy(api)
	}
	return nil
}

// sameWorkload reports whether both pods are of one controller, of one pod group or, as far as the
// API objects of both are known, of one Deployment.
func (s *search) sameWorkload(a, b *object.Pod) bool {
	if s.isReplica(a, b) || a.PodGroup() != "" && b.PodGroup() != "" && a.GroupKey() == b.GroupKey() {
		return true
	}
	x, y := s.apiOf(a), s.apiOf(b)
	if x == nil || y == nil || a.Namespace != b.Namespace {
		return false
	}
	kind, name := workload.OfPod(x)
	otherKind, otherName := workload.OfPod(y)
	return kind != "" && kind == otherKind && name == otherName
}

// apiOf returns the API object of the pod, nil where the set does not have it.
func (s *search) apiOf(p *object.Pod) *v1.Pod {
	if s.apis == nil {
		s.apis = map[types.UID]*v1.Pod{}
		for _, api := range s.set.Pods {
			s.apis[api.UID] = api
		}
	}
	return s.apis[p.UID]
}

// choose finds the first set of that size that will do, in the order of the list.
// It counts the sets that it tries off.
func choose(list []edit, size int, sets *int, will func([]edit) bool) []edit {
	var pick func(from int, chosen []edit) []edit
	pick = func(from int, chosen []edit) []edit {
		if len(chosen) == size {
			if *sets--; *sets >= 0 && will(chosen) {
				return slices.Clone(chosen)
			}
			return nil
		}
		for i := from; i <= len(list)-(size-len(chosen)) && *sets > 0; i++ {
			if found := pick(i+1, append(chosen, list[i])); found != nil {
				return found
			}
		}
		return nil
	}
	return pick(0, nil)
}

// reduce spares what it can, the most important first: twice as many at a time for as long
// as that goes well.
func reduce(list []edit, will func([]edit) bool) []edit {
	for end, n := len(list), 1; end > 0; {
		n = min(n, end)
		less := slices.Delete(slices.Clone(list), end-n, end)
		switch {
		case will(less):
			list, end, n = less, end-n, 2*n
		case n == 1:
			end--
		default:
			n /= 2
		}
	}
	return list
}

// holders looks for a node whose pods are in the way beyond it: they share a claim
// or a topology domain with the pod, or keep it away.
func (s *search) holders(d *decision.Decision) {
	beyond := []string{names.InterPodAffinity, names.PodTopologySpread, names.VolumeRestrictions}
	if !slices.ContainsFunc(d.RejectedBy, func(name string) bool { return slices.Contains(beyond, name) }) {
		return
	}
	tried := 0
	for _, row := range s.table.All() {
		if s.table.Node(row) == nil {
			continue
		}
		if !s.spend(1 + len(s.table.Pods(row))/10) {
			return
		}
		gone := slices.DeleteFunc(s.departures(row), func(e edit) bool { return !s.inTheWay(e.remove) })
		if len(gone) == 0 {
			continue
		}
		will := func(set []edit) bool { return s.try(join(s.base, set)).ok }
		if will(gone) {
			s.consider(join(s.base, reduce(gone, will)))
			return
		}
		if tried++; tried == mostHolders {
			return
		}
	}
}

// inTheWay reports whether the other pod may keep the pod away, wherever that is.
func (s *search) inTheWay(p *object.Pod) bool {
	if s.pod.Affinity != nil {
		for i := range s.pod.Affinity.AntiAffinity {
			if s.pod.Affinity.AntiAffinity[i].MayMatch(p.Namespace, p.Labels) {
				return true
			}
		}
	}
	if p.Affinity != nil {
		for i := range p.Affinity.AntiAffinity {
			if p.Affinity.AntiAffinity[i].MayMatch(s.pod.Namespace, s.pod.Labels) {
				return true
			}
		}
	}
	for i := range s.pod.Volumes {
		if v := &s.pod.Volumes[i]; v.Claimed && p.Namespace == s.pod.Namespace && p.UsesPVC(v.Claim, true) {
			return true
		}
	}
	return s.pod.Spread != nil && p.Namespace == s.pod.Namespace
}
