package daemon_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/logs/logstest"
	"github.com/berth-scheduler/berth/edge/loop"
	"github.com/berth-scheduler/berth/sim/apiserver"
)

// deaf is a machine that does not hear of pods and nodes for a while.
type deaf struct {
	loop.Machine
	on atomic.Bool
}

func (m *deaf) Step(now time.Time, e machine.Event) []machine.Effect {
	if m.on.Load() {
		switch e.(type) {
		case machine.PodSet, machine.PodGone, machine.NodeSet, machine.NodeGone:
			return nil
		}
	}
	return m.Machine.Step(now, e)
}

// What the machine never heard of, or heard wrong, is found by the audit and told
// again. What it need not know is no difference.
func TestAuditComparesTableAndQueue(t *testing.T) {
	s := &logstest.Sink{Verbosity: 1}
	found := func() (n int) { // since it was called last
		for _, l := range s.Lines() {
			if strings.HasPrefix(l.Message, "The cache differs from the API server") {
				n++
			}
		}
		return n
	}
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{Server: apiserver.New()}
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		waiting := func(name, scheduler string) *v1.Pod {
			p := podOf(name, "")
			p.Spec.SchedulerName, p.Spec.NodeSelector = scheduler, map[string]string{"no": "where"}
			return p
		}
		must(c.Create(nodeOf("n")))
		must(c.Create(nodeOf("going")))
		must(c.Create(podOf("gone", "n")))
		must(c.Create(podOf("changed", "n")))
		must(c.Create(podOf("same", "n")))
		must(c.Create(waiting("stays", v1.DefaultSchedulerName)))
		must(c.Create(waiting("others", "another")))
		undone := podOf("undone", "n")
		undone.Spec.SchedulerName = "another"
		must(c.Create(undone))
		m := &deaf{}
		d := daemonOf(t, c, s, "me", func(of loop.Machine) loop.Machine { m.Machine = of; return m })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.Run(ctx, nil) }()
		time.Sleep(25 * time.Minute)
		if n := found(); n > 0 {
			t.Errorf("%d differences, where there are none", n)
		}
		m.on.Store(true)
		must(c.Create(nodeOf("new")))
		c.Delete("nodes", "", "going")
		c.Delete("pods", "ns", "gone")
		must(c.Update("pods", "ns", "changed", func(o apiserver.Object) { o.SetLabels(map[string]string{"x": "y"}) }))
		must(c.Update("pods", "ns", "undone", func(o apiserver.Object) { o.(*v1.Pod).Spec.NodeName = "" }))
		must(c.Create(podOf("placed", "n")))
		must(c.Create(waiting("waits", v1.DefaultSchedulerName)))
		must(c.Create(waiting("others-too", "another")))
		time.Sleep(time.Second)
		m.on.Store(false)
		time.Sleep(25 * time.Minute)
		must(d.Inspect(ctx, func(m *machine.Machine) {
			version := map[types.NamespacedName]string{}
			for _, k := range m.KnownPods() {
				version[k.Name] = k.Version
			}
			for _, name := range []string{"changed", "same", "stays", "placed", "waits"} {
				if got, want := version[types.NamespacedName{Namespace: "ns", Name: name}], c.Get("pods", "ns", name).GetResourceVersion(); got != want {
					t.Errorf("pod %s is known in version %q, want %q", name, got, want)
				}
			}
			if _, known := m.Table().Find("new"); len(version) != 5 || !known || m.Table().Live() != 2 || m.Table().PlacedPods() != 3 {
				t.Errorf("%d pods, %d nodes, %d placed; the new node is known: %t", len(version), m.Table().Live(), m.Table().PlacedPods(), known)
			}
			must(m.Verify())
		}))
		if n := found(); n != 2 {
			t.Errorf("found %d times, want once for pods and once for nodes", n)
		}
		time.Sleep(25 * time.Minute)
		if n := found(); n > 0 {
			t.Errorf("what was told again differs again, %d times", n)
		}
		stop()
		<-ended
		time.Sleep(2 * time.Minute)
	})
}
