package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	corehelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

const (
	// restLimit is how long after the faults a cluster may take to come to rest:
	// a lease runs out, connections are given up, client-go waits a minute before
	// it tries again, and pods back off.
	restLimit = 3 * time.Minute
	// flushLimit is the same for a pod that waits for the flush of the queue, as with
	// kube-scheduler: it can preempt, and what it needs besides room came after its
	// last attempt, which found no room. Only what is about room wakes it. Or another
	// process that led, too, has nominated it since or has written its condition: its next
	// attempt ends that.
	flushLimit = queue.DefaultMaxUnschedulable + restLimit
	// auditLimit is the same where a restored backup looks like no restored backup: its
	// versions overtook those that were known before a watch resumed. The audit finds
	// it, which takes ten minutes to come round.
	auditLimit = 10*time.Minute + restLimit
	// silence is how long nothing may change then.
	silence = 40 * time.Second
)

// rest waits until the cluster is as it should be, and looks that it stays so.
func (p *play) rest() {
	time.Sleep(time.Until(p.faults.shown()))
	time.Sleep(time.Until(p.awake()))
	healed := time.Now()
	for from := healed; ; from = time.Now() {
		quiet, settled := p.settle(from)
		if !settled {
			return
		}
		time.Sleep(silence)
		p.check.mu.Lock()
		written := p.check.written
		p.check.mu.Unlock()
		switch {
		case !written.After(quiet):
			if why, _ := p.restless(); why != "" {
				p.check.breach("the cluster does not stay at rest: %s", why)
			}
			return
		case !p.triesAgain() || time.Since(healed) > flushLimit:
			p.check.breach("a pod is changed %s after the cluster came to rest", written.Sub(quiet))
			return
		}
		p.logf("* not at rest: a group was tried again, and a pod was changed")
	}
}

// settle waits from then on until the cluster is as it should be. It returns since when it
// is; settled is false if that took too long.
func (p *play) settle(from time.Time) (quiet time.Time, settled bool) {
	time.Sleep(time.Second) // until the last change is told and has its effect
	longest := restLimit
	for why, limit := p.restless(); why != ""; why, limit = p.restless() {
		longest = max(longest, limit) // what follows a flush comes after it
		if late := time.Since(from); late > longest && (late > auditLimit || !p.check.wasSetBack()) {
			p.check.breach("%s after the faults the cluster is not at rest: %s", late, why)
			return time.Time{}, false
		}
		time.Sleep(time.Second)
	}
	quiet = time.Now()
	if late := quiet.Sub(from); late > longest && !p.audited() {
		p.check.breach("the cluster came to rest %s after the faults, and no audit found anything", late)
	}
	p.logf("* at rest after %s", quiet.Sub(from))
	return quiet, true
}

// triesAgain reports whether there is a group that backs off though nothing happens. Its next
// try may find room among equal nodes, or victims, where its last one found none.
func (p *play) triesAgain() bool {
	nodes, pods := p.listed()
	batch := p.batchWorld(nodes, pods, p.stored())
	return slices.ContainsFunc(pods, batch.backsOff)
}

// listed returns the nodes of the API server, and the pods that have not finished.
func (p *play) listed() (nodes []*v1.Node, pods []*v1.Pod) {
	for _, o := range p.server.List("nodes") {
		nodes = append(nodes, o.(*v1.Node))
	}
	for _, o := range p.server.List("pods") {
		if pod := o.(*v1.Pod); pod.Status.Phase != v1.PodSucceeded {
			pods = append(pods, pod)
		}
	}
	return nodes, pods
}

// audited tells whether an audit of a process that runs found what was not known.
func (p *play) audited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, proc := range p.running { // any order: whether there is one
		if proc.daemon.AuditRepairs() > 0 {
			return true
		}
	}
	return false
}

// awake is when each process that was suspended has gone on for long enough to
// find out that it has lost its lease.
func (p *play) awake() (last time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, proc := range p.running { // any order: the last
		if at := proc.wakes().Add(5 * time.Second); at.After(last) {
			last = at
		}
	}
	return last
}

// restless says what is not as it should be, "" if all is, and for how long it may
// be so.
func (p *play) restless() (why string, limit time.Duration) {
	nodes, pods := p.listed()
	holder, leader := p.holder(), (*process)(nil)
	p.mu.Lock()
	var running []*process
	for _, r := range p.replicas {
		running = append(running, p.running[r])
		if p.running[r].name == holder {
			leader = p.running[r]
		}
	}
	p.mu.Unlock()
	if leader == nil {
		return fmt.Sprintf("nobody leads; the lease is %q's", holder), restLimit
	}
	volumes, others := p.stored(), p.check.boundByOthers()
	named, worded := p.check.byAnother(p.check.named, leader.name), p.check.byAnother(p.check.worded, leader.name)
	if why := volumes.unsettled(pods); why != "" {
		return why, restLimit
	}
	if claim := p.check.leftover(pods, leader.name); claim != "" {
		return fmt.Sprintf("claim %s is reserved for a pod that waits", claim), restLimit
	}
	batch := p.batchWorld(nodes, pods, volumes)
	if why := batch.restless(p.check); why != "" {
		return why, restLimit
	}
	for _, pod := range pods {
		why, limit := podRestless(pod, batch)
		if why == waitsAndNominated && named[pod.UID] {
			limit = flushLimit
		}
		if why != "" && (why != boundAndNominated || !others[pod.UID]) {
			return fmt.Sprintf("pod %s %s", pod.Name, why), limit
		}
		if said := p.check.lastSaid(leader.name, pod); pod.Spec.NodeName == "" && said != "" && said != messageOf(pod) {
			limit := restLimit
			if worded[pod.UID] {
				limit = flushLimit
			}
			return fmt.Sprintf("pod %s has the condition %q, and was not placed because %q", pod.Name, messageOf(pod), said), limit
		}
	}
	for _, proc := range running {
		if why := proc.restless(nodes, pods, batch, proc == leader); why != "" {
			return fmt.Sprintf("%s: %s", proc.name, why), restLimit
		}
	}
	return "", 0
}

// boundAndNominated is wrong of a pod that the only leader has bound. One that somebody
// else binds while its nomination is being written may keep that.
const boundAndNominated = "is bound and nominated"

// waitsAndNominated is wrong of a pod that fits nowhere.
const waitsAndNominated = "waits and is nominated"

// podRestless says what is wrong with a pod, and for how long it may be so.
func podRestless(pod *v1.Pod, w *batchWorld) (why string, limit time.Duration) {
	switch {
	case pod.DeletionTimestamp != nil:
		return "is being deleted", restLimit
	case pod.Spec.NodeName != "" && pod.Status.NominatedNodeName != "":
		return boundAndNominated, restLimit
	case pod.Spec.NodeName != "" && !scheduled(pod):
		return "is bound, and its condition does not say so", restLimit
	case pod.Spec.NodeName != "" || pod.Spec.SchedulerName != v1.DefaultSchedulerName || len(pod.Spec.SchedulingGates) > 0 || w.volumes.misses(pod):
		return "", 0
	}
	why, limit, is := w.waits(pod)
	if !is {
		why, limit = placeable(pod, w.nodes, w.pods, w.volumes)
	}
	if why != "" || w.gated(pod) {
		return why, limit
	}
	if pod.Status.NominatedNodeName != "" && !managed(pod) {
		return waitsAndNominated, restLimit
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse && c.Reason == v1.PodReasonUnschedulable {
			return "", 0
		}
	}
	return "fits nowhere, and has no condition that says so", restLimit
}

// messageOf is what the condition says of why the pod is not bound.
func messageOf(pod *v1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled {
			return c.Message
		}
	}
	return ""
}

// placeable says where a pod that waits fits, or can preempt.
func placeable(pod *v1.Pod, nodes []*v1.Node, pods []*v1.Pod, volumes *stored) (why string, limit time.Duration) {
	room := func(n *v1.Node, without func(*v1.Pod) bool) bool {
		there := func(p *v1.Pod) bool { return p.Spec.NodeName == n.Name && without != nil && without(p) }
		return fits(pod, n, pods, without) && volumes.attaches(pod, n, pods, without) && around(nodes, pods, there).breaks(pod, n.Name) == ""
	}
	for _, n := range nodes {
		switch {
		case !volumes.reach(pod, n) || !volumes.serves(pod, n) || !allowed(pod, n):
		case room(n, nil):
			limit = restLimit
			if managed(pod) { // the extender may have said no
				limit = flushLimit
			}
			return "fits on node " + n.Name, limit
		case !preempts(pod) || volumes.elsewhere(pod, n) || around(nodes, pods, nil).lonely(pod, n.Name) != "" || !room(n, func(other *v1.Pod) bool { return priority(other) < priority(pod) }):
		case len(pod.Spec.Volumes)+len(pod.Spec.ResourceClaims) > 0 || managed(pod) || constrained(pod):
			why, limit = "can preempt pods of node "+n.Name, flushLimit
		default:
			return "can preempt pods of node " + n.Name, restLimit
		}
	}
	return why, limit
}

// scheduled tells whether the condition says that the pod is bound.
func scheduled(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue
	})
}

func priority(p *v1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

func preempts(p *v1.Pod) bool {
	return p.Spec.PreemptionPolicy == nil || *p.Spec.PreemptionPolicy != v1.PreemptNever
}

// fits tells whether the pod fits on the node beside the pods there, except for
// those without which it may count.
func fits(pod *v1.Pod, n *v1.Node, pods []*v1.Pod, without func(*v1.Pod) bool) bool {
	if matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(n); err != nil || !matches || n.Spec.Unschedulable {
		return false
	}
	if _, untolerated := corehelpers.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, pod.Spec.Tolerations,
		func(t *v1.Taint) bool { return t.Effect != v1.TaintEffectPreferNoSchedule }, false); untolerated {
		return false
	}
	sum := requestsOf(pod)
	for _, other := range pods {
		if (other.Spec.NodeName == n.Name || keepsRoom(other, n, pod)) && (without == nil || !without(other)) {
			sum = sum.plus(requestsOf(other))
		}
	}
	return sum.within(roomOf(n))
}

// keepsRoom tells whether a pod that the extender manages keeps room on the node from
// the other one. As with kube-scheduler it stays nominated where the extender has no
// candidate left for it.
func keepsRoom(p *v1.Pod, n *v1.Node, from *v1.Pod) bool {
	return managed(p) && p.Spec.NodeName == "" && p.Status.NominatedNodeName == n.Name && p.UID != from.UID && priority(p) >= priority(from)
}

// nominated are the nodes to which pods are nominated that no extender manages.
func nominated(m *machine.Machine) (nodes []string) {
	for _, node := range m.Queue().NominatedNodes() {
		if slices.ContainsFunc(m.Queue().NominatedTo(node), func(p *object.Pod) bool { return p.API == nil || !managed(p.API) }) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// kept is how many events the queue keeps for pods in flight.
func kept(m *machine.Machine) (n int) {
	for _, events := range m.Queue().EventsInFlight() { // any order: a sum
		n += events
	}
	return n
}

// inspectTime is how long a loop may take to let somebody look.
const inspectTime = 5 * time.Second

// untrue names a pod whose condition says something else than an attempt would now.
func untrue(m *machine.Machine, pods []*v1.Pod) string {
	for _, pod := range pods {
		e := m.Entry(pod.UID)
		if e.Place() != queue.Unschedulable {
			continue
		}
		if c := m.PresentCondition(e.Pod); c != nil && c.Message != messageOf(pod) {
			return fmt.Sprintf("pod %s has the condition %q, and is not placed because %q", pod.Name, messageOf(pod), c.Message)
		}
	}
	return ""
}

// restless says what the process believes that is not so.
func (proc *process) restless(nodes []*v1.Node, pods []*v1.Pod, batch *batchWorld, leads bool) (why string) {
	ctx, cancel := context.WithTimeout(context.Background(), inspectTime)
	defer cancel()
	err := proc.daemon.Inspect(ctx, func(m *machine.Machine) {
		if err := m.Verify(); err != nil {
			why = err.Error()
			return
		}
		bound := 0
		for _, pod := range pods {
			on := m.Table().Pod(pod.UID)
			switch {
			case pod.Spec.NodeName == "" && on != nil:
				why = fmt.Sprintf("pod %s is taken to be on node %s and is on none", pod.Name, m.Table().Name(on.Row))
			case pod.Spec.NodeName == "":
			case on == nil:
				why = fmt.Sprintf("pod %s on node %s is not known", pod.Name, pod.Spec.NodeName)
			case m.Table().Name(on.Row) != pod.Spec.NodeName:
				why = fmt.Sprintf("pod %s is taken to be on node %s and is on %s", pod.Name, m.Table().Name(on.Row), pod.Spec.NodeName)
			default:
				bound++
			}
		}
		if leads && why == "" {
			why = untrue(m, pods)
		}
		ours := count(pods, func(p *v1.Pod) bool { return p.Spec.NodeName != "" || p.Spec.SchedulerName == v1.DefaultSchedulerName })
		counts, again := m.Queue().Counts(), batch.triedAgain(m)
		switch {
		case why != "":
		case m.Table().PlacedPods() != bound:
			why = fmt.Sprintf("%d pods are placed, the API server has %d", m.Table().PlacedPods(), bound)
		case len(m.Pods()) != ours || m.ExtenderCycles() > 0 || counts.InFlight == 0 && kept(m) > 0:
			why = fmt.Sprintf("%d pods are known, there are %d; %d calls of extenders and %d events are kept", len(m.Pods()), ours, m.ExtenderCycles(), kept(m))
		case m.Assumed() > 0:
			why = fmt.Sprintf("%d pods are assumed", m.Assumed())
		case leads && m.Unshown() > 0: // a victim is still to be deleted
			why = fmt.Sprintf("%d pods are not shown as they were told to be", m.Unshown())
		case len(nominated(m)) > 0:
			why = fmt.Sprintf("pods are nominated to %v", nominated(m))
		case m.Table().Live() != len(nodes):
			why = fmt.Sprintf("%d nodes are known, there are %d", m.Table().Live(), len(nodes))
		case leads && len(nodes) > 0 && counts.Active+counts.Backoff+counts.ErrorBackoff+counts.InFlight > again: // without nodes pods are tried again and again
			why = fmt.Sprintf("pods are under way: %+v", counts)
		}
	})
	switch {
	case err != nil:
		return "its loop does not answer: " + err.Error()
	case why == "" && leads && proc.daemon.Writing() > 0:
		return fmt.Sprintf("%d writes are under way", proc.daemon.Writing())
	}
	return why
}
