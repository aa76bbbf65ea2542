package chaos

import (
	"encoding/json"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	resourcehelper "k8s.io/component-helpers/resource"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/loop"
	"github.com/berth-scheduler/berth/sim/apiserver"
)

// check follows a run and notes what must not be. It sees the API server's
// changes, the requests and the steps of each process, and believes none of
// them. It must not call the API server.
type check struct {
	play *play

	mu       sync.Mutex
	breaches []string
	digest   hash.Hash64 // of all changes
	requests int
	bindings int

	holder  string               // of the lease
	renewed time.Time            // when it was
	unclear time.Time            // until then nobody can tell who holds it
	led     map[string]time.Time // when a process got the lease

	bound   map[types.UID]*onNode // pods, as the API server has them
	named   map[types.UID]author  // who nominated pods
	worded  map[types.UID]author  // who wrote their conditions
	room    map[string]amounts    // the most that a node of the name ever had
	setBack bool                  // a backup was restored
	read    map[string]bool       // consistently since then, by process and path
	claims  map[string]string     // the volumes that claims are bound to, by the claim's name
	made    map[string]bool       // claims whose volumes the driver makes

	specs  map[types.UID]*v1.Pod // what the pods ask for
	hurt   map[string]bool       // groups that have lost a pod which was bound, or are not what they were
	passed map[string][]string   // nodes, by process and UID of the pod

	deviceClaims map[string]*resourcev1.ResourceClaim
	reservedBy   map[reservation]string // the process

	knows    map[string]*knowledge // by process
	underway map[string]int        // bindings, by process and UID of the pod
	written  time.Time             // when a scheduler last changed a pod
}

// amounts are what counts of resources.
type amounts struct{ milliCPU, memory, pods int64 }

func (a amounts) plus(b amounts) amounts {
	return amounts{a.milliCPU + b.milliCPU, a.memory + b.memory, a.pods + b.pods}
}

func (a amounts) within(b amounts) bool {
	return a.milliCPU <= b.milliCPU && a.memory <= b.memory && a.pods <= b.pods
}

func amountsOf(list v1.ResourceList, pods int64) amounts {
	return amounts{list.Cpu().MilliValue(), list.Memory().Value(), pods}
}

func requestsOf(p *v1.Pod) amounts {
	return amountsOf(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}), 1)
}

func roomOf(n *v1.Node) amounts {
	return amountsOf(n.Status.Allocatable, n.Status.Allocatable.Pods().Value())
}

// author is who wrote a part of a pod's status last, "" for nobody of the story, and when.
type author struct {
	by string
	at time.Time
}

// onNode is a pod that takes room. by is the process that bound it, "" for
// everybody else.
type onNode struct {
	key, node, by string
	at            time.Time // when it was bound
	takes         amounts
	claims        []string // of volumes
	contended     bool     // it was bound while two may have led
}

// knowledge is what a process was told and has decided, by step.
type knowledge struct {
	step    int
	decided map[types.UID]placed
	told    map[types.UID]placed
	missed  map[types.UID]bool // the step that told of it panicked, and it was not told again yet
	limits  map[string]limited // by node
	claims  map[string]int     // the step in which it was told of the claim
	cluster cluster
}

type placed struct {
	node string
	step int
}

func newCheck(p *play) *check {
	return &check{play: p, digest: fnv.New64a(), bound: map[types.UID]*onNode{}, named: map[types.UID]author{}, worded: map[types.UID]author{}, claims: map[string]string{}, made: map[string]bool{}, read: map[string]bool{}, passed: map[string][]string{}, specs: map[types.UID]*v1.Pod{}, hurt: map[string]bool{},
		deviceClaims: map[string]*resourcev1.ResourceClaim{}, reservedBy: map[reservation]string{}, room: map[string]amounts{},
		knows: map[string]*knowledge{}, underway: map[string]int{}, unclear: p.begin, led: map[string]time.Time{}}
}

// breach notes what must not be.
func (c *check) breach(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(format, args...)
}

func (c *check) note(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	c.breaches = append(c.breaches, what)
	c.play.logf("BREACH: %s", what)
}

// changed is told of each change in the API server.
func (c *check) changed(change *apiserver.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintln(c.digest, time.Since(c.play.begin), change.By, change.Resource, change.Type, change.Object.GetName(), c.holder)
	switch o := change.Object.(type) {
	case *coordinationv1.Lease:
		c.leaseChanged(o, change)
	case *v1.Node:
		if r, now := c.room[o.Name], roomOf(o); change.Type != watch.Deleted {
			c.room[o.Name] = amounts{max(r.milliCPU, now.milliCPU), max(r.memory, now.memory), max(r.pods, now.pods)}
		}
	case *v1.PersistentVolumeClaim:
		c.claims[o.Name] = o.Spec.VolumeName
		c.made[o.Name] = *o.Spec.StorageClassName == madeClass
	case *resourcev1.ResourceClaim:
		c.deviceClaimChanged(o, change)
	case *v1.PersistentVolume:
		c.volumeChanged(o, change)
	case *v1.Pod:
		c.podChanged(o, change)
	case *schedulingv1beta1.PodGroup, *decode.PodGroup:
		c.groupChanged(change.Object, change)
	}
}

func (c *check) leaseChanged(l *coordinationv1.Lease, change *apiserver.Change) {
	before := c.holder
	c.renewed, c.holder = time.Now(), ""
	if h := l.Spec.HolderIdentity; h != nil && change.Type != watch.Deleted {
		c.holder = *h
	}
	if c.holder != before {
		c.led[c.holder] = c.renewed
	}
	if change.By == "" {
		c.unclear = time.Now().Add(leaseTime)
	}
}

func (c *check) podChanged(p *v1.Pod, change *apiserver.Change) {
	before, _ := change.Before.(*v1.Pod)
	c.specs[p.UID] = p
	c.memberChanged(p, before, change)
	if before == nil || before.Status.NominatedNodeName != p.Status.NominatedNodeName {
		c.named[p.UID] = author{change.By, time.Now()}
	}
	if before == nil || messageOf(before) != messageOf(p) {
		c.worded[p.UID] = author{change.By, time.Now()}
	}
	if change.By != "" {
		if groupOf(p) == "" { // else it may be tried again and again
			c.written = time.Now()
		}
		if p.Spec.SchedulerName != v1.DefaultSchedulerName && change.Type != watch.Deleted && p.DeletionTimestamp == nil && before != nil && before.Spec.NodeName != p.Spec.NodeName {
			c.note("%s bound pod %s, which is another scheduler's", change.By, p.Name)
		}
	}
	if change.Type == watch.Deleted || p.Spec.NodeName == "" || p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed {
		delete(c.bound, p.UID)
		return
	}
	if b := c.bound[p.UID]; b != nil {
		if change.By != "" && change.By == b.by && !scheduled(p) {
			c.note("%s has bound pod %s and then writes that it is not scheduled", change.By, b.key)
		}
		return
	}
	c.bound[p.UID] = &onNode{p.Namespace + "/" + p.Name, p.Spec.NodeName, change.By, time.Now(), requestsOf(p), claimsOf(p), time.Now().Before(c.unclear)}
	if change.By != "" {
		c.bindings++
		c.play.logf("%s bound %s to %s", change.By, p.Name, p.Spec.NodeName)
		c.overcommitted(p.Spec.NodeName, change.By)
		c.boundWithVolumes(p, change.By)
		c.boundWithDevices(p, change.By)
		c.boundAsAllowed(p, change.By)
	}
}

// boundByOthers are the pods that no scheduler of the story has bound, or one of two
// that led at a time, as somebody had deleted the lease.
func (c *check) boundByOthers() map[types.UID]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	others := map[types.UID]bool{}
	for uid, p := range c.bound { // any order: a set
		others[uid] = p.by == "" || p.contended
	}
	return others
}

// byAnother are the pods whose part of the status was written last by a process that no
// longer leads, after the one that leads now had got the lease: two led at a time, or
// the write was slow.
func (c *check) byAnother(authors map[types.UID]author, leader string) map[types.UID]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	another := map[types.UID]bool{}
	for uid, a := range authors { // any order: a set
		another[uid] = a.by != "" && a.by != leader && a.at.After(c.led[leader])
	}
	return another
}

// overcommitted looks if a process has bound more pods to the node than fit:
// more than it knew of when it decided on each of them, or more than former
// leaders left.
func (c *check) overcommitted(node, by string) {
	k := c.knows[by]
	if k == nil {
		return
	}
	for last, p := range c.bound { // any order: each breach is one
		at, ours := k.decided[last]
		if p.by != by || p.node != node || !ours {
			continue
		}
		sum, others := amounts{}, []*onNode(nil)
		for uid, other := range c.bound { // any order: a sum
			if other.node == node && c.counts(k, uid, other, by, at) {
				if sum = sum.plus(other.takes); uid != last {
					others = append(others, other)
				}
			}
		}
		if room, known := c.room[node]; known && !sum.within(room) {
			c.note("%s over-committed node %s with pod %s: %+v of %+v", by, node, p.key, sum, room)
			return
		}
		if c.overAttached(k, at, p, others) {
			c.note("%s over-committed node %s with the volumes of pod %s", by, node, p.key)
			return
		}
	}
}

// counts tells whether the process, when it decided at that step, had to count
// the pod: it had decided on it or was told of it, or a former leader had bound
// it before the process got the lease.
func (c *check) counts(k *knowledge, uid types.UID, p *onNode, by string, at placed) bool {
	decided, ours := k.decided[uid]
	told, known := k.told[uid]
	switch {
	case ours && p.by == by:
		return decided.step <= at.step
	case known:
		return told.step < at.step
	}
	return p.by != "" && p.by != by && p.at.Before(c.led[by]) && !k.missed[uid]
}

// breached tells whether something was that must not be.
func (c *check) breached() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.breaches) > 0
}

// wasSetBack tells whether the API server was set back.
func (c *check) wasSetBack() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.setBack
}

// restored is told that the API server was set back.
func (c *check) restored() {
	pods := c.play.server.List("pods")
	claims, deviceClaims := c.play.server.List("persistentvolumeclaims"), c.play.server.List(resourceClaims)
	lease, _ := c.play.server.Get("leases.coordination.k8s.io", "kube-system", "kube-scheduler").(*coordinationv1.Lease)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setBack = true
	clear(c.read)
	clear(c.named)
	clear(c.worded)
	clear(c.claims)
	for _, o := range claims {
		c.claims[o.GetName()] = o.(*v1.PersistentVolumeClaim).Spec.VolumeName
	}
	clear(c.deviceClaims)
	for _, o := range deviceClaims {
		c.deviceClaims[o.GetName()] = o.(*resourcev1.ResourceClaim)
	}
	before := c.bound
	c.bound = map[types.UID]*onNode{}
	for _, o := range pods {
		if p := o.(*v1.Pod); p.Spec.NodeName != "" {
			c.bound[p.UID] = &onNode{p.Namespace + "/" + p.Name, p.Spec.NodeName, "", time.Now(), requestsOf(p), claimsOf(p), true}
			if b := before[p.UID]; b != nil {
				c.bound[p.UID] = b
			}
		}
	}
	c.holder, c.unclear = "", time.Now().Add(2*leaseTime)
	if lease != nil && lease.Spec.HolderIdentity != nil {
		c.holder = *lease.Spec.HolderIdentity
	}
}

// leaseTime is how long the lease lasts, by default, and heldTime how long a scheduler
// may send by it: it leaves a retry period.
const (
	leaseTime = 15 * time.Second
	heldTime  = leaseTime - 2*time.Second
)

// sent is told of a request before it is on its way.
func (c *check) sent(proc *process, r *http.Request, class string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	switch class {
	case bindRequest:
		of := proc.name + " " + bindingOf(r)
		if c.underway[of]++; c.underway[of] > 1 {
			c.note("%s sends a second binding of pod %s while one is under way", proc.name, podOf(r))
		}
	case evictRequest, statusRequest, writeRequest:
	default:
		return
	}
	if time.Now().Before(c.unclear) {
		return
	}
	if c.holder != proc.name || time.Since(c.renewed) >= heldTime {
		c.note("%s sends %s %s, and the lease is %q's, renewed %s ago", proc.name, r.Method, r.URL.Path, c.holder, time.Since(c.renewed))
	}
}

// arrived is told of a request that the API server is about to answer at a revision.
func (c *check) arrived(process string, r *http.Request, revision int64) {
	if r.Method != http.MethodGet {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	query, of := r.URL.Query(), process+" "+r.URL.Path
	version, _ := strconv.ParseInt(query.Get("resourceVersion"), 10, 64)
	switch {
	case !apiserver.Watches(r):
		c.read[of] = c.read[of] || version == 0 && query.Get("resourceVersion") == ""
	case version > revision && c.setBack && c.read[of] && query.Get("sendInitialEvents") == "":
		c.note("%s watches %s from version %d on, and could read since the restored backup that it is %d", process, r.URL.Path, version, revision)
	}
}

// bindingOf is the UID of the pod that the request binds.
func bindingOf(r *http.Request) string {
	body, err := r.GetBody()
	if err != nil {
		return ""
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return ""
	}
	var asked extenderv1.ExtenderBindingArgs
	if r.URL.Host == extenderHost && json.Unmarshal(text, &asked) == nil {
		return string(asked.PodUID)
	}
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if b, ok := o.(*v1.Binding); ok && err == nil {
		return string(b.UID)
	}
	return ""
}

// answered is told that the client waits for the request no more.
func (c *check) answered(proc *process, r *http.Request, class string) {
	if class == bindRequest {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.underway[proc.name+" "+bindingOf(r)]--
	}
}

// observe is told of each step of a process.
func (c *check) observe(proc *process, s loop.Step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.known(proc.name)
	k.step++
	c.decides(proc, &k.cluster, s)
	switch e := s.Event.(type) {
	case machine.PodSet:
		k.tell(e.Pod.UID, e.Pod.NodeName)
	case machine.PodGone:
		k.forget(e.UID)
	case machine.ObjectSet:
		k.learn(e.Object)
	case machine.ReadReply:
		switch {
		case e.Err != nil:
		case e.Pod == nil || e.Pod.Terminal:
			k.forget(e.UID)
		default:
			k.tell(e.Pod.UID, e.Pod.NodeName)
		}
	case machine.Rewound:
		clear(k.decided)
		clear(k.told)
	}
	for _, effect := range s.Effects {
		switch e := effect.(type) {
		case machine.AttemptDone:
			if placesPod(e.Decision) {
				k.decided[e.Decision.UID] = placed{e.Decision.Node, k.step}
			}
		case machine.Evict:
			if e.Victim.Priority >= e.Preemptor.Priority && (!c.play.quotas || e.Victim.Namespace == e.Preemptor.Namespace) {
				c.note("%s evicts pod %s of priority %d for pod %s of priority %d", proc.name,
					e.Victim.Key(), e.Victim.Priority, e.Preemptor.Key(), e.Preemptor.Priority)
			}
		}
	}
}

// known is what the process knows.
func (c *check) known(process string) *knowledge {
	k := c.knows[process]
	if k == nil {
		k = &knowledge{decided: map[types.UID]placed{}, told: map[types.UID]placed{}, missed: map[types.UID]bool{},
			limits: map[string]limited{}, claims: map[string]int{}, cluster: newCluster()}
		c.knows[process] = k
	}
	return k
}

// panicked is told of a step of a process that a planted panic ends.
func (c *check) panicked(proc *process, e machine.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := e.(machine.PodSet); ok {
		c.known(proc.name).missed[e.Pod.UID] = true
	}
}

func (k *knowledge) tell(uid types.UID, node string) {
	delete(k.missed, uid)
	if node == "" {
		delete(k.told, uid)
	} else {
		k.told[uid] = placed{node, k.step}
	}
}

func (k *knowledge) forget(uid types.UID) {
	delete(k.told, uid)
	delete(k.decided, uid)
}
