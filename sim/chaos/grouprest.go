package chaos

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/loop"
)

// batchWorld is what a pod of a group, or of a quota, waits in.
type batchWorld struct {
	nodes   []*v1.Node
	pods    []*v1.Pod
	volumes *stored
	gangs   map[string]*gang
	quotas  quotaList
}

func (p *play) batchWorld(nodes []*v1.Node, pods []*v1.Pod, volumes *stored) *batchWorld {
	return &batchWorld{nodes, pods, volumes, p.gangs(pods), p.quotaList(pods)}
}

// restless says what is wrong with groups and quotas.
func (w *batchWorld) restless(c *check) string {
	for _, name := range sortedKeys(w.gangs) {
		if why := w.gangs[name].restless(c.isHurt(name)); why != "" {
			return why
		}
	}
	return w.quotas.untrue()
}

// waits says what is wrong with a pod that waits and is in a group or has quotas to keep,
// and for how long it may be so. It is false for any other pod.
func (w *batchWorld) waits(pod *v1.Pod) (why string, limit time.Duration, is bool) {
	if g := w.gangs[groupOf(pod)]; g != nil {
		why, limit = w.gangWaits(g, pod)
		return why, limit, true
	}
	if w.quotas == nil {
		return "", 0, false
	}
	for _, n := range w.nodes {
		if w.quotas.admits(pod, 1) && fits(pod, n, w.pods, nil) && w.volumes.reach(pod, n) && allowed(pod, n) {
			return "fits on node " + n.Name + ", and its quota admits it", restLimit, true
		}
		if w.reclaims(pod, n) {
			return "is guaranteed what pods of node " + n.Name + " have borrowed", flushLimit, true
		}
	}
	return "", 0, true
}

// gangWaits says that the pod's group could be placed, as far as that is easily told: its
// pods are alike.
func (w *batchWorld) gangWaits(g *gang, pod *v1.Pod) (string, time.Duration) {
	need := max(1, g.min-len(g.bound))
	if g.unlike || g.min == 0 || len(g.waiting) < need || dependsOnMore(pod) {
		return "", 0
	}
	if !w.quotas.admits(pod, need) {
		return "", 0
	}
	room, preempted := 0, 0
	for _, n := range w.nodes {
		if !slices.ContainsFunc(w.pods, func(p *v1.Pod) bool { return groupOf(p) != groupOf(pod) && keepsRoom(p, n, pod) }) {
			room += copies(pod, n, w.pods, nil)
		}
		preempted += copies(pod, n, w.pods, func(p *v1.Pod) bool { return priority(p) < priority(pod) })
	}
	switch {
	case room >= need:
		return fmt.Sprintf("and %d of its group fit, and %d are needed", room, need), restLimit
	case w.quotas == nil && preempts(pod) && preempted >= need:
		return fmt.Sprintf("and its group can preempt: %d fit then, and %d are needed", preempted, need), flushLimit
	}
	return "", 0
}

// copies is how many such pods fit on the node beside the pods there, except for those
// without which it may count.
func copies(pod *v1.Pod, n *v1.Node, pods []*v1.Pod, without func(*v1.Pod) bool) int {
	if !fits(pod, n, nil, nil) {
		return 0
	}
	sum, room := amounts{}, roomOf(n)
	for _, other := range pods {
		if other.Spec.NodeName == n.Name && (without == nil || !without(other)) {
			sum = sum.plus(requestsOf(other))
		}
	}
	for many := 0; ; many++ {
		if sum = sum.plus(requestsOf(pod)); !sum.within(room) {
			return many
		}
	}
}

// gated reports whether the pod's group lacks its object or pods, so that none is tried.
func (w *batchWorld) gated(pod *v1.Pod) bool {
	g := w.gangs[groupOf(pod)]
	return g != nil && (g.min == 0 || len(g.bound)+len(g.waiting) < g.min || g.unlike)
}

// learn records a group or a quota.
func (k *cluster) learn(o object.Object) {
	switch o := o.(type) {
	case *object.ElasticQuota:
		k.queues[o.Namespace] = o
	case *object.PodGroup:
		k.minimums[groupResource(o.Kind)+"/"+o.Namespace+"/"+o.Name] = o.MinCount
	}
}

func (k *cluster) lose(e machine.ObjectGone) {
	if e.Kind == object.ElasticQuotas {
		delete(k.queues, e.Namespace)
	}
	delete(k.minimums, groupResource(e.Kind)+"/"+e.Namespace+"/"+e.Name)
}

// groupResource is the resource of a kind as the API server in memory has it.
func groupResource(k object.Kind) string { return k.Resource() + "." + k.GroupVersion().Group }

// placedWhole looks that a process which places pods of a group in a step has enough of them
// on nodes then. While it knows fewer than the minimum and one of them is bound, others have
// finished or were lost, and whoever takes their place may be placed (gangscheduling.required).
func (c *check) placedWhole(proc *process, k *cluster, s loop.Step) {
	placed := map[string]bool{}
	for _, effect := range s.Effects {
		if e, is := effect.(machine.AttemptDone); is && placesPod(e.Decision) && c.specs[e.Decision.UID] != nil {
			placed[groupOf(c.specs[e.Decision.UID])] = true
		}
	}
	delete(placed, "")
	for _, name := range sortedKeys(placed) {
		known, some := 0, false
		for uid, p := range k.pods { // any order: a sum
			if spec := c.specs[uid]; spec != nil && groupOf(spec) == name {
				known, some = known+1, some || p.NodeName != ""
			}
		}
		on, least := 0, k.minimums[name]
		for uid := range k.perhaps { // any order: a sum
			if p := c.specs[uid]; p != nil && groupOf(p) == name {
				on++
				if words := p.Labels[labelsPrefix+"/min-available"]; words != "" {
					least, _ = strconv.Atoi(words)
				}
			}
		}
		if on < least && (known >= least || !some) && !c.hurt[name] && !c.setBack && !k.panicked {
			c.note("%s places pods of group %s, and then has %d of %d", proc.name, name, on, least)
		}
	}
}

// triedAgain is how many pods of groups back off though nothing happens.
func (w *batchWorld) triedAgain(m *machine.Machine) int {
	return count(w.pods, func(p *v1.Pod) bool {
		place := m.Entry(p.UID).Place()
		return w.backsOff(p) && (place == queue.Backoff || place == queue.ErrorBackoff || place == queue.Active)
	})
}

// backsOff reports whether the pod's group, if it does not fit, is tried again though nothing
// happens. It waits for what may help it if its pods are alike, and nothing but the nodes and
// quotas matters to them.
func (w *batchWorld) backsOff(p *v1.Pod) bool {
	g := w.gangs[groupOf(p)]
	return g != nil && (g.unlike || dependsOnMore(p))
}

// dependsOnMore reports whether more than the room and the labels of a node matters to the pod.
func dependsOnMore(p *v1.Pod) bool {
	return len(p.Spec.Volumes)+len(p.Spec.ResourceClaims) > 0 || managed(p) || constrained(p)
}
