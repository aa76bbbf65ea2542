package generate

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The extended resources that worlds use. ignored.example is the group that
// configurations tell NodeResourcesFit to leave alone.
const (
	gpu     = "example.com/gpu"
	fpga    = "example.com/fpga"
	ignored = "ignored.example/license"
	huge    = v1.ResourceName("hugepages-2Mi")
)

// shape is what one container of a world asks for; few shapes make many ties.
type shape struct{ cpu, memory string }

// easyResources gives nodes ample room and pods plain requests: enough for
// scores to differ and for a node to fill up now and then.
var easyResources = feature{
	node: func(b *builder, n *v1.Node) {
		setAllocatable(n, list("cpu", b.word("4", "8"), "memory", "16Gi", "pods", "110"))
	},
	pod: func(b *builder, p *v1.Pod) {
		for i := range p.Spec.Containers {
			s := b.shapes[b.IntN(len(b.shapes))]
			p.Spec.Containers[i].Resources.Requests = list("cpu", s.cpu, "memory", s.memory)
		}
	},
}

// crowded gives nodes little room and pods plain requests, so that who comes
// has to push somebody out.
var crowded = feature{
	node: func(b *builder, n *v1.Node) {
		setAllocatable(n, list("cpu", b.word("1", "2", "3"), "memory", b.word("2Gi", "4Gi"), "pods", b.word("110", "110", "5")))
	},
	pod:   easyResources.pod,
	repod: shrinkPod,
}

// hardResources is everything that a request and a node's room can look like.
var hardResources = feature{node: hardNode, pod: hardPod, run: resize, renode: resizeNode, repod: shrinkPod}

func (b *builder) somePodShapes() []shape {
	all := []shape{{"100m", "128Mi"}, {"250m", "256Mi"}, {"500m", "1Gi"}, {"1", "512Mi"}, {"2", "4Gi"},
		{"0.1", "100M"}, {"333m", "123456789"}, {"1e0", "1.5Gi"}, {"1m", "1"}, {"7m", "1k"}, {"1500m", "3e9"}}
	var some []shape
	for range 1 + b.IntN(4) {
		some = append(some, all[b.IntN(len(all))])
	}
	return some
}

// list builds a ResourceList out of name, quantity, name, quantity, ...
func list(pairs ...string) v1.ResourceList {
	l := v1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1]) // #nosec G602 -- they come in pairs
	}
	return l
}

func setAllocatable(n *v1.Node, l v1.ResourceList) {
	n.Status.Allocatable, n.Status.Capacity = l, l.DeepCopy()
}

func hardNode(b *builder, n *v1.Node) {
	if b.uniform {
		setAllocatable(n, list("cpu", "4", "memory", "8Gi", "ephemeral-storage", "20Gi", "pods", "16", gpu, "2"))
		return
	}
	l := list("cpu", b.word("2", "4", "8", "3900m", "1e1", "7919m", "32"),
		"memory", b.word("8Gi", "4000M", "16Gi", "9876543211", "3.5Gi", "64Gi"),
		"pods", b.word("110", "110", "32", "16", "7"))
	if b.chance(60) {
		l["ephemeral-storage"] = resource.MustParse(b.word("10Gi", "50G", "0"))
	}
	for _, r := range []v1.ResourceName{gpu, fpga, ignored} {
		if b.chance(40) {
			l[r] = resource.MustParse(b.word("0", "1", "2", "4", "8", "100"))
		}
	}
	if b.chance(20) {
		l[huge] = resource.MustParse(b.word("0", "64Mi", "1Gi"))
	}
	switch b.IntN(25) {
	case 0: // a node that has not said anything yet
		l = nil
	case 1:
		delete(l, v1.ResourcePods)
	case 2:
		delete(l, v1.ResourceCPU)
	case 3:
		l[v1.ResourceMemory] = resource.MustParse("0")
	}
	setAllocatable(n, l)
}

func resizeNode(b *builder, n *v1.Node) {
	hardNode(b, n)
}

func hardPod(b *builder, p *v1.Pod) {
	for i := range p.Spec.Containers {
		hardRequests(b, &p.Spec.Containers[i])
	}
	for range b.pick(0, 0, 0, 1, 2, 3) {
		c := v1.Container{Name: fmt.Sprintf("i%d", len(p.Spec.InitContainers)), Image: "registry.k8s.io/pause:3.10"}
		if b.chance(50) {
			always := v1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		hardRequests(b, &c)
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	if b.chance(15) {
		p.Spec.Overhead = list("cpu", b.word("10m", "250m"), "memory", b.word("1Mi", "120Mi"))
	}
	if b.chance(15) {
		podLevel(b, p)
	}
}

func hardRequests(b *builder, c *v1.Container) {
	s := b.shapes[b.IntN(len(b.shapes))]
	l := v1.ResourceList{}
	if b.chance(80) {
		l[v1.ResourceCPU] = resource.MustParse(s.cpu)
	}
	if b.chance(80) {
		l[v1.ResourceMemory] = resource.MustParse(s.memory)
	}
	if b.chance(10) {
		l[v1.ResourceEphemeralStorage] = resource.MustParse(b.word("0", "1Gi", "5G", "30Gi"))
	}
	for _, r := range []v1.ResourceName{gpu, fpga, ignored} {
		if b.chance(6) {
			l[r] = resource.MustParse(b.word("0", "1", "1", "2", "5"))
		}
	}
	if b.chance(2) {
		l[huge] = resource.MustParse(b.word("2Mi", "64Mi"))
	}
	switch b.IntN(40) {
	case 0, 1:
		l[v1.ResourceCPU], l[v1.ResourceMemory] = resource.MustParse("0"), resource.MustParse("0")
	case 2, 3:
		l[v1.ResourceMemory] = resource.MustParse("100m") // a tenth of a byte is valid
	case 4:
		l[v1.ResourceCPU] = resource.MustParse("100000")
	}
	if b.chance(25) {
		c.Resources.Limits = l // the requests follow by default
		return
	}
	c.Resources.Requests = l
}

// podLevel sets spec.resources to no less than the containers ask for
// together, as the API demands. The quantities are written as the API would
// hand them out: component-helpers adds overhead in place to those that are sums.
func podLevel(b *builder, p *v1.Pod) {
	cpu, memory := resource.MustParse("0"), resource.MustParse("0")
	for _, c := range append(append([]v1.Container{}, p.Spec.Containers...), p.Spec.InitContainers...) {
		requestLimits(&c)
		cpu.Add(*c.Resources.Requests.Cpu())
		memory.Add(*c.Resources.Requests.Memory())
	}
	p.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{}}
	if b.chance(80) {
		cpu.Add(resource.MustParse(b.word("0", "100m", "1")))
		p.Spec.Resources.Requests[v1.ResourceCPU] = resource.MustParse(cpu.String())
	}
	if b.chance(80) {
		memory.Add(resource.MustParse(b.word("0", "1Mi", "1Gi")))
		p.Spec.Resources.Requests[v1.ResourceMemory] = resource.MustParse(memory.String())
	}
}

// shrinkPod lowers what a pod asks for, as an in-place resize does.
func shrinkPod(b *builder, p *v1.Pod) {
	for i := range p.Spec.Containers {
		r := p.Spec.Containers[i].Resources.Requests
		if _, ok := r[v1.ResourceCPU]; ok {
			r[v1.ResourceCPU] = resource.MustParse(b.word("1m", "10m"))
		}
		if _, ok := r[v1.ResourceMemory]; ok && b.chance(50) {
			r[v1.ResourceMemory] = resource.MustParse("1Mi")
		}
	}
}

// boundTo makes the pods that run on a node from the start: some like those
// that will come, and often one that fills the node up to a whole number of
// the smallest requests.
func (b *builder) boundTo(n *v1.Node, from int) []*v1.Pod {
	var pods []*v1.Pod
	add := func(p *v1.Pod) {
		b.stamp(p, fmt.Sprintf("b-%03d", from+len(pods)))
		b.runOn(n, p)
		pods = append(pods, p)
	}
	taken := map[int32]bool{}
	some := b.pick(0, 0, 1, 2, 3)
	if b.mix.preemptible {
		some = 2 + b.IntN(7)
	}
	for range some {
		if p := b.oneOf(b.templates).DeepCopy(); takePorts(p, taken) {
			add(p)
		}
	}
	if !b.uniform && b.chance(35) {
		if p := b.filler(n, pods); p != nil {
			add(p)
		}
	}
	return pods
}

// runOn has the pod run on the node.
func (b *builder) runOn(n *v1.Node, p *v1.Pod) {
	p.Spec.NodeName = n.Name
	p.Status.Phase, p.Status.StartTime = v1.PodRunning, &p.CreationTimestamp
	if !b.mix.preemptible {
		p.Spec.Priority = &highest
	}
	for _, f := range b.mix.features {
		if f.run != nil {
			f.run(b, p)
		}
	}
}

// takePorts notes the host ports of a pod; false if one is taken. Two pods that
// hold one port of a node have no place in a world: kube-scheduler forgets such
// a port when the first of them goes.
func takePorts(p *v1.Pod, taken map[int32]bool) bool {
	var wanted []int32
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		for _, port := range c.Ports {
			if port.HostPort != 0 && taken[port.HostPort] {
				return false
			}
			wanted = append(wanted, port.HostPort)
		}
	}
	for _, port := range wanted {
		taken[port] = true
	}
	return true
}

// resize leaves some running pods in the middle of an in-place resize: what the
// spec asks for, what the node has allocated and what is in force differ.
func resize(b *builder, p *v1.Pod) {
	if !b.chance(20) {
		return
	}
	some := func() v1.ResourceList {
		return list("cpu", b.word("10m", "100m", "700m", "2"), "memory", b.word("1Mi", "100Mi", "2Gi"))
	}
	status := func(containers []v1.Container) (statuses []v1.ContainerStatus) {
		for _, c := range containers {
			if b.chance(15) {
				continue
			}
			s := v1.ContainerStatus{Name: c.Name}
			if b.chance(85) {
				s.AllocatedResources = some()
			}
			if b.chance(80) {
				s.Resources = &v1.ResourceRequirements{Requests: some()}
			}
			statuses = append(statuses, s)
		}
		return statuses
	}
	p.Status.ContainerStatuses = status(p.Spec.Containers)
	p.Status.InitContainerStatuses = status(p.Spec.InitContainers)
	if b.chance(15) || p.Spec.Resources != nil && b.chance(50) {
		p.Status.AllocatedResources, p.Status.Resources = some(), &v1.ResourceRequirements{Requests: some()}
	}
	if b.chance(40) {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodResizePending, Status: v1.ConditionTrue,
			Reason: b.word(v1.PodReasonInfeasible, v1.PodReasonDeferred)}}
	}
}

// highest outranks every pod of a world that is not preemptible.
var highest = int32(1_000_000)

// filler asks for nearly all that the pods leave on the node.
func (b *builder) filler(n *v1.Node, pods []*v1.Pod) *v1.Pod {
	cpu := n.Status.Allocatable.Cpu().MilliValue()
	memory := n.Status.Allocatable.Memory().Value()
	for _, p := range pods {
		for _, c := range p.Spec.Containers {
			cpu -= c.Resources.Requests.Cpu().MilliValue()
			memory -= c.Resources.Requests.Memory().Value()
		}
	}
	cpu -= int64(b.pick(0, 1, 100, 250, 500, 1000, 2000))
	memory -= int64(b.pick(0, 1, 128<<20, 256<<20, 1<<30, 4<<30))
	if cpu <= 0 || memory <= 0 {
		return nil
	}
	p := &v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", UID: types.UID("filler")},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c0", Image: "registry.k8s.io/pause:3.10"}}}}
	p.Spec.Containers[0].Resources.Requests = v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(cpu, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
	}
	applyDefaults(p)
	return p
}
