package day

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Size is how much happens on a generated day.
type Size struct {
	Nodes, Pods int
	Length      time.Duration
	// Heartbeat is how often each node's status changes; 0: never.
	Heartbeat time.Duration
	// Controllers: pods name the ReplicaSet of a Deployment as their controller.
	Controllers bool
	Seed        uint64
}

// Pods of a generated day belong to workloads, in rotation.
const workloads = 60

// Generate lets a day pass: nodes report, pods arrive in waves, are placed, start,
// and end after a while. progress, when set, is told of each hour.
func Generate(c *Cluster, s Size, progress func(time.Duration)) {
	g := &generator{Cluster: c, size: s, draw: rand.New(rand.NewPCG(s.Seed, 11))} // #nosec G404 -- a day is to be the same for a seed
	begin := c.Now
	for i := range s.Nodes {
		g.nodes = append(g.nodes, g.node(i))
		c.Set(g.nodes[i])
		if s.Heartbeat > 0 {
			g.at(begin.Add(time.Duration(g.draw.Int64N(int64(s.Heartbeat)))), func() { g.heartbeat(i) })
		}
	}
	for i := range s.Pods {
		g.at(begin.Add(g.arrival()), func() { g.pod(i) })
	}
	end, hour := begin.Add(s.Length), time.Hour
	for g.todo.Len() > 0 && !g.todo.list[0].at.After(end) {
		next := heap.Pop(&g.todo).(todo)
		if next.at.After(c.Now) {
			c.Settle()
			c.Advance(next.at)
		}
		next.do()
		if passed := c.Now.Sub(begin); passed >= hour && progress != nil {
			progress(passed)
			hour += time.Hour
		}
	}
	c.Settle()
	c.Advance(end)
}

type generator struct {
	*Cluster
	size  Size
	draw  *rand.Rand
	nodes []*v1.Node
	todo  agenda
}

// arrival is early or late on the day: twice as many pods come at noon as at night.
func (g *generator) arrival() time.Duration {
	a, b := g.draw.Int64N(int64(g.size.Length)), g.draw.Int64N(int64(g.size.Length))
	if g.draw.IntN(2) == 0 {
		return time.Duration(a)
	}
	return time.Duration((a + b) / 2)
}

func (g *generator) at(t time.Time, do func()) {
	g.todo.count++
	heap.Push(&g.todo, todo{t, g.todo.count, do})
}

func (g *generator) uid() types.UID {
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", g.draw.Uint32(), g.draw.IntN(1<<16), g.draw.IntN(1<<12), g.draw.IntN(1<<16), g.draw.Uint64()>>16))
}

func (g *generator) node(i int) *v1.Node {
	name := fmt.Sprintf("node-%04d", i)
	capacity := v1.ResourceList{v1.ResourceCPU: resource.MustParse("32"), v1.ResourceMemory: resource.MustParse("128Gi"), v1.ResourcePods: resource.MustParse("110")}
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: g.uid(), CreationTimestamp: metav1.NewTime(g.Now.Truncate(time.Second)), Labels: map[string]string{
		v1.LabelHostname: name, v1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3), "pool": []string{"general", "batch"}[i%4/3]}},
		Status: v1.NodeStatus{Capacity: capacity, Allocatable: capacity}}
	for j := range 20 {
		n.Status.Images = append(n.Status.Images, v1.ContainerImage{Names: []string{fmt.Sprintf("registry.example.com/team/app-%d:v1.%d", (i+j)%workloads, j)}, SizeBytes: int64(80+j) << 20})
	}
	for _, t := range []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure} {
		n.Status.Conditions = append(n.Status.Conditions, v1.NodeCondition{Type: t, Status: v1.ConditionFalse})
	}
	n.Status.Conditions = append(n.Status.Conditions, v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue})
	return n
}

// heartbeat is the kubelet's report that all is as it was.
func (g *generator) heartbeat(i int) {
	n := *g.nodes[i]
	for j := range n.Status.Conditions {
		n.Status.Conditions[j].LastHeartbeatTime = metav1.NewTime(g.Now)
	}
	g.Set(&n)
	g.at(g.Now.Add(g.size.Heartbeat), func() { g.heartbeat(i) })
}

// pod lets a pod arrive. It ends after a time that keeps the nodes about two thirds
// full.
func (g *generator) pod(i int) {
	p := g.newPod(i)
	uid := p.UID
	g.Set(p)
	live := g.size.Length * time.Duration(g.size.Nodes) * 18 / time.Duration(max(1, g.size.Pods)) // 18 pods of a mean size fill two thirds of a node
	g.at(g.Now.Add(2*time.Second), func() { g.started(uid) })
	g.at(g.Now.Add(live/2+time.Duration(g.draw.Int64N(int64(live)+1))), func() { g.Delete(uid) })
}

func (g *generator) newPod(i int) *v1.Pod {
	w := i % workloads
	app, uid := fmt.Sprintf("app-%d", w), g.uid()
	priority := int32(w % 3 * 100)
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("team-%d", w%12), Name: fmt.Sprintf("%s-%s-%05x", app, uid[:8], i), UID: uid, Generation: 1,
			CreationTimestamp: metav1.NewTime(g.Now.Truncate(time.Second)), Labels: map[string]string{"app": app, "pod-template-hash": fmt.Sprintf("%x", 0x5d4f0000+w)}},
		Spec: v1.PodSpec{SchedulerName: "default-scheduler", Priority: &priority, Containers: []v1.Container{{Name: "main", Image: fmt.Sprintf("registry.example.com/team/%s:v1.%d", app, w%20),
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(int64(250*(1+w%8)), resource.DecimalSI), v1.ResourceMemory: *resource.NewQuantity(int64(512*(1+w%11))<<20, resource.BinarySI)}}}}},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
	if g.size.Controllers {
		yes, name := true, app+"-"+p.Labels["pod-template-hash"]
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: types.UID(name), Controller: &yes}}
	}
	for _, key := range []string{v1.TaintNodeNotReady, v1.TaintNodeUnreachable} {
		wait := int64(300)
		p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: key, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: &wait})
	}
	if w%10 == 3 {
		p.Spec.NodeSelector = map[string]string{"pool": "batch"}
	}
	if w%10 == 5 {
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 2, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
	}
	return p
}

// started is the kubelet's report that the pod runs.
func (g *generator) started(uid types.UID) {
	p := g.Pod(uid)
	if p == nil || p.Spec.NodeName == "" {
		return
	}
	runs := *p
	runs.Status.Phase = v1.PodRunning
	g.Set(&runs)
}

// todo is what happens at a time.
type todo struct {
	at    time.Time
	order int
	do    func()
}

// agenda is a heap of what is to happen.
type agenda struct {
	list
	count int
}

type list []todo

func (l list) Len() int { return len(l) }
func (l list) Less(i, j int) bool {
	return l[i].at.Before(l[j].at) || l[i].at.Equal(l[j].at) && l[i].order < l[j].order
}
func (l list) Swap(i, j int) { l[i], l[j] = l[j], l[i] }

// Push adds what container/heap gives it.
func (l *list) Push(x any) { *l = append(*l, x.(todo)) }

// Pop takes the last.
func (l *list) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}
