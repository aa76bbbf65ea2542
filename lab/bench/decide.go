package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	goruntime "runtime"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/compat"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/lab/oracle"
	"github.com/berth-scheduler/berth/sim/generate"
)

// scene is what the decisions of mode decide are taken on.
type scene struct {
	nodes iter.Seq[*v1.Node]
	bound []*v1.Pod // each names its node
	// selectorOwners are those whose pods are spread by default.
	selectorOwners []metav1.Object
	// namespaces have labels that pod affinity may select by.
	namespaces []*v1.Namespace
	// objects are what plugins read besides: volumes, claims, devices.
	objects []metav1.Object
	pods    iter.Seq[*v1.Pod] // to be decided on, in this order
	count   int               // of pods
	warmUp  int               // how many of them are decided on before the clock runs
	config  string            // KubeSchedulerConfiguration, "" for the defaults
	hosted  string            // the kind of the plugin Hosted, "" for none
	// misfits: pods may find no node; else one that does not ends the run.
	misfits bool
	// slice is how many decisions are taken before their bindings are answered.
	slice int
	// preempting: pods may find a node by others going from it. They come one
	// after the other, and are decided on again once the victims are gone.
	preempting bool
	budgets    []*policyv1.PodDisruptionBudget
	budget     time.Duration // no further slice is begun after; 0: none
}

// decider takes decisions in process, on one pod of the scene after the other.
type decider interface {
	// decide places the next pod and says where. It counts whole: its record
	// made and its room taken. The error is a misfit when no node was found, and
	// a preemption when others go for the pod: after settle it comes next again.
	decide() (node string, err error)
	// settle tells of the bindings and evictions since, as the API server would.
	settle() error
	// decided is the UID of the pod that was decided on last.
	decided() types.UID
	// await lets time pass until a pod may be decided on; false if there is none.
	await() bool
}

// errNotReady: there is no pod to decide on.
var errNotReady = errors.New("no pod was ready")

func newDecider(name string, s *scene) (decider, func(), error) {
	if name == Berth {
		b, err := newBerth(s.config, s.hosted)
		if err != nil {
			return nil, nil, err
		}
		for _, owner := range s.selectorOwners {
			b.m.Step(time.Now(), machine.SelectorOwnerSet{Owner: decode.SelectorOwner(owner)})
		}
		for _, n := range s.namespaces {
			b.m.Step(time.Now(), machine.NamespaceSet{Namespace: decode.Namespace(n)})
		}
		b.addNodes(s.nodes)
		for _, o := range s.objects {
			b.m.Step(time.Now(), machine.ObjectSet{Object: decode.Object(o)})
		}
		for _, o := range s.budgets {
			b.m.Step(time.Now(), machine.BudgetSet{Budget: decode.Budget(o)})
		}
		b.addPods(slices.Values(s.bound))
		if s.preempting {
			b.later = slices.Collect(s.pods)
			b.offer()
		} else {
			b.addPods(s.pods)
		}
		return b, func() {}, nil
	}
	world := generate.World{Config: s.config, Nodes: slices.Collect(s.nodes), Bound: s.bound, Namespaces: s.namespaces, Objects: s.objects, Budgets: s.budgets,
		SelectorOwners: s.selectorOwners}
	var options []scheduler.Option
	if s.hosted != "" {
		options = append(options, scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{hostedName: factory(s.hosted)}))
	}
	d, err := oracle.NewDefaultSchedulerOn(world, options...)
	if err != nil {
		return nil, nil, err
	}
	if s.preempting {
		if err := d.Preempting(); err != nil {
			return nil, nil, err
		}
	}
	return &defaultDecider{d, slices.Collect(s.pods), ""}, d.Stop, nil
}

// preemption is why no node was found for a pod yet: others go from one.
type preemption string

func (p preemption) Error() string { return "nominated to node " + string(p) }

// misfit is why no node was found for a pod.
type misfit string

func (m misfit) Error() string { return string(m) }

type defaultDecider struct {
	*oracle.DefaultScheduler
	pods []*v1.Pod
	last types.UID
}

func (d *defaultDecider) decided() types.UID { return d.last }

func (d *defaultDecider) decide() (string, error) {
	if len(d.pods) == 0 {
		return "", errNotReady
	}
	p := d.pods[0]
	d.pods, d.last = d.pods[1:], p.UID
	node, err := d.DefaultScheduler.Decide(p)
	if nominated := (oracle.Nominated{}); errors.As(err, &nominated) {
		p = p.DeepCopy()
		p.Status.NominatedNodeName = nominated.Node
		d.pods = slices.Insert(d.pods, 0, p)
		return "", preemption(nominated.Node)
	}
	if fit := (*framework.FitError)(nil); errors.As(err, &fit) {
		return "", misfit(fit.Error())
	}
	return node, err
}

// settle has devices written and victims gone; all else that kube-scheduler
// assumed stays assumed.
func (d *defaultDecider) settle() error { return d.Settle() }

// berthDecider drives the daemon's own machine. The pods are in its queue
// when measuring begins; each decision is a Cycle: pop, decide, record,
// assume, effects handed over.
type berthDecider struct {
	m *machine.Machine
	// What is not answered yet.
	writes  []machine.Write
	binds   []machine.Bind
	patches []machine.PatchStatus
	evicts  []machine.Evict
	victims []types.NamespacedName
	runs    []machine.RunPlugins
	hosts   *compat.Hosts // nil: there is no hosted plugin
	later   []*v1.Pod     // to be offered one after the other
	ahead   time.Duration // of the clock, for backoffs that nobody waits for
	last    types.UID     // decided on last
	groups  []machine.PodGroupDone
}

func (d *berthDecider) decided() types.UID { return d.last }

// newBerth starts Berth with a configuration, "" for the defaults, a kind of hosted plugin,
// "" for none, and feature gates that are on besides.
func newBerth(configuration, hosted string, on ...string) (*berthDecider, error) {
	gates := features.New()
	for _, gate := range on {
		if err := gates.Set(gate + "=true"); err != nil {
			return nil, err
		}
	}
	c, err := config.With(gates).Default(), error(nil)
	if configuration != "" {
		c, err = config.With(gates).Decode([]byte(configuration), "the configuration")
	}
	if err != nil {
		return nil, err
	}
	d, configs := &berthDecider{}, config.Profiles(c)
	if hosted != "" {
		if err := d.host(hosted, configs); err != nil {
			return nil, err
		}
	}
	profiles, err := profile.BuildAll(configs, plugins.Registry(features.Plugins(gates)))
	if err != nil {
		return nil, err
	}
	d.m = machine.New(machine.Options{
		Profiles: profiles, Seed: 1, Workers: goruntime.GOMAXPROCS(0), PodGroups: gates.Enabled(features.GenericWorkload),
		InitialBackoff: time.Second, MaxBackoff: 10 * time.Second, MaxUnschedulable: 5 * time.Minute,
	})
	if d.hosts != nil {
		d.hosts.Built(profiles)
		d.hosts.Connect(d.m, alone{})
	}
	return d, nil
}

func (d *berthDecider) addNodes(nodes iter.Seq[*v1.Node]) {
	for n := range nodes {
		node := decode.Node(n)
		if d.hosts != nil {
			node.API = n
		}
		d.m.Step(time.Now(), machine.NodeSet{Node: node})
	}
}

func (d *berthDecider) addPods(pods iter.Seq[*v1.Pod]) {
	for p := range pods {
		pod := decode.Pod(p)
		if d.hosts != nil {
			pod.API = p
		}
		d.m.Step(time.Now().Add(d.ahead), machine.PodSet{Pod: pod})
	}
}

// step gives the machine an event and keeps what is to be answered. The record
// is that of a decision, if one was taken.
func (d *berthDecider) step(e machine.Event) (record *decision.Decision) {
	for _, e := range d.m.Step(time.Now().Add(d.ahead), e) {
		switch e := e.(type) {
		case machine.AttemptDone:
			record, d.last = e.Decision, e.Decision.UID
			d.victims = append(d.victims, record.Victims...)
		case machine.PodGroupDone:
			d.groups = append(d.groups, e)
		case machine.PatchStatus:
			d.patches = append(d.patches, e)
		case machine.Evict:
			d.evicts = append(d.evicts, e)
		case machine.Write:
			d.writes = append(d.writes, e)
		case machine.RunPlugins:
			d.runs = append(d.runs, e)
		case machine.Bind:
			d.binds = append(d.binds, e)
		}
	}
	return record
}

func (d *berthDecider) decide() (string, error) {
	record := d.step(machine.ScheduleOne{})
	switch {
	case record == nil:
		return "", errNotReady
	case record.Result == decision.ResultScheduled:
		return record.Node, nil
	case record.Result == decision.ResultPreempting:
		return "", preemption(record.NominatedNode)
	case record.Err != nil:
		return "", record.Err
	}
	return "", misfit(explain.Condition(record).Message)
}

// settle answers writes before bindings: these follow from those.
func (d *berthDecider) settle() error {
	for _, w := range d.writes {
		d.step(machine.WriteReply{UID: w.Pod.UID, Call: w.Call})
		for i := range w.Writes {
			for _, o := range w.Writes[i].Result {
				d.step(machine.ObjectSet{Object: o})
			}
		}
	}
	for _, e := range d.runs {
		if reply := d.hosts.Run(context.Background(), e); reply != nil {
			d.step(reply)
		}
	}
	clear(d.runs)
	d.runs = d.runs[:0]
	for _, b := range d.binds {
		bound := *b.Pod
		bound.NodeName = b.Node
		d.step(machine.BindReply{UID: b.Pod.UID, Result: machine.BindDone})
		d.step(machine.PodSet{Pod: &bound})
	}
	clear(d.writes)
	clear(d.binds)
	d.writes, d.binds = d.writes[:0], d.binds[:0]
	if len(d.victims) > 0 {
		d.evict()
	} else {
		d.offer()
	}
	clear(d.patches)
	d.patches = d.patches[:0]
	return nil
}

// slice is how many decisions are taken before their bindings are answered,
// unless the scene says otherwise: what a daemon decides in the millisecond or
// so that a binding takes.
const slice = 64

func (s *scene) answered() int { return cmp.Or(s.slice, slice) }

// timing is what the decisions of a scene cost.
type timing struct {
	decisions           int
	unplaced            []int // which of them found no node
	failedAgain         int   // attempts that came to the error of the one before, which do not count
	wall, cpu, settling time.Duration
	took                []time.Duration
	allocations, bytes  uint64
}

// warm takes the decisions that nobody measures.
func (s *scene) warm(d decider) error {
	t := &timing{}
	for t.decisions < s.warmUp {
		for range min(s.answered(), s.warmUp-t.decisions) {
			if err := s.one(d, t); err != nil {
				return err
			}
		}
		if err := d.settle(); err != nil {
			return err
		}
	}
	return nil
}

// take decides on the scene's pods. The clock, the account of CPU and that of
// allocations run while decisions are taken; they stand still while the
// bindings of each slice are answered.
func (s *scene) take(d decider) (*timing, error) {
	goruntime.GC()
	n := s.count - s.warmUp
	t := &timing{took: make([]time.Duration, 0, n)}
	spent := time.Duration(0) // on the pod at hand
	for t.decisions < n && (s.budget == 0 || t.wall < s.budget) {
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		cpu, start := cpuTime(), time.Now()
		last := start
		for range min(s.answered(), n-t.decisions) {
			if err := s.one(d, t); err != nil {
				return nil, err
			}
			now := time.Now()
			if spent += now.Sub(last); t.decisions > len(t.took) {
				t.took = append(t.took, spent)
				spent = 0
			}
			if last = now; s.budget > 0 && last.Sub(start) > s.budget {
				break
			}
		}
		t.wall += last.Sub(start)
		t.cpu += cpuTime() - cpu
		goruntime.ReadMemStats(&after)
		t.allocations += after.Mallocs - before.Mallocs
		t.bytes += after.TotalAlloc - before.TotalAlloc
		start = time.Now()
		if err := d.settle(); err != nil {
			return nil, err
		}
		t.settling += time.Since(start)
	}
	return t, nil
}

// one takes a decision.
func (s *scene) one(d decider, t *timing) error {
	_, err := d.decide()
	if made := preemption(""); s.preempting && errors.As(err, &made) {
		return nil
	}
	if none := misfit(""); err != nil && !errors.As(err, &none) {
		return err
	}
	if err != nil {
		if !s.misfits {
			return fmt.Errorf("a pod found no node, and mode decide measures pods that do: %w", err)
		}
		t.unplaced = append(t.unplaced, t.decisions)
	}
	t.decisions++
	return nil
}
