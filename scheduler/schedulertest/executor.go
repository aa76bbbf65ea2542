package schedulertest

import (
	"context"
	"slices"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
)

// executor carries effects out on the objects in memory.
type executor struct {
	ctx     context.Context
	cluster *Cluster

	mu        sync.Mutex
	decisions map[string][]*decision.Decision // by namespace/name
	order     []string
}

func newExecutor(ctx context.Context, c *Cluster) *executor {
	return &executor{ctx: ctx, cluster: c, decisions: map[string][]*decision.Decision{}}
}

// Full is never true.
func (x *executor) Full() bool { return false }

// Do carries an effect out on a goroutine of its own.
func (x *executor) Do(e machine.Effect) {
	c := x.cluster
	switch e := e.(type) {
	case machine.Bind:
		go func() { c.loop.Report(x.bind(e)) }()
	case machine.RunPlugins:
		if e.Point == "PostBind" {
			c.hosts.Run(x.ctx, e)
			return
		}
		go func() { c.loop.Report(c.hosts.Run(x.ctx, e)) }()
	case machine.CancelPlugins:
		c.hosts.Cancel(e.Pod.UID, e.Why)
	case machine.ReadPod:
		go func() {
			reply := machine.ReadReply{UID: e.Pod.UID}
			if p, err := c.client.CoreV1().Pods(e.Pod.Namespace).Get(x.ctx, e.Pod.Name, metav1.GetOptions{}); err == nil {
				reply.Pod = podSet(p).(machine.PodSet).Pod
			}
			c.loop.Report(reply)
		}()
	case machine.Evict:
		go func() {
			err := c.client.CoreV1().Pods(e.Victim.Namespace).Delete(x.ctx, e.Victim.Name, metav1.DeleteOptions{})
			c.loop.Report(machine.EvictReply{Victim: e.Victim.UID, Preemptor: e.Preemptor.UID, Err: err})
		}()
	case machine.Write:
		go c.loop.Report(machine.WriteReply{UID: e.Pod.UID, Call: e.Call, Done: len(e.Writes)})
	case machine.AttemptDone:
		x.mu.Lock()
		defer x.mu.Unlock()
		pod := e.Decision.Pod.String()
		x.order = append(x.order, pod)
		x.decisions[pod] = append(x.decisions[pod], e.Decision)
	}
}

func (x *executor) bind(e machine.Bind) machine.BindReply {
	pods := x.cluster.client.CoreV1().Pods(e.Pod.Namespace)
	reply := machine.BindReply{UID: e.Pod.UID}
	p, err := pods.Get(x.ctx, e.Pod.Name, metav1.GetOptions{})
	if err == nil {
		p = p.DeepCopy()
		p.Spec.NodeName = e.Node
		_, err = pods.Update(x.ctx, p, metav1.UpdateOptions{})
	}
	if err != nil {
		reply.Result, reply.Err = machine.BindRefused, err
	}
	return reply
}

func (x *executor) tried() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.order)
}

// decision is the record of the pod's attempts that follows the first that many, if there
// is one.
func (x *executor) decision(pod string, after int) *decision.Decision {
	x.mu.Lock()
	defer x.mu.Unlock()
	if all := x.decisions[pod]; len(all) > after {
		return all[after]
	}
	return nil
}

// failure is the last record of the pod's attempts that says that it failed.
func (x *executor) failure(pod string) *decision.Decision {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, d := range slices.Backward(x.decisions[pod]) {
		if d.Result != decision.ResultScheduled && d.Result != decision.ResultWaiting {
			return d
		}
	}
	return nil
}

func resourceOf(t testing.TB, o runtime.Object) (schema.GroupVersionResource, string) {
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		t.Fatal(err)
	}
	plural, _ := meta.UnsafeGuessKindToResource(kinds[0])
	m, _ := meta.Accessor(o)
	return plural, m.GetNamespace()
}

// Node returns a node with room for 110 pods, 4 CPUs and 16Gi of memory. Pairs of
// labels may follow.
func Node(name string, labels ...string) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{v1.LabelHostname: name}}}
	for i := 0; i+1 < len(labels); i += 2 {
		n.Labels[labels[i]] = labels[i+1]
	}
	n.Status.Allocatable = v1.ResourceList{
		v1.ResourcePods: resource.MustParse("110"), v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("16Gi"),
	}
	n.Status.Capacity = n.Status.Allocatable
	return n
}

// Pod returns a pod of the namespace default that asks for 100m of CPU. Pairs of
// labels may follow.
func Pod(name string, labels ...string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		p.Labels[labels[i]] = labels[i+1]
	}
	p.Spec.SchedulerName = v1.DefaultSchedulerName
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")},
	}}}
	return p
}
