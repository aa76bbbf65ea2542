package compat_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"

	. "github.com/berth-scheduler/berth/scheduler/schedulertest"
)

// halves keeps a group on the nodes whose names begin with one letter, and prefers z. Where
// misbehave is set it is asked at each point first.
type halves struct {
	named
	misbehave func(point string) (*fwk.Status, bool)
	generated map[*fwk.Placement]bool
	said      []string
}

type noted string

func (n noted) Clone() fwk.StateData { return n }

func (x *halves) off(point string) (*fwk.Status, bool) {
	if x.misbehave == nil {
		return nil, false
	}
	return x.misbehave(point)
}

func (x *halves) GeneratePlacements(_ context.Context, state fwk.PodGroupCycleState, g fwk.PodGroupInfo, parent *fwk.Placement) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	if s, off := x.off("GeneratePlacements"); off {
		return nil, s
	}
	x.said = append(x.said, fmt.Sprint(g.GetNamespace(), "/", g.GetName(), " ", len(g.GetUnscheduledPods()), " on ", len(parent.Nodes)))
	state.Write("halves", noted("generated"))
	x.generated = map[*fwk.Placement]bool{}
	by := map[byte]*fwk.Placement{}
	var list []*fwk.Placement
	for _, n := range parent.Nodes {
		first := n.Node().Name[0]
		if by[first] == nil {
			by[first] = &fwk.Placement{Name: string(first)}
			list, x.generated[by[first]] = append(list, by[first]), true
		}
		by[first].Nodes = append(by[first].Nodes, n)
	}
	return &fwk.GeneratePlacementsResult{Placements: list}, nil
}

func (x *halves) ScorePlacement(_ context.Context, state fwk.PlacementCycleState, _ fwk.PodGroupInfo, a *fwk.PodGroupAssignments) (int64, *fwk.Status) {
	if s, off := x.off("ScorePlacement"); off {
		return 0, s
	}
	saw, _ := state.GetPodGroupSchedulingCycle().Read("halves")
	var nodes []string
	for _, p := range a.ProposedAssignments {
		nodes = append(nodes, p.GetPod().Name+" "+p.GetNodeName()[:1])
	}
	slices.Sort(nodes)
	x.said = append(x.said, fmt.Sprint(a.Name, " ", nodes, " ", saw, " ", x.generated[a.Placement]))
	return int64(a.Name[0]), nil
}

func (x *halves) PlacementScoreExtensions() fwk.PlacementScoreExtensions { return x }

func (x *halves) NormalizePlacementScore(_ context.Context, _ fwk.PodGroupCycleState, _ fwk.PodGroupInfo, scores []fwk.PlacementScore) *fwk.Status {
	if s, off := x.off("NormalizePlacementScore"); off {
		return s
	}
	for i := range scores {
		x.said = append(x.said, fmt.Sprint(scores[i].Placement.Name, " ", scores[i].Score, " ", x.generated[scores[i].Placement]))
		scores[i].Score = max(0, scores[i].Score-'a')
	}
	return nil
}

// newHosted has the plugin generate placements.
func newHosted(t *testing.T, x fwk.Plugin, opts ...Option) *Cluster {
	t.Helper()
	return New(t, append(opts, WithPlacements(), WithPlugin("Hosted", with(func(fwk.Handle) fwk.Plugin { return x })),
		WithConfig(func(c *configv1.KubeSchedulerConfiguration) {
			c.Profiles[0].Plugins.PlacementGenerate.Disabled = []configv1.Plugin{{Name: "TopologyPlacementGenerator"}}
		}))...)
}

// A group is tried in each placement that a plugin generates, and placed in the one that
// plugins rate best.
func TestPlacements(t *testing.T) {
	x := &halves{named: "Hosted"}
	c := newHosted(t, x)
	c.Add(Node("a-0"), Node("z-0"), Node("z-1"), podGroup("g", 2), member("g-0", "g"), member("g-1", "g"))
	for _, pod := range []string{"g-0", "g-1"} {
		if node := c.NodeOf(pod); node[0] != 'z' {
			t.Errorf("%s is on %s", pod, node)
		}
	}
	want := `default/g 2 on 3
a [g-0 a g-1 a] generated true
z [g-0 z g-1 z] generated true
a 97 true
z 122 true`
	if got := strings.Join(x.said, "\n"); got != want {
		t.Errorf("got\n%s", got)
	}
}

// What a plugin of placements does wrong is an error of the group's attempt: other pods go
// on, and the group does once the plugin is well.
func TestPlacementsAreContained(t *testing.T) {
	wrongs := map[string]func() (*fwk.Status, bool){
		"panics":    func() (*fwk.Status, bool) { panic("it is broken") },
		"hangs":     func() (*fwk.Status, bool) { select {} },
		"fails":     func() (*fwk.Status, bool) { return fwk.AsStatus(errors.New("it is broken")), true },
		"has codes": func() (*fwk.Status, bool) { return fwk.NewStatus(fwk.Code(99)), true },
		"rejects":   func() (*fwk.Status, bool) { return fwk.NewStatus(fwk.Unschedulable, "not today"), true },
		"is silent": func() (*fwk.Status, bool) { return nil, true },
	}
	for _, point := range []string{"GeneratePlacements", "ScorePlacement", "NormalizePlacementScore"} {
		for what, wrong := range wrongs {
			if what == "is silent" && point != "GeneratePlacements" {
				continue // 0 is a score
			}
			t.Run(point+" "+what, func(t *testing.T) {
				broken := true
				x := &halves{named: "Hosted", misbehave: func(at string) (*fwk.Status, bool) {
					if at != point || !broken {
						return nil, false
					}
					broken = false
					return wrong()
				}}
				c := newHosted(t, x, WithTimeout(200*time.Millisecond))
				c.Add(Node("a-0"), Node("z-0"), podGroup("g", 2), member("g-0", "g"), member("g-1", "g"))
				c.Decision("g-1", 0)
				c.Add(Pod("other"))
				c.NodeOf("other")
				if what == "hangs" {
					return // a plugin that has not returned is not called for that pod again
				}
				if node := c.NodeOf("g-0"); node[0] != 'z' {
					t.Errorf("g-0 is on %s", node)
				}
			})
		}
	}
}

// seen are the nodes that a plugin was asked about for a pod.
type seen struct {
	sync.Mutex
	nodes map[string]bool
}

func (s *seen) Clone() fwk.StateData { return s }

// tried are the pods that are tried in a placement.
type tried []string

func (t *tried) Clone() fwk.StateData { return t }

// noter notes in the CycleState which nodes Filter is asked about, and looks for the node
// there at Reserve. It prefers the first placement.
type noter struct {
	halves
	t *testing.T
}

func (x *noter) ScorePlacement(_ context.Context, state fwk.PlacementCycleState, g fwk.PodGroupInfo, a *fwk.PodGroupAssignments) (int64, *fwk.Status) {
	if g.GetType() != fwk.PodGroupKeyType || g.GetKey() != "podgroup/default/g" || g.GetPodGroup() == nil || g.GetPodGroup().Name != "g" || g.GetChildren() != nil {
		x.t.Errorf("the group is %s %s %v %v", g.GetType(), g.GetKey(), g.GetPodGroup(), g.GetChildren())
	}
	if of, err := state.Read("tried"); err != nil || fmt.Sprint(of) != "&[g-0 g-1]" {
		x.t.Errorf("in %s: tried %v, %v", a.Name, of, err)
	}
	for _, p := range a.ProposedAssignments {
		of, err := p.GetCycleState().Read("seen")
		if err != nil || !of.(*seen).nodes[p.GetNodeName()] || p.GetCycleState().GetPlacementCycleState() != state || p.GetPodInfo().GetPod() != p.GetPod() {
			x.t.Errorf("in %s, the state of %s, to be on %s, is of %v, %v", a.Name, p.GetPod().Name, p.GetNodeName(), of, err)
		}
	}
	return int64('z' - a.Name[0]), nil
}
func (x *noter) PlacementScoreExtensions() fwk.PlacementScoreExtensions { return nil }
func (x *noter) PreFilter(_ context.Context, s fwk.CycleState, p *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	s.Write("seen", &seen{nodes: map[string]bool{}})
	of, err := s.GetPlacementCycleState().Read("tried")
	if err != nil {
		of = &tried{}
		s.GetPlacementCycleState().Write("tried", of)
	}
	if *of.(*tried) = append(*of.(*tried), p.Name); len(*of.(*tried)) > 2 {
		x.t.Errorf("the state is of an earlier try: %v", of)
	}
	return nil, nil
}
func (x *noter) PreFilterExtensions() fwk.PreFilterExtensions { return nil }
func (x *noter) Filter(_ context.Context, s fwk.CycleState, _ *v1.Pod, n fwk.NodeInfo) *fwk.Status {
	of, _ := s.Read("seen")
	of.(*seen).Lock()
	defer of.(*seen).Unlock()
	of.(*seen).nodes[n.Node().Name] = true
	return nil
}
func (x *noter) Reserve(_ context.Context, s fwk.CycleState, p *v1.Pod, node string) *fwk.Status {
	if of, err := s.Read("seen"); err != nil || !of.(*seen).nodes[node] {
		x.t.Errorf("Reserve of %s on %s: the state is of %v", p.Name, node, of)
	}
	return nil
}
func (x *noter) Unreserve(context.Context, fwk.CycleState, *v1.Pod, string) {}

// What a plugin noted of a pod is what it noted in the placement that is chosen, which is not
// the last one tried.
func TestStateIsOfThePlacement(t *testing.T) {
	x := &noter{halves{named: "Hosted"}, t}
	c := newHosted(t, x)
	c.Add(Node("a-0"), Node("a-1"), Node("z-0"), Node("z-1"), podGroup("g", 2), member("g-0", "g"), member("g-1", "g"))
	for _, pod := range []string{"g-0", "g-1"} {
		if node := c.NodeOf(pod); node[0] != 'a' {
			t.Errorf("%s is on %s", pod, node)
		}
	}
}

// late answers once it is told to.
type late struct {
	halves
	told, answered chan struct{}
}

func (x *late) ScorePlacement(context.Context, fwk.PlacementCycleState, fwk.PodGroupInfo, *fwk.PodGroupAssignments) (int64, *fwk.Status) {
	<-x.told
	defer close(x.answered)
	return 7, nil
}

// A score that comes after its time is nobody's. The time is virtual, so that no other call
// takes long.
func TestLatePlacementScore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &late{halves{named: "Hosted"}, make(chan struct{}), make(chan struct{})}
		c := newHosted(t, x, WithTimeout(50*time.Millisecond))
		c.Add(Node("a-0"), Node("z-0"), podGroup("g", 2), member("g-0", "g"), member("g-1", "g"))
		if d := c.Decision("g-1", 0); d.Err == nil || !strings.Contains(d.Err.Error(), "did not return from ScorePlacement") {
			t.Errorf("got %v", d.Err)
		}
		close(x.told)
		<-x.answered
	})
}

// wrongPlacements generates placements that are none.
type wrongPlacements struct {
	named
	list []*fwk.Placement
}

func (x *wrongPlacements) GeneratePlacements(context.Context, fwk.PodGroupCycleState, fwk.PodGroupInfo, *fwk.Placement) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	return &fwk.GeneratePlacementsResult{Placements: x.list}, nil
}

// A placement that is nil, or has a node that is nil or none of the cluster's, is an error
// that says so; one without nodes has room for nobody.
func TestWrongPlacements(t *testing.T) {
	stranger := &bareNode{node: Node("stranger")}
	for name, tc := range map[string]struct {
		list []*fwk.Placement
		want string
	}{
		"nil":        {[]*fwk.Placement{nil}, "a placement is nil"},
		"nil node":   {[]*fwk.Placement{{Name: "x", Nodes: []fwk.NodeInfo{nil}}}, `a node in placement "x" is nil`},
		"no object":  {[]*fwk.Placement{{Name: "x", Nodes: []fwk.NodeInfo{&bareNode{}}}}, `a node in placement "x" is nil`},
		"a stranger": {[]*fwk.Placement{{Name: "x", Nodes: []fwk.NodeInfo{stranger}}}, "node stranger in placement is not present in snapshot"},
		"no nodes":   {[]*fwk.Placement{{Name: "x"}}, ""}, // the group's condition says 0/1 placements
		"none":       {nil, "no feasible placements found"},
	} {
		t.Run(name, func(t *testing.T) {
			x := &wrongPlacements{"Hosted", tc.list}
			c := New(t, WithPlacements(), WithPlugin("Hosted", with(func(fwk.Handle) fwk.Plugin { return x })),
				WithConfig(func(c *configv1.KubeSchedulerConfiguration) {
					c.Profiles[0].Plugins.PlacementGenerate.Disabled = []configv1.Plugin{{Name: "*"}}
					c.Profiles[0].Plugins.PlacementGenerate.Enabled = []configv1.Plugin{{Name: "Hosted"}}
				}))
			c.Add(Node("a"), podGroup("g", 1), member("g-0", "g"))
			d := c.Decision("g-0", 0)
			if said := fmt.Sprint(d.Err, d.GroupStatus, d.Tallies); tc.want != "" && !strings.Contains(said, tc.want) {
				t.Errorf("got %s", said)
			}
			c.Add(Pod("other"))
			c.NodeOf("other")
		})
	}
}
