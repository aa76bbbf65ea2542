package compat_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	. "github.com/berth-scheduler/berth/scheduler/schedulertest"
)

// roomMaker is a PodGroupPostFilter plugin. It calls do the first time that it is asked, and
// makes no room later on.
type roomMaker struct {
	named
	handle fwk.Handle
	do     func(x *roomMaker, ctx context.Context, g fwk.PodGroupInfo, try fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status)

	mu    sync.Mutex
	calls int
	said  []string
}

func (x *roomMaker) PodGroupPostFilter(ctx context.Context, _ fwk.PodGroupCycleState, g fwk.PodGroupInfo, try fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	x.mu.Lock()
	x.calls++
	first := x.calls == 1
	x.mu.Unlock()
	if !first {
		return nil, fwk.NewStatus(fwk.Unschedulable, "once is enough")
	}
	return x.do(x, ctx, g, try)
}

// say records a text for the test.
func (x *roomMaker) say(what ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.said = append(x.said, fmt.Sprint(what...))
}

// heard returns the texts so far, and forgets them.
func (x *roomMaker) heard() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := strings.Join(x.said, "\n")
	x.said = nil
	return all
}

// on returns the names of the pods on node a, as the plugin's lister shows them.
func (x *roomMaker) on() []string {
	node, err := x.handle.SnapshotSharedLister().NodeInfos().Get("a")
	if err != nil {
		return []string{err.Error()}
	}
	return podsOn(node)
}

func podsOn(node fwk.NodeInfo) (names []string) {
	for _, p := range node.GetPods() {
		names = append(names, p.GetPod().Name)
	}
	slices.Sort(names)
	return names
}

// sized returns the pod, which asks for so much CPU.
func sized(p *v1.Pod, cpu string) *v1.Pod {
	p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse(cpu)
	return p
}

// placedOn returns the pod, bound to the node.
func placedOn(p *v1.Pod, node string) *v1.Pod {
	p.Spec.NodeName = node
	return p
}

// newFullNode is a cluster with the plugin, where the pod "old" leaves too little on the one
// node, a, for the two pods of the gang g.
func newFullNode(t *testing.T, x *roomMaker, opts ...Option) *Cluster {
	t.Helper()
	return newFullNodeWith(t, x, x, opts...)
}

// newFullNodeWith is newFullNode with the plugin pl, which has x.
func newFullNodeWith(t *testing.T, x *roomMaker, pl fwk.Plugin, opts ...Option) *Cluster {
	t.Helper()
	c := New(t, append([]Option{WithPodGroups(), WithPlugin("R", with(func(h fwk.Handle) fwk.Plugin { x.handle = h; return pl })),
		WithConfig(func(c *configv1.KubeSchedulerConfiguration) {
			c.Profiles[0].Plugins.PodGroupPostFilter.Disabled = []configv1.Plugin{{Name: "DefaultPreemption"}}
		})}, opts...)...)
	c.Add(Node("a"), placedOn(sized(Pod("old"), "3"), "a"), podGroup("g", 2), sized(member("g-0", "g"), "2"), sized(member("g-1", "g"), "2"))
	return c
}

// removeOld removes the pod old from the snapshot, and returns it.
func removeOld(t *testing.T, x *roomMaker) *v1.Pod {
	l := x.handle.MutableSnapshotSharedLister()
	node, _ := l.NodeInfos().Get("a")
	old := node.GetPods()[0].GetPod()
	if err := errors.Join(l.StartMutations(), l.RemovePod(klog.Background(), old, "a")); err != nil {
		t.Error(err)
	}
	return old
}

// expectUnchanged checks that the pod old still takes its room, and that the group is placed
// once it is gone.
func expectUnchanged(t *testing.T, c *Cluster, x *roomMaker) {
	t.Helper()
	if got := x.on(); fmt.Sprint(got) != "[old]" {
		t.Errorf("plugins see %q on the node", got)
	}
	c.Add(sized(Pod("wide"), "2"))
	if d := c.Decision("wide", 0); d.Result != decision.ResultUnschedulable {
		t.Errorf("a pod that does not fit beside old: %s", d.Result)
	}
	c.Delete(c.Pod("wide"))
	c.Delete(c.Pod("old"))
	for _, pod := range []string{"g-0", "g-1"} {
		if node := c.NodeOf(pod); node != "a" {
			t.Errorf("%s is on %s", pod, node)
		}
	}
}

// A plugin tries a group on a snapshot that it changes, as kube-scheduler's own preemption for
// groups does. Nodes that it holds follow its changes. Afterwards all is as before, and the
// pods are nominated as it says.
func TestGroupPostFilter(t *testing.T) {
	x := &roomMaker{named: "R"}
	x.do = func(x *roomMaker, ctx context.Context, g fwk.PodGroupInfo, try fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
		l, log := x.handle.MutableSnapshotSharedLister(), klog.Background()
		old, _ := l.NodeInfos().Get("a")
		victim := old.GetPods()[0]
		x.say(g.GetName(), " ", len(g.GetUnscheduledPods()), " ", podsOn(old))
		_, status := try(ctx)
		x.say("full: ", status.Code(), " ", status.Message())
		x.say("early: ", l.RemovePod(log, victim.GetPod(), "a"), ", ", l.AddPod(victim, "a"), ", ", l.EndMutations())
		x.say("start: ", l.StartMutations(), ", ", l.StartMutations())
		list, _ := l.NodeInfos().List()
		node := list[0]
		x.say("wrong: ", l.RemovePod(log, Pod("none"), "a"), ", ", l.RemovePod(log, victim.GetPod(), "b"), ", ", l.AddPod(victim, "a"), ", ", l.AddPod(victim, "b"), ", ", l.AddPod(nil, "a"))
		x.say("remove: ", l.RemovePod(log, victim.GetPod(), "a"), " ", podsOn(node), " ", x.on(), " ", podsOn(old))
		found, status := try(ctx)
		if status != nil {
			return nil, status
		}
		for _, a := range found.ProposedAssignments {
			fits := x.handle.RunFilterPluginsWithNominatedPods(ctx, a.GetCycleState(), a.GetPod(), node)
			x.say(a.GetPod().Name, " on ", a.GetNodeName(), ": ", fits.Code(), ", ", l.AddPod(a.GetPodInfo(), a.GetNodeName()), " ", podsOn(node))
		}
		again := x.handle.RunFilterPluginsWithNominatedPods(ctx, found.ProposedAssignments[0].GetCycleState(), victim.GetPod(), node)
		x.say("old again: ", again.Code())
		x.say("end: ", l.EndMutations(), " ", x.on())
		return &fwk.PodGroupPostFilterResult{NominatingInfos: map[types.NamespacedName]*fwk.NominatingInfo{
			{Namespace: "default", Name: "g-1"}: {NominatedNodeName: "a", NominatingMode: fwk.ModeOverride},
		}}, fwk.NewStatus(fwk.Success, "there will be room")
	}
	c := newFullNode(t, x)
	c.Decision("g-1", 0)
	if to := x.handle.NominatedPodsForNode("a"); len(to) != 1 || to[0].GetPod().Name != "g-1" {
		t.Errorf("%d pods are nominated to the node, want g-1", len(to))
	}
	want := `g 2 [old]
full: Unschedulable minCount (2) cannot be satisfied: 0 scheduled, 1 remaining
early: StartMutations was not called, StartMutations was not called, StartMutations was not called
start: <nil>, the snapshot is being changed already: EndMutations was not called
wrong: pod default/none is not on node "a", there is no node "b", pod default/old is placed already, there is no node "b", AddPod: there is no pod, or none with a UID
remove: <nil> [] [] [old]
g-0 on a: Success, <nil> [g-0]
g-1 on a: Success, <nil> [g-0 g-1]
old again: Unschedulable
end: <nil> [old]`
	if got := x.heard(); got != want {
		t.Errorf("got\n%s", got)
	}
	expectUnchanged(t, c, x)
}

// What a plugin does wrong is an error of the group's attempt at most. Whatever it changed is
// undone: other pods do not see it, and the group is placed when there is room.
func TestGroupPostFilterIsContained(t *testing.T) {
	for what, tc := range map[string]struct {
		answer func(ctx context.Context, try fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status)
		result decision.Result
		says   string
	}{
		"is silent": {func(context.Context, fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
			return nil, nil
		}, "", ""},
		"panics": {func(context.Context, fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
			panic("boom")
		}, decision.ResultError, "boom"},
		"exits": {func(context.Context, fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
			runtime.Goexit()
			return nil, nil
		}, decision.ResultError, "Goexit"},
		"fails": {func(context.Context, fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
			return nil, fwk.AsStatus(errors.New("it is broken"))
		}, decision.ResultError, `error in "R" PodGroupPostFilter plugins: it is broken`},
		"has codes": {func(context.Context, fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
			return nil, fwk.NewStatus(fwk.Code(99), "odd")
		}, decision.ResultError, "odd"},
		"answers Pending": {func(context.Context, fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
			return nil, fwk.NewStatus(fwk.Pending, "later")
		}, decision.ResultError, "later"},
		"rejects": {func(context.Context, fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
			return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "not today")
		}, decision.ResultUnschedulable, ""},
		"nominates to nowhere": {func(context.Context, fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
			return &fwk.PodGroupPostFilterResult{NominatingInfos: map[types.NamespacedName]*fwk.NominatingInfo{
				{Namespace: "default", Name: "g-0"}: {NominatedNodeName: "no-such-node", NominatingMode: fwk.ModeOverride},
			}}, nil
		}, decision.ResultError, `nominated pod default/g-0 to node "no-such-node", which does not exist`},
		"is cancelled": {func(ctx context.Context, try fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
			ended, cancel := context.WithCancelCause(ctx)
			cancel(errors.New("enough"))
			_, status := try(ended)
			return nil, status
		}, decision.ResultError, "enough"},
	} {
		t.Run(what, func(t *testing.T) {
			x := &roomMaker{named: "R"}
			x.do = func(x *roomMaker, ctx context.Context, _ fwk.PodGroupInfo, try fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
				removeOld(t, x)
				return tc.answer(ctx, try)
			}
			c := newFullNode(t, x)
			d := c.Decision("g-1", 0)
			if said := fmt.Sprint(d.Err, d.GroupStatus, d.Tallies); tc.result != "" && d.Result != tc.result || !strings.Contains(said, tc.says) {
				t.Errorf("got %s: %s", d.Result, said)
			}
			expectUnchanged(t, c, x)
		})
	}
}

// A plugin that keeps the lister or the function that tries the group is refused once its call
// is over, be it that it has returned or that it took too long. The time is virtual.
func TestLateGroupPostFilter(t *testing.T) {
	for name, hangs := range map[string]bool{"returned": false, "overdue": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &roomMaker{named: "R"}
				told, done := make(chan struct{}), make(chan struct{})
				x.do = func(x *roomMaker, ctx context.Context, _ fwk.PodGroupInfo, try fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
					l, victim := x.handle.MutableSnapshotSharedLister(), removeOld(t, x)
					late := func() {
						defer close(done)
						<-told
						_, status := try(context.Background())
						x.say(l.RemovePod(klog.Background(), victim, "a"), "\n", l.StartMutations(), "\n", l.EndMutations(), "\n", status.Message(), "\n", context.Cause(ctx))
					}
					if hangs {
						late()
					} else {
						go late()
					}
					return nil, fwk.NewStatus(fwk.Unschedulable, "no room")
				}
				c := newFullNode(t, x, WithTimeout(50*time.Millisecond))
				d := c.Decision("g-1", 0)
				if hangs && (d.Err == nil || !strings.Contains(d.Err.Error(), "did not return from PodGroupPostFilter")) {
					t.Errorf("got %v", d.Err)
				}
				close(told)
				<-done
				refused := "only PodGroupPostFilter plugins may change the snapshot, while they are called\n"
				if got, want := x.heard(), strings.Repeat(refused, 4)+"the scheduling cycle has ended"; got != want {
					t.Errorf("got\n%s", got)
				}
				expectUnchanged(t, c, x)
			})
		})
	}
}

// While the group is tried nothing may be changed, and the group is not tried within a try.
func TestGroupPostFilterWhileTried(t *testing.T) {
	x := &roomMaker{named: "R"}
	var try fwk.PodGroupSchedulingFunc
	x.do = func(x *roomMaker, ctx context.Context, _ fwk.PodGroupInfo, given fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
		removeOld(t, x)
		try = given
		_, status := given(ctx)
		return nil, status
	}
	c := newFullNode(t, x, WithPlugin("F", with(func(h fwk.Handle) fwk.Plugin {
		return &filter{"F", func(fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status {
			if try != nil {
				_, status := try(context.Background())
				x.say(h.MutableSnapshotSharedLister().StartMutations(), ", ", status.Message())
				try = nil
			}
			return nil
		}}
	})))
	c.Decision("g-1", 0)
	if got := x.heard(); got != "the pod group is being tried, the pod group is being tried" {
		t.Errorf("got %s", got)
	}
	expectUnchanged(t, c, x)
}

// keeper notes for the group which pods are on the node, each time that a pod of the group is
// tried, and reads the note after it has tried the group without the pod old.
type keeper struct {
	*roomMaker
	read string
}

func (k *keeper) PreFilter(_ context.Context, state fwk.CycleState, _ *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if g := state.GetPodGroupSchedulingCycle(); g != nil {
		g.Write("on a", noted(fmt.Sprint(k.on())))
	}
	return nil, nil
}

func (k *keeper) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (k *keeper) PodGroupPostFilter(ctx context.Context, state fwk.PodGroupCycleState, _ fwk.PodGroupInfo, try fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	k.do(k.roomMaker, ctx, nil, try)
	saw, err := state.Read("on a")
	k.read = fmt.Sprint(saw, " ", err)
	return nil, fwk.NewStatus(fwk.Unschedulable)
}

// What plugins keep for a group in its own try is not changed by tries for a plugin that
// searches victims: each of these begins with a state of its own.
func TestGroupPostFilterKeepsTheStateOfTheGroup(t *testing.T) {
	x := &roomMaker{named: "R"}
	k := &keeper{roomMaker: x}
	x.do = func(x *roomMaker, ctx context.Context, _ fwk.PodGroupInfo, try fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
		removeOld(t, x)
		if _, status := try(ctx); !status.IsSuccess() {
			t.Error(status.Message())
		}
		return nil, nil
	}
	c := newFullNodeWith(t, x, k)
	c.Decision("g-1", 0)
	if want := "[old] <nil>"; k.read != want {
		t.Errorf("got %q, want %q", k.read, want)
	}
}
