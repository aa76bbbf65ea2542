package compat_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/edge/compat"
	. "github.com/berth-scheduler/berth/scheduler/schedulertest"
)

var (
	misbehaveSeeds = flag.Uint64("misbehave-seeds", 40, "how many seeds TestMisbehaviour tries")
	misbehaveSeed  = flag.Uint64("misbehave-seed", 1, "the first of the seeds of TestMisbehaviour")
)

// misbehaving is a plugin that does what no plugin should: at any point, now and then, as
// a seed says. Once it is well again, it lets all pods pass.
type misbehaving struct {
	everyPoint
	handle fwk.Handle
	often  int // one call in so many does something
	sorts  bool
	signs  bool
	ill    atomic.Bool
	well   chan struct{} // closed once it is

	mu     sync.Mutex
	random *rand.Rand
	pods   []*v1.Pod // some that it was asked about
}

func newMisbehaving(seed uint64) *misbehaving {
	m := &misbehaving{
		often: []int{3, 10, 30, 100}[seed%4], sorts: seed%5 == 0, signs: seed%3 == 0,
		well: make(chan struct{}), random: rand.New(rand.NewPCG(seed, 0)),
	}
	m.everyPoint = everyPoint{named: "M", answer: m.anything, plain: seed%3 < 2}
	return m
}

func (m *misbehaving) getWell() {
	if m.ill.Swap(false) {
		close(m.well)
	}
}

// below is a random number from 0 up to n.
func (m *misbehaving) below(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.random.IntN(n)
}

// aPod is one that it was asked about.
func (m *misbehaving) aPod() *v1.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.pods) == 0 {
		return Pod("unknown")
	}
	return m.pods[m.random.IntN(len(m.pods))]
}

// aNode is the name of one that there is, of none, or nothing.
func (m *misbehaving) aNode() string { return []string{"n0", "no-such-node", ""}[m.below(3)] }

func (m *misbehaving) snapshot() []fwk.NodeInfo {
	list, _ := m.handle.SnapshotSharedLister().NodeInfos().List() // none, where that fails
	return list
}

// misbehaviours is, by name, what the plugin does when it is called, and what it answers.
var misbehaviours = map[string]func(m *misbehaving, c call) *fwk.Status{
	"panics": func(_ *misbehaving, c call) *fwk.Status { panic("boom at " + c.at) },
	"hangs":  func(m *misbehaving, _ call) *fwk.Status { <-m.well; return nil },
	"takes its time": func(m *misbehaving, _ call) *fwk.Status {
		time.Sleep(time.Duration(m.below(100)) * time.Millisecond)
		return nil
	},
	"ends its goroutine": func(*misbehaving, call) *fwk.Status { runtime.Goexit(); return nil },
	"answers with any code": func(m *misbehaving, _ call) *fwk.Status {
		return fwk.NewStatus(fwk.Code(m.below(9)), fmt.Sprint("reason ", m.below(3)))
	},
	"fails":               func(*misbehaving, call) *fwk.Status { return fwk.AsStatus(errors.New("no idea")) },
	"rejects, and no why": func(*misbehaving, call) *fwk.Status { return fwk.NewStatus(fwk.Unschedulable) },

	"nominates a pod": func(m *misbehaving, _ call) *fwk.Status {
		m.handle.AddNominatedPod(klog.Background(), alone{pod: m.aPod()},
			&fwk.NominatingInfo{NominatedNodeName: m.aNode(), NominatingMode: fwk.ModeOverride})
		return nil
	},
	"forgets a nomination": func(m *misbehaving, _ call) *fwk.Status {
		m.handle.DeleteNominatedPodIfExists(m.aPod())
		m.handle.UpdateNominatedPod(klog.Background(), nil, alone{pod: m.aPod()})
		return nil
	},
	"allows and rejects what waits": func(m *misbehaving, _ call) *fwk.Status {
		m.handle.IterateOverWaitingPods(func(w fwk.WaitingPod) {
			w.Allow("M")
			w.Reject("no-such-plugin", "")
		})
		m.handle.RejectWaitingPod(m.aPod().UID)
		return nil
	},
	"activates anything": func(m *misbehaving, _ call) *fwk.Status {
		m.handle.Activate(klog.Background(), map[string]*v1.Pod{"none": nil, "empty": {}, "some": m.aPod()})
		return nil
	},
	"goes on when it has returned": func(m *misbehaving, _ call) *fwk.Status {
		p := m.aPod()
		time.AfterFunc(5*time.Millisecond, func() {
			m.handle.RejectWaitingPod(p.UID)
			m.handle.Activate(klog.Background(), map[string]*v1.Pod{"p": p})
		})
		return nil
	},

	"erases what is to be activated": func(_ *misbehaving, c call) *fwk.Status {
		if c.state != nil {
			c.state.Write(compat.PodsToActivateKey, nil)
		}
		return nil
	},
	"keeps a state that cannot be copied": func(_ *misbehaving, c call) *fwk.Status {
		if c.state != nil {
			c.state.Write("state", uncopied{})
		}
		return nil
	},
	"skips plugins": func(_ *misbehaving, c call) *fwk.Status {
		if c.state != nil {
			c.state.SetSkipFilterPlugins(sets.New("M", "NodeResourcesFit"))
			c.state.SetSkipScorePlugins(nil)
			c.state.SetSkipPreBindPlugins(sets.New("M"))
		}
		return nil
	},
	"changes the pod": func(_ *misbehaving, c call) *fwk.Status {
		if c.pod != nil {
			c.pod.Labels, c.pod.Spec.Containers = map[string]string{"app": "0"}, nil
		}
		return nil
	},
	"takes nodes apart": func(m *misbehaving, c call) *fwk.Status {
		for i, n := range c.nodes {
			clear(n.GetPods())
			n.SetNode([]*v1.Node{nil, {}}[m.below(2)])
			c.nodes[i] = nil
		}
		clear(c.scores)
		return nil
	},
	"puts pods on other nodes": func(m *misbehaving, _ call) *fwk.Status {
		nodes := m.snapshot()
		var pods []fwk.PodInfo
		for _, n := range nodes {
			pods = append(pods, n.GetPods()...)
		}
		for i, n := range nodes {
			if i < len(pods) {
				n.AddPodInfo(pods[i])
			}
		}
		return nil
	},

	"asks all plugins": func(m *misbehaving, c call) *fwk.Status {
		ctx, nodes := context.Background(), m.snapshot()
		for _, n := range nodes {
			m.handle.RunFilterPluginsWithNominatedPods(ctx, c.state, c.pod, n.Snapshot())
		}
		m.handle.RunPreScorePlugins(ctx, c.state, c.pod, nodes)
		_, s := m.handle.RunScorePlugins(ctx, c.state, c.pod, nodes)
		return s
	},
	"asks about nothing": func(m *misbehaving, _ call) *fwk.Status {
		m.handle.EventRecorder().Eventf(nil, nil, "", "", "", "")
		m.handle.RunFilterPlugins(context.Background(), nil, nil, nil)
		return nil
	},
	"panics on one of several cores": func(m *misbehaving, _ call) *fwk.Status {
		m.handle.Parallelizer().Until(context.Background(), 5, func(i int) {
			if i == 3 {
				panic("boom")
			}
		}, "pieces")
		return nil
	},
}

// uncopied is a state whose Clone panics.
type uncopied struct{}

func (uncopied) Clone() fwk.StateData { panic("boom at Clone") }

// anything answers a call, well or not.
func (m *misbehaving) anything(c call) answer {
	var a answer
	if c.at == "Bind" {
		a.status = fwk.NewStatus(fwk.Skip) // the default binder's turn
	}
	if !m.ill.Load() {
		return a
	}
	a.score = int64(m.below(101))
	if m.below(m.often) > 0 {
		return a
	}
	a.node, a.wait = m.aNode(), time.Duration(m.below(200)-50)*time.Millisecond
	switch {
	case c.at == "Permit" && m.below(2) == 0:
		a.status = fwk.NewStatus(fwk.Wait)
	case c.at == "Score" && m.below(2) == 0:
		a.score = int64(m.below(300) - 100)
	default:
		a.status = m.misbehave(c)
	}
	return a
}

// misbehave does one of all misbehaviours.
func (m *misbehaving) misbehave(c call) *fwk.Status {
	if c.pod != nil {
		m.mu.Lock()
		m.pods = append(m.pods, c.pod)
		m.mu.Unlock()
	}
	names := slices.Sorted(maps.Keys(misbehaviours))
	return misbehaviours[names[m.below(len(names))]](m, c)
}

// Less panics or orders pods at random. What else a QueueSort may do is not contained.
func (m *misbehaving) Less(a, b fwk.QueuedEntityInfo) bool {
	if !m.sorts || !m.ill.Load() {
		return queued(a).Name < queued(b).Name
	}
	if m.below(m.often) == 0 {
		panic("boom at Less")
	}
	return m.below(2) == 0
}

func (m *misbehaving) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	hint := func(_ klog.Logger, p *v1.Pod, _, _ any) (fwk.QueueingHint, error) {
		if s := m.anything(call{at: "QueueingHint", pod: p}).status; s != nil {
			return fwk.QueueingHint(m.below(3)), s.AsError()
		}
		return fwk.Queue, nil
	}
	return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.All}, QueueingHintFn: hint}}, nil
}

func (m *misbehaving) SignPod(_ context.Context, p *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if !m.signs {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	s := m.anything(call{at: "SignPod", pod: p}).status
	return []fwk.SignFragment{{Key: "k", Value: m.below(2)}}, s
}

// Whatever a plugin does, at whatever points, as often as it likes: once it is well, all
// pods are bound, and no node has more than it can take. The time is virtual; a mutex that
// stays locked would stop it, and has a test of its own, TestPodsToActivateAreLocked.
func TestMisbehaviour(t *testing.T) {
	seeds := *misbehaveSeeds
	if testing.Short() {
		seeds = min(seeds, 8)
	}
	for seed := *misbehaveSeed; seed < *misbehaveSeed+seeds; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { misbehaveFor(t, seed) })
		})
	}
}

// enough is how long after the plugin is well all pods are bound. It is less than what the
// queue lets pods wait for its flush, which would call whom all events forgot.
const enough = 4 * time.Minute

func misbehaveFor(t *testing.T, seed uint64) {
	m := newMisbehaving(seed)
	c := New(t, WithTimeout(50*time.Millisecond), WithPlugin("M", with(func(h fwk.Handle) fwk.Plugin {
		m.handle = h
		return m
	})), WithConfig(func(c *configv1.KubeSchedulerConfiguration) {
		p := c.Profiles[0].Plugins
		p.QueueSort = configv1.PluginSet{Enabled: []configv1.Plugin{{Name: "M"}}, Disabled: []configv1.Plugin{{Name: "*"}}}
		p.Bind.Enabled = []configv1.Plugin{{Name: "M"}, {Name: "DefaultBinder"}}
		if seed%2 == 0 {
			p.PostFilter.Disabled = []configv1.Plugin{{Name: "DefaultPreemption"}}
		}
	}))
	m.ill.Store(true)
	t.Cleanup(m.getWell)
	pods := comeAndGo(c, rand.New(rand.NewPCG(seed, 1)))
	time.Sleep(2 * time.Second)
	m.getWell()
	for i := range 10 {
		c.Add(Node(fmt.Sprint("late", i)))
	}
	time.Sleep(enough)
	used := map[string]int64{}
	for _, name := range pods {
		p := c.Pod(name)
		switch {
		case p == nil: // deleted or preempted
		case p.Spec.NodeName == "":
			d := c.Decision(name, 0)
			t.Errorf("%s is not bound; its last attempt: %s, %v; gated: %v", name, d.Result, d.Err, d.PreEnqueueStatus)
		default:
			used[p.Spec.NodeName] += p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		}
	}
	for node, milli := range used { // any order: each is looked at
		if milli > 4000 {
			t.Errorf("%d thousandths of a CPU are used on %s", milli, node)
		}
	}
}

// comeAndGo has pods and nodes come, and pods go. It returns the names of the pods.
func comeAndGo(c *Cluster, r *rand.Rand) []string {
	nodes := 0
	add := func() {
		c.Add(Node(fmt.Sprint("n", nodes), "zone", fmt.Sprint(nodes%2)))
		nodes++
	}
	for range 3 + r.IntN(3) {
		add()
	}
	var pods []string
	for i := range 60 {
		p := Pod(fmt.Sprint("p", i), "app", fmt.Sprint(i%3))
		priority := int32(10 * r.IntN(3))
		p.Spec.Priority = &priority
		p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = *resource.NewMilliQuantity(int64(100+60*r.IntN(10)), resource.DecimalSI)
		c.Add(p)
		pods = append(pods, p.Name)
		if r.IntN(8) == 0 {
			add()
		}
		if gone := c.Pod(pods[r.IntN(len(pods))]); gone != nil && r.IntN(10) == 0 {
			c.Delete(gone)
		}
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
	}
	return pods
}
