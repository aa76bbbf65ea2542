package sim_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-scheduler/berth/edge/why"
	"github.com/berth-scheduler/berth/sim/generate"
)

// A list of a generated cluster leaves the cluster as it was: a second list has the same
// causes, and so has the answer about each pod. No pod is listed twice, and none is left out.
func TestWhyListLeavesTheClusterAlone(t *testing.T) {
	for _, mix := range generate.Mixes() {
		if mix == "extenders" {
			continue
		}
		_, files := generated(t, mix, 3)
		c, err := files.Load()
		if err != nil {
			continue
		}
		before := answers(t, c)
		c.NoFixes = true // nodes that were added and taken away again move the draw
		first, second := causesOf(t, mix, c), causesOf(t, mix, c)
		if first != second {
			t.Errorf("%s: a second list differs:\n%s\n%s", mix, first, second)
		}
		if c.NoFixes = testing.Short(); !c.NoFixes {
			causesOf(t, mix, c)
		}
		if err := c.Machine.Table().Check(); err != nil {
			t.Errorf("%s: %v", mix, err)
		}
		if after := answers(t, c); after != before {
			t.Errorf("%s: answers differ after a list:\n%s\n%s", mix, before, after)
		}
	}
}

// causesOf lists what blocks all pods.
func causesOf(t *testing.T, mix string, c *why.Cluster) (text string) {
	t.Helper()
	l, err := c.All(t.Context(), why.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	pods := 0
	for _, cause := range l.Causes {
		pods += cause.Pods
		text += fmt.Sprintf("%s %d %s\n", cause.Verdict, cause.Pods, cause.Examples)
		for _, f := range cause.Fixes {
			if f.Places < 1 || f.Places > f.Of || f.Of > cause.Pods {
				t.Errorf("%s: %s places %d of %d of %d", mix, f.Summary, f.Places, f.Of, cause.Pods)
			}
		}
	}
	if pods != l.Pods || l.Cut != "" {
		t.Errorf("%s: %d of %d pods are listed; cut: %s", mix, pods, l.Pods, l.Cut)
	}
	return text
}

// answers are the messages about all pending pods.
func answers(t *testing.T, c *why.Cluster) (all string) {
	t.Helper()
	brief := *c
	brief.NoFixes = true
	for _, p := range c.Set.Pods {
		if p.Spec.NodeName == "" {
			a := brief.Why(t.Context(), p)
			all += fmt.Sprintln(a.Pod, a.Verdict, a.Message)
		}
	}
	return all
}

// Of pods that all fit by themselves as many are said to fit as there is room for, in the
// order of their priorities.
func TestWhyListOfCompetingPods(t *testing.T) {
	var pods []*v1.Pod
	for i := range 6 {
		p := plainPod(fmt.Sprint("p", i))
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("3")}
		pods = append(pods, p)
	}
	c := clusterOf(t, []*v1.Node{plainNode("n"), plainNode("m")}, pods...)
	l, err := c.All(t.Context(), why.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Causes) != 2 || l.Causes[0].Pods != 4 || l.Causes[0].Verdict != why.Waiting || l.Causes[1].Pods != 2 || l.Causes[1].Verdict != why.WouldBePlaced {
		t.Fatalf("got %+v", l.Causes)
	}
	if f := l.Causes[0].Fixes; len(f) == 0 || f[0].Places != 4 || f[0].Of != 4 || !strings.HasPrefix(f[0].Summary, "add 4 nodes like ") {
		t.Errorf("the fixes are %+v", f)
	}
}
