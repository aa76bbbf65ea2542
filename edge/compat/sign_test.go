package compat_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	. "github.com/berth-scheduler/berth/scheduler/schedulertest"
)

// signsBy signs pods as a test wants.
type signsBy struct {
	*filter
	sign func(p *v1.Pod) ([]fwk.SignFragment, *fwk.Status)
}

func (s signsBy) SignPod(_ context.Context, p *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return s.sign(p)
}

func labelsOf(p *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return []fwk.SignFragment{{Key: fwk.LabelsSignerName, Value: p.Labels}}, nil
}

// odd keeps pods off half of the nodes, and off zones with a pod that bullies others, as a
// pod with anti-affinity does.
func odd(h fwk.Handle, asked *atomic.Int64) *filter {
	return &filter{"S", func(_ fwk.CycleState, _ *v1.Pod, n fwk.NodeInfo) *fwk.Status {
		asked.Add(1)
		if n.Node().Labels["odd"] != "" {
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the node is odd")
		}
		nodes, err := h.SnapshotSharedLister().NodeInfos().List()
		if err != nil {
			return fwk.AsStatus(err)
		}
		for _, other := range nodes {
			for _, p := range other.GetPods() {
				if p.GetPod().Labels["bully"] != "" && other.Node().Labels["zone"] == n.Node().Labels["zone"] {
					return fwk.NewStatus(fwk.Unschedulable, "bullied")
				}
			}
		}
		return nil
	}}
}

func manyNodes(c *Cluster) {
	for i := range 40 {
		n := Node(fmt.Sprintf("n%02d", i), "zone", fmt.Sprint(i/4%2))
		if i%4 == 0 {
			n.Labels["odd"] = "yes"
		}
		c.Add(n)
	}
}

// place has pods of a kind decided on one after the other, with nothing in between, and
// returns how often the plugin was asked for the last of them.
func place(c *Cluster, asked *atomic.Int64, prefix string, pods int, labels ...string) int64 {
	last := int64(0)
	for i := range pods {
		before := asked.Load()
		name := fmt.Sprint(prefix, i)
		c.Add(Pod(name, labels...))
		c.NodeOf(name)
		last = asked.Load() - before
	}
	return last
}

// A plugin that signs pods is asked about few nodes while pods of one signature alone
// are placed. A pod of another kind ends that, and what it changes counts.
func TestSignedPodsKeepAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		c := New(t, WithPlugin("S", with(func(h fwk.Handle) fwk.Plugin { return signsBy{odd(h, &asked), labelsOf} })))
		manyNodes(c)
		if n := place(c, &asked, "p", 30); n > 3 {
			t.Errorf("%d questions for the 30th pod", n)
		}
		c.Add(Pod("bully", "bully", "yes"))
		bullied := zoneOf(c.NodeOf("bully"))
		for i := range 10 {
			name := fmt.Sprint("q", i)
			c.Add(Pod(name))
			if node := c.NodeOf(name); zoneOf(node) == bullied {
				t.Errorf("%s is on %s, near the bully", name, node)
			}
		}
	})
}

// zoneOf is the zone of one of manyNodes.
func zoneOf(node string) string {
	var i int
	_, _ = fmt.Sscanf(node, "n%d", &i) // all names are like that
	return fmt.Sprint(i / 4 % 2)
}

// A pod is asked about anew where one plugin does not sign, or refuses to, or fails to. It
// is placed all the same.
func TestUnsignedPodsAreAskedAnew(t *testing.T) {
	signs := func(f func(p *v1.Pod) ([]fwk.SignFragment, *fwk.Status)) func(h fwk.Handle, asked *atomic.Int64) fwk.Plugin {
		return func(h fwk.Handle, asked *atomic.Int64) fwk.Plugin { return signsBy{odd(h, asked), f} }
	}
	status := func(s *fwk.Status) func(h fwk.Handle, asked *atomic.Int64) fwk.Plugin {
		return signs(func(*v1.Pod) ([]fwk.SignFragment, *fwk.Status) { return nil, s })
	}
	for name, plugin := range map[string]func(h fwk.Handle, asked *atomic.Int64) fwk.Plugin{
		"it has no SignPod":   func(h fwk.Handle, asked *atomic.Int64) fwk.Plugin { return odd(h, asked) },
		"it refuses":          status(fwk.NewStatus(fwk.Unschedulable, "not this one")),
		"it fails":            status(fwk.AsStatus(errors.New("broken"))),
		"it has another code": status(fwk.NewStatus(fwk.Code(77))),
		"it panics":           signs(func(*v1.Pod) ([]fwk.SignFragment, *fwk.Status) { panic("sign") }),
		"it ends":             signs(func(*v1.Pod) ([]fwk.SignFragment, *fwk.Status) { runtime.Goexit(); return nil, nil }),
		"it cannot be written": signs(func(*v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
			return []fwk.SignFragment{{Key: "k", Value: func() {}}}, nil
		}),
		"each is another": signs(func(p *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
			return []fwk.SignFragment{{Key: "k", Value: p.Name}}, nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int64
				c := New(t, WithPlugin("S", with(func(h fwk.Handle) fwk.Plugin { return plugin(h, &asked) })))
				manyNodes(c)
				if n := place(c, &asked, "p", 30); n < 5 {
					t.Errorf("%d questions for the 30th pod", n)
				}
			})
		})
	}
}

// Where one of two plugins does not sign pods, none of them is signed.
func TestAllPluginsHaveToSign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		c := New(t, WithPlugin("S", with(func(h fwk.Handle) fwk.Plugin { return signsBy{odd(h, &asked), labelsOf} })),
			WithPlugin("N", with(func(h fwk.Handle) fwk.Plugin {
				return &filter{"N", func(fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status { return nil }}
			})))
		manyNodes(c)
		if n := place(c, &asked, "p", 30); n < 5 {
			t.Errorf("%d questions for the 30th pod", n)
		}
	})
}

// A SignPod that hangs is an error of its pod, and of no other.
func TestSignPodHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		release := make(chan struct{})
		c := New(t, WithPlugin("S", with(func(h fwk.Handle) fwk.Plugin {
			return signsBy{odd(h, &asked), func(p *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
				if p.Labels["evil"] != "" {
					<-release
				}
				return labelsOf(p)
			}}
		})))
		defer close(release)
		manyNodes(c)
		c.Add(Pod("evil", "evil", "yes"))
		d := c.Failure("evil")
		if d.Result != decision.ResultError || d.Err == nil || !strings.Contains(d.Err.Error(), "SignPod") {
			t.Errorf("got %+v, %v", d, d.Err)
		}
		place(c, &asked, "p", 3)
	})
}

// The reasons of a rejection are those of the pod at hand, whatever was kept before.
func TestRejectionAfterKeptAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		c := New(t, WithPlugin("S", with(func(h fwk.Handle) fwk.Plugin {
			plain := odd(h, &asked)
			return signsBy{&filter{"S", func(s fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) *fwk.Status {
				if len(n.GetPods()) >= 2 {
					return fwk.NewStatus(fwk.Unschedulable, "no third pod for "+p.Name)
				}
				return plain.filter(s, p, n)
			}}, labelsOf}
		})))
		manyNodes(c)
		place(c, &asked, "p", 60)
		c.Add(Pod("last"))
		d := c.Failure("last")
		if d.Result != decision.ResultUnschedulable || len(d.Tallies) != 2 || d.Tallies[0].Nodes+d.Tallies[1].Nodes != 40 ||
			!strings.Contains(fmt.Sprint(d.Tallies), "no third pod for last") || !strings.Contains(fmt.Sprint(d.Tallies), "the node is odd") {
			t.Errorf("got %+v", d.Tallies)
		}
	})
}
