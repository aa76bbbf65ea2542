package fix

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	ours "github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/workload"
)

// mostShapes bounds the shapes of nodes that are tried.
const mostShapes = 60

// newNodes tries one node more of each pool, the smallest first, and where none is large
// enough a larger one.
func (s *search) newNodes() {
	found := 0
	pools := pools(s.table, s.set)
	for _, p := range pools {
		n := p.NewNode(p.Like.Name + "-copy")
		if _, known := s.table.Find(n.API.Name); known {
			continue
		}
		if s.consider(join(s.base, []edit{newNode(addNode, n, "add a node like "+p.Like.Name)})) {
			if found++; found == mostOfASort {
				return
			}
		}
	}
	if found > 0 {
		return
	}
	for _, p := range slices.Backward(pools) {
		if s.largerNode(p) {
			return
		}
	}
}

func newNode(of kind, n *NewNode, say string) edit {
	c := &creation{target: target{"v1", "Node", "", n.API.Name}, object: n.API, node: n}
	return edit{kind: of, create: c, say: say}
}

// largerNode tries a node like those of the pool with as much as the pod needs there.
func (s *search) largerNode(p *Pool) bool {
	n := p.NewNode(p.Like.Name + "-copy")
	if _, known := s.table.Find(n.API.Name); known {
		return false
	}
	n.Join(s.table)
	row, _ := s.table.Find(n.API.Name)
	blockers, ok := s.blockers(s.base, row)
	var with []string
	for _, b := range blockers {
		if b.Plugin != names.NodeResourcesFit {
			ok = false
		}
		for _, name := range b.Insufficient {
			if !slices.Contains([]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage}, name) {
				ok = false // what a pool's nodes offer is not known of others
				break
			}
			column, _ := s.table.Column(name)
			q := ours.Quantity(name, s.table.Used(column)[row]+s.pod.Demand.Requests.Of(name))
			n.API.Status.Allocatable[name] = *q
			if whole, has := n.API.Status.Capacity[name]; has && whole.Cmp(*q) < 0 {
				n.API.Status.Capacity[name] = *q
			}
			with = append(with, amountWith(name, q, s.table.Used(column)[row]))
		}
	}
	n.Leave(s.table)
	if !ok || len(with) == 0 {
		return false
	}
	n.decode()
	return s.consider(join(s.base, []edit{newNode(addLarger, n, fmt.Sprintf("add a node like %s with at least %s", p.Like.Name, strings.Join(with, " and ")))}))
}

// amountWith is how much a node is to have of a resource, and how much of that is for
// what it runs anyway.
func amountWith(name v1.ResourceName, q *resource.Quantity, own int64) string {
	text := fmt.Sprintf("%s %s", q, noun(name))
	if name == v1.ResourceCPU && q.MilliValue() != 1000 {
		text += "s"
	}
	if own > 0 {
		text += fmt.Sprintf(" (%s of it for the pods that each of these nodes runs)", quantity(name, own))
	}
	return text
}

// Pool is nodes that differ in their names alone.
type Pool struct {
	Like  *v1.Node // the first by name of those with the most pods of DaemonSets and static ones, and none that leaves if another stays
	nodes []string
	// starting are the taints that no node of the pool has lost since it came.
	starting []v1.Taint
	table    *table.Table
	set      *manifest.Set
}

// NewNode is a node that is to come, and the pods that are there before any other: those
// of DaemonSets and static ones.
type NewNode struct {
	API     *v1.Node
	node    *object.Node
	pods    []*object.Pod
	drivers *object.CSINode // those of the pool's node, which also migrate volumes; nil: none
}

// PoolOf returns the pool of the node; nil where there is no such node.
func PoolOf(t *table.Table, set *manifest.Set, node string) *Pool {
	for _, p := range allPools(t, set) {
		if slices.Contains(p.nodes, node) {
			return p
		}
	}
	return nil
}

// pools returns the pools that are tried, those of the smallest nodes first.
func pools(t *table.Table, set *manifest.Set) []*Pool {
	all := allPools(t, set)
	slices.SortStableFunc(all, func(a, b *Pool) int {
		x, y := a.Like.Status.Allocatable, b.Like.Status.Allocatable
		return cmp.Or(x.Cpu().Cmp(*y.Cpu()), x.Memory().Cmp(*y.Memory()), cmp.Compare(len(x), len(y)))
	})
	return all[:min(mostShapes, len(all))]
}

// allPools returns the pools by the names of their first nodes.
func allPools(t *table.Table, set *manifest.Set) (all []*Pool) {
	byShape := map[string]*Pool{}
	nodes := slices.Clone(set.Nodes)
	slices.SortFunc(nodes, func(a, b *v1.Node) int { return cmp.Compare(a.Name, b.Name) })
	most := map[*Pool]int{}
	for _, n := range nodes {
		key := workload.PoolKey(n)
		p := byShape[key]
		if p == nil {
			p = &Pool{Like: n, table: t, set: set, starting: n.Spec.Taints}
			byShape[key] = p
			all = append(all, p)
		}
		p.nodes = append(p.nodes, n.Name)
		p.starting = slices.DeleteFunc(slices.Clone(p.starting), func(t v1.Taint) bool {
			return !workload.Starting(t.Key) || !slices.ContainsFunc(n.Spec.Taints, func(o v1.Taint) bool { return o.MatchTaint(&t) })
		})
		here, leaves := len(p.podsOn(n.Name)), workload.Leaves(n)
		if likeLeaves := workload.Leaves(p.Like); leaves == likeLeaves && here > most[p] || likeLeaves && !leaves {
			p.Like, most[p] = n, here
		}
	}
	return all
}

// NewNode returns one more node of the pool.
func (p *Pool) NewNode(name string) *NewNode {
	like := workload.NewNode(p.Like, name)
	for i := range p.starting {
		if t := &p.starting[i]; !slices.ContainsFunc(like.Spec.Taints, func(o v1.Taint) bool { return o.MatchTaint(t) }) {
			like.Spec.Taints = append(like.Spec.Taints, *t)
		}
	}
	n := &NewNode{API: &v1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: like.Labels},
		Spec:       v1.NodeSpec{Taints: like.Spec.Taints},
		Status:     v1.NodeStatus{Capacity: like.Status.Capacity, Allocatable: like.Status.Allocatable, DeclaredFeatures: like.Status.DeclaredFeatures},
	}}
	n.decode()
	n.pods = append(p.staticPods(name), p.daemons(n.API)...)
	if of := table.Lookup[*object.CSINode](p.table, object.CSINodes, "", p.Like.Name); of != nil {
		n.drivers = of.ForNode(name)
	}
	return n
}

// decode gives the node to the scheduler as its API object has it.
func (n *NewNode) decode() {
	api := n.API.DeepCopy()
	api.UID = types.UID("node " + api.Name)
	decode.DefaultNode(api)
	n.node = decode.Node(api)
}

// Join adds the node and its pods to the table.
func (n *NewNode) Join(t *table.Table) {
	t.SetNode(n.node)
	if n.drivers != nil {
		t.Objects().Set(n.drivers)
	}
	for _, p := range n.pods {
		t.AddPod(p, n.node.Name)
	}
}

// Leave undoes Join.
func (n *NewNode) Leave(t *table.Table) {
	for _, p := range n.pods {
		t.RemovePod(p.UID)
	}
	if n.drivers != nil {
		t.Objects().Remove(object.CSINodes, "", n.node.Name)
	}
	t.RemoveNode(n.node.Name)
}

// staticPods returns the static pods that all nodes of the pool have.
func (p *Pool) staticPods(node string) (pods []*object.Pod) {
	var common map[string]*object.Pod // by namespace and name without the node's
	for _, name := range p.nodes {
		here := map[string]*object.Pod{}
		for _, pod := range p.podsOn(name) {
			base := pod.Namespace + "/" + workload.StaticName(pod.Name, name)
			if !strings.HasSuffix(base, "/") && (common == nil || common[base] != nil) {
				here[base] = pod
			}
		}
		common = here
	}
	for _, base := range slices.Sorted(maps.Keys(common)) {
		pods = append(pods, onNode(common[base], node))
	}
	return pods
}

// daemons returns the pods that DaemonSets have on the node: those of the set, and others
// that have a pod on the node that it is like.
func (p *Pool) daemons(n *v1.Node) (pods []*object.Pod) {
	known := map[types.UID]bool{}
	for _, o := range slices.Concat(p.set.Workloads, p.set.Running) {
		if _, is := o.(*appsv1.DaemonSet); !is {
			continue
		}
		w, _ := workload.Of(o)
		for _, api := range p.set.Pods {
			known[api.UID] = known[api.UID] || w.Owns(api)
		}
		made, err := w.Pods(nil, []*v1.Node{n}, func(string) bool { return false })
		for _, api := range made {
			if err == nil && p.set.AdmitPod(api) == nil {
				pods = append(pods, onNode(p.set.DecodePod(api), n.Name))
			}
		}
	}
	for _, pod := range p.podsOn(p.Like.Name) {
		if !known[pod.UID] && workload.StaticName(pod.Name, p.Like.Name) == "" {
			pods = append(pods, onNode(pod, n.Name))
		}
	}
	return pods
}

// podsOn returns the pods of DaemonSets and the static ones of a node, by name.
func (p *Pool) podsOn(node string) (pods []*object.Pod) {
	row, ok := p.table.Find(node)
	if !ok {
		return nil
	}
	for _, pl := range p.table.Pods(row) {
		if pl.Pod.Controller.Replacement == object.SameNode {
			pods = append(pods, pl.Pod)
		}
	}
	slices.SortFunc(pods, func(a, b *object.Pod) int { return cmp.Compare(a.Key(), b.Key()) })
	return pods
}

// onNode returns the pod as another node has it. Its volumes and devices, and a resize that
// is under way, are its own node's.
func onNode(p *object.Pod, node string) *object.Pod {
	c := *p
	c.Name, c.NodeName, c.UID = p.Name+"-on-"+node, node, p.UID+types.UID(" on "+node)
	c.Demand.Usage = c.Demand.Requests
	c.Terminating, c.Volumes, c.Claims, c.Claiming = false, nil, nil, nil
	return &c
}
