package kube

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/berth-scheduler/berth/core/machine"
)

// pluginsOf runs plugins that return at once.
type pluginsOf struct{ ran []string }

func (p *pluginsOf) Run(_ context.Context, e machine.RunPlugins) machine.Event {
	p.ran = append(p.ran, e.Point)
	if e.Point == "Bind" {
		return machine.BindReply{UID: e.Pod.UID}
	}
	return machine.PreBindReply{UID: e.Pod.UID}
}
func (*pluginsOf) Cancel(types.UID, error) bool     { return false }
func (*pluginsOf) Pods() cache.SharedIndexInformer  { return nil }
func (*pluginsOf) Nodes() cache.SharedIndexInformer { return nil }

// A patch that waits, such as the one that shows where a pod is expected, is sent
// although PreBind plugins run; a plugin's binding voids it.
func TestPluginsAndStatus(t *testing.T) {
	for point, want := range map[string][]string{"PreBind": {"n"}, "Bind": nil} {
		synctest.Test(t, func(t *testing.T) {
			var sent []string
			busy, node := make(chan struct{}), "n"
			q := newStatusQueue(newPool(1, 0, 0), func(_ context.Context, e machine.PatchStatus) bool {
				sent = append(sent, *e.Nominated)
				return true
			})
			q.pool.submit(func(context.Context) { <-busy })
			hosts := &pluginsOf{}
			x := &Executor{clients: &Clients{held: func() bool { return true }}, report: func(machine.Event) {}, status: q, plugins: newCalls(), hosts: hosts}
			q.add(machine.PatchStatus{Pod: testPod("p"), Nominated: &node})
			x.startPlugins(machine.RunPlugins{Pod: testPod("p"), Point: point, Plugins: []string{"P"}})
			synctest.Wait()
			if !slices.Equal(hosts.ran, []string{point}) {
				t.Errorf("%s: ran %v", point, hosts.ran)
			}
			close(busy)
			synctest.Wait()
			if !slices.Equal(sent, want) {
				t.Errorf("%s: sent %v, want %v", point, sent, want)
			}
			q.pool.close(false)
			q.pool.wait(context.Background())
		})
	}
}
