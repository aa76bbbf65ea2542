package machine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/resource"
)

// tester is *testing.T or *rapid.T.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// world is a cluster around a machine: the objects as the API server has
// them, watches that lag behind, and requests on their way. It holds the
// machine to its promises at every step.
type world struct {
	tester
	m     *Machine
	moody *moody
	now   time.Time

	// A machine that is told the same, and is to do the same.
	twin      *Machine
	written   map[types.UID]object.Condition // that were asked for last
	twinMoody *moody

	// The truth.
	nodes map[string]*object.Node
	pods  map[string]*object.Pod // by key
	ours  map[types.UID]bool     // bound by a binding of the machine's

	// What the watches have not told yet, and what they told last.
	podNews   []podNews
	nodeNews  []string
	told      map[string]*object.Pod
	toldNodes map[string]*object.Node
	goneTold  map[types.UID]bool

	requests []Effect
	late     []Bind // bindings that were answered by Unknown and may yet happen
	reads    map[types.UID]int

	// Whom each pod preempted last, and what became of the evictions.
	plans   map[types.UID]plan
	evicted map[types.UID]bool // the API has deleted it
	escaped map[types.UID]bool // the API refused to, and was not asked since

	decided   map[types.UID]*decision.Decision // the last of each
	published map[types.UID]int                // "Scheduled"
	event     Event                            // of the last step
	effects   []Effect                         // of the last step
	serial    int
}

// podNews is a pod as it was when it changed; nil: it was gone.
type podNews struct {
	key string
	uid types.UID
	pod *object.Pod
}

func newWorld(t tester) *world {
	w := &world{
		tester: t, moody: &moody{moods: map[string]mood{}, waiting: map[types.UID]bool{}},
		now:   time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		nodes: map[string]*object.Node{}, pods: map[string]*object.Pod{}, ours: map[types.UID]bool{},
		told: map[string]*object.Pod{}, toldNodes: map[string]*object.Node{}, goneTold: map[types.UID]bool{},
		plans: map[types.UID]plan{}, evicted: map[types.UID]bool{}, escaped: map[types.UID]bool{},
		reads: map[types.UID]int{}, decided: map[types.UID]*decision.Decision{}, published: map[types.UID]int{},
	}
	w.written = map[types.UID]object.Condition{}
	w.twinMoody = &moody{moods: map[string]mood{}, waiting: map[types.UID]bool{}}
	w.m, w.twin = New(options(w.moody)), New(options(w.twinMoody))
	return w
}

func options(mo *moody) Options {
	return Options{
		Profiles: []*profile.Profile{testProfile(mo)}, Extenders: testExtenders, Seed: 1, Workers: 1,
		InitialBackoff: time.Second, MaxBackoff: 10 * time.Second,
		// Nobody is looked at again just because time passed: a lost event shows.
		MaxUnschedulable: 10000 * time.Hour,
	}
}

// step feeds the machine and checks what it does and what it is.
func (w *world) step(e Event) {
	w.Helper()
	w.Logf("%s %s", w.now.Format("04:05"), show(e))
	w.twinMoody.moods = maps.Clone(w.moody.moods)
	w.event, w.effects = e, w.m.Step(w.now, e)
	twins := w.twin.Step(w.now, e)
	if mine, other := shown(w.effects), shown(twins); !slices.Equal(mine, other) {
		w.Fatalf("after %T one machine does %q, another %q", e, mine, other)
	}
	clear(w.moody.moods) // Verify asks the plugins, too
	clear(w.twinMoody.moods)
	if err := cmp.Or(w.m.Verify(), w.twin.Verify()); err != nil {
		w.Fatalf("after %T: %v", e, err)
	}
	for i, effect := range w.effects {
		w.Logf("      -> %s", show(effect))
		w.take(i, effect)
	}
}

func shown(effects []Effect) (lines []string) {
	for _, e := range effects {
		lines = append(lines, show(e))
	}
	return lines
}

// show prints an event or an effect for whoever reads a failed test.
func show(x any) string {
	switch x := x.(type) {
	case PodSet:
		return fmt.Sprintf("PodSet %s on %q, nominated to %q, priority %d, %dm, terminating %v, terminal %v", x.Pod.UID, x.Pod.NodeName,
			x.Pod.NominatedNode, x.Pod.Priority, x.Pod.Demand.Usage.MilliCPU, x.Pod.Terminating, x.Pod.Terminal)
	case NodeSet:
		return fmt.Sprintf("NodeSet %s %v %dm", x.Node.Name, x.Node.Labels, x.Node.Allocatable.MilliCPU)
	case ReadReply:
		if x.Pod != nil {
			return fmt.Sprintf("ReadReply %s: %s on %q", x.UID, x.Pod.UID, x.Pod.NodeName)
		}
	case Bind:
		return fmt.Sprintf("Bind %s to %s", x.Pod.UID, x.Node)
	case BindByExtender:
		return fmt.Sprintf("BindByExtender %d %s to %s", x.Extender, x.Pod.UID, x.Node)
	case CallExtender:
		return fmt.Sprintf("CallExtender %d to %s for %s about %v %v", x.Extender, x.Verb, x.Pod.UID, nodeNames(x.Nodes), left(x.Candidates))
	case ReadPod:
		return fmt.Sprintf("ReadPod %s", x.Pod.UID)
	case Write:
		return fmt.Sprintf("Write for %s", x.Pod.UID)
	case Evict:
		return fmt.Sprintf("Evict %s for %s", x.Victim.UID, x.Preemptor.UID)
	case PublishEvent:
		return fmt.Sprintf("PublishEvent %s %s: %s", x.Pod.UID, x.Reason, x.Note)
	case PatchStatus:
		if x.Nominated != nil {
			return fmt.Sprintf("PatchStatus %s: %v, nominated to %q", x.Pod.UID, x.Condition, *x.Nominated)
		}
		return fmt.Sprintf("PatchStatus %s: %v", x.Pod.UID, x.Condition)
	case AttemptDone:
		return fmt.Sprintf("AttemptDone %s: %s %s %v", x.Decision.UID, x.Decision.Result, x.Decision.Node, x.Decision.Err)
	}
	return fmt.Sprintf("%T%+v", x, x)
}

func (w *world) take(i int, effect Effect) {
	w.Helper()
	switch e := effect.(type) {
	case AttemptDone:
		w.decided[e.Decision.UID] = e.Decision
		w.forget(e.Decision.UID) // stopped in memory and tried anew, it has left
		if r := e.Decision.Result; r == decision.ResultScheduled || r == decision.ResultWaiting {
			w.checkRoom(e.Decision)
		}
		if e.Decision.Result == decision.ResultPreempting {
			w.checkPlan(e.Decision)
		}
	case PublishEvent:
		w.checkPublished(i, e)
		if e.Reason == "Scheduled" && !w.evicted[e.Pod.UID] && !w.evicting(e.Pod.UID) {
			w.forget(e.Pod.UID) // it was to be stopped in memory, and another bound it
		}
	case PatchStatus:
		w.checkPatch(i, e)
		w.requests = append(w.requests, e)
	case CallExtender:
		w.checkAsk(e)
		w.requests = append(w.requests, e)
	case BindByExtender:
		w.checkFree(e.Pod, effect)
		w.checkNode(e.Pod, e.Node)
		w.requests = append(w.requests, e)
	case Bind:
		w.checkFree(e.Pod, effect)
		w.checkNode(e.Pod, e.Node)
		if w.goneTold[e.Pod.UID] {
			w.Fatalf("binds %s, of which it knows that it is gone", e.Pod.UID)
		}
		w.requests = append(w.requests, e)
	case Write:
		w.checkFree(e.Pod, effect)
		w.requests = append(w.requests, e)
	case ReadPod:
		w.checkFree(e.Pod, effect)
		w.requests = append(w.requests, e)
	case Evict:
		w.checkEvict(e)
		w.requests = append(w.requests, e)
	}
}

// The API server.

func (w *world) setPod(p *object.Pod) {
	w.pods[p.Key()] = p
	w.podNews = append(w.podNews, podNews{p.Key(), p.UID, p})
}

func (w *world) deletePod(key string) {
	if p := w.pods[key]; p != nil {
		delete(w.pods, key)
		w.podNews = append(w.podNews, podNews{key, p.UID, nil})
	}
}

// change writes a changed copy of the pod with this UID, if there is one.
func (w *world) change(p *object.Pod, f func(*object.Pod)) {
	if now := w.pods[p.Key()]; now != nil && now.UID == p.UID {
		again := *now
		f(&again)
		w.setPod(&again)
	}
}

func (w *world) setNode(n *object.Node) {
	w.nodes[n.Name] = n
	w.nodeNews = append(w.nodeNews, n.Name)
}

func (w *world) deleteNode(name string) {
	delete(w.nodes, name)
	w.nodeNews = append(w.nodeNews, name)
}

// binds tells whether the API would accept the binding now.
func (w *world) binds(b Bind) bool {
	p := w.pods[b.Pod.Key()]
	return p != nil && p.UID == b.Pod.UID && p.NodeName == "" && !p.Terminating && len(p.Gates) == 0
}

func (w *world) bind(b Bind) bool {
	if !w.binds(b) {
		return false
	}
	w.ours[b.Pod.UID] = true
	w.change(b.Pod, func(p *object.Pod) { p.NodeName = b.Node })
	return true
}

// The watches.

func (w *world) tellPod() {
	n := w.podNews[0]
	w.podNews = w.podNews[1:]
	w.tell(n)
}

func (w *world) tell(n podNews) {
	switch old := w.told[n.key]; {
	case old == nil:
	case n.pod == nil || old.UID != n.uid || n.pod.Terminal:
		w.goneTold[old.UID] = true
	case old.NodeName == "" && n.pod.NodeName != "" && !w.evicting(n.uid) && !w.evicted[n.uid]:
		w.forget(n.uid) // stopped too late: its binding took effect
	}
	if n.pod == nil {
		delete(w.told, n.key)
		namespace, name, _ := strings.Cut(n.key, "/")
		w.step(PodGone{UID: n.uid, Namespace: namespace, Name: name})
		return
	}
	w.told[n.key] = n.pod
	w.step(PodSet{n.pod})
}

// relist skips what lies between what was told last and the truth, as a watch
// that was broken off does: a pod that was made anew under its name comes as
// one change, one that is gone is told of in its last known state.
func (w *world) relist() {
	w.podNews = nil
	for _, key := range slices.Sorted(maps.Keys(w.told)) {
		if w.pods[key] == nil {
			w.tell(podNews{key, w.told[key].UID, nil})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.pods)) {
		w.tell(podNews{key, w.pods[key].UID, w.pods[key]})
	}
}

func (w *world) tellNode() {
	name := w.nodeNews[0]
	w.nodeNews = w.nodeNews[1:]
	if n := w.nodes[name]; n != nil {
		w.toldNodes[name] = n
		w.step(NodeSet{n})
		return
	}
	delete(w.toldNodes, name)
	w.step(NodeGone{name})
}

func (w *world) tellAll() {
	for len(w.nodeNews) > 0 {
		w.tellNode()
	}
	for len(w.podNews) > 0 {
		w.tellPod()
	}
}

// The requests.

const (
	fine fate = iota
	refused
	lost     // done, but the reply was lost
	vanished // not done, and the reply was lost
	delayed  // to be done later, and the reply was lost
)

var errFate = errors.New("the network")

func (w *world) tick(d time.Duration) {
	w.Helper()
	w.now = w.now.Add(d)
	w.step(Tick{})
}

// settle lets the cluster come to rest with nothing going wrong: everything
// is told, answered and tried again until no timer is due for an hour.
func (w *world) settle() {
	w.Helper()
	for len(w.late) > 0 {
		w.arrive(0)
	}
	for turn := 0; ; turn++ {
		if turn > 5000 {
			w.Fatalf("does not come to rest\n%s", w.m.queue)
		}
		switch next, timer := w.m.NextTimer(); {
		case len(w.podNews)+len(w.nodeNews) > 0:
			w.tellAll()
		case len(w.requests) > 0:
			w.answer(0, fine)
		case w.finish():
		case w.m.Ready():
			w.step(ScheduleOne{})
		case timer && next.Before(w.now.Add(time.Hour)):
			w.tick(max(0, next.Sub(w.now)))
		default:
			return
		}
	}
}

// finish removes the pods that are on their way out.
func (w *world) finish() bool {
	for _, key := range slices.Sorted(maps.Keys(w.pods)) {
		if w.pods[key].Terminating {
			w.deletePod(key)
			return true
		}
	}
	return false
}

// Objects.

func (w *world) pod(name string, milliCPU int64, change ...func(*object.Pod)) *object.Pod {
	w.serial++
	v := resource.Vector{MilliCPU: milliCPU}
	p := &object.Pod{
		UID: types.UID(fmt.Sprintf("%s-%d", name, w.serial)), Namespace: "ns", Name: name, SchedulerName: scheduler,
		Demand: resource.Demand{Requests: v, Usage: v, NonZero: v},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func (w *world) node(name string, milliCPU int64, change ...func(*object.Node)) *object.Node {
	w.serial++
	n := &object.Node{
		Name: name, UID: types.UID(fmt.Sprintf("%s-%d", name, w.serial)), AllowedPods: 110,
		Allocatable: resource.Vector{MilliCPU: milliCPU}, Labels: map[string]string{},
		Annotations: map[string]string{"serial": fmt.Sprint(w.serial)},
	}
	for _, f := range change {
		f(n)
	}
	return n
}
