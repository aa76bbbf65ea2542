package extender

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// Hosted are the extenders as plugins see them that are written for kube-scheduler.
func (x Extenders) Hosted() []fwk.Extender {
	list := make([]fwk.Extender, len(x))
	for i, s := range x {
		list[i] = hosted{s}
	}
	return list
}

// hosted asks an extender on behalf of a plugin. Answers are checked as if Berth had
// asked. What the plugin asks does not depend on the lease.
type hosted struct{ service *service }

func (h hosted) Name() string                  { return h.service.Name }
func (h hosted) IsFilter() bool                { return h.service.Extender.Filter }
func (h hosted) IsPrioritizer() bool           { return h.service.Extender.Prioritize }
func (h hosted) IsBinder() bool                { return h.service.Extender.Bind }
func (h hosted) SupportsPreemption() bool      { return h.service.Extender.Preempt }
func (h hosted) IsIgnorable() bool             { return h.service.Ignorable }
func (h hosted) IsInterested(pod *v1.Pod) bool { return h.service.Interested(pod) }

// about is a question about the pod.
func about(verb machine.Verb, pod *v1.Pod) machine.CallExtender {
	return machine.CallExtender{Verb: verb, Pod: podOf(pod)}
}

func podOf(p *v1.Pod) *object.Pod {
	return &object.Pod{UID: p.UID, Namespace: p.Namespace, Name: p.Name, API: p}
}

func nodesFor(nodes []fwk.NodeInfo) []*object.Node {
	list := make([]*object.Node, len(nodes))
	for i, n := range nodes {
		list[i] = &object.Node{Name: n.Node().Name, API: n.Node()}
	}
	return list
}

// Filter asks which of the nodes the pod may go to.
func (h hosted) Filter(pod *v1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodeInfo, extenderv1.FailedNodesMap, extenderv1.FailedNodesMap, error) {
	if !h.IsFilter() {
		return nodes, extenderv1.FailedNodesMap{}, extenderv1.FailedNodesMap{}, nil
	}
	e := about(machine.Filter, pod)
	e.Nodes = nodesFor(nodes)
	var answer machine.ExtenderReply
	if err := h.service.filter(context.Background(), e, &answer); err != nil {
		return nil, nil, nil, err
	}
	named := map[string]fwk.NodeInfo{}
	for _, n := range nodes {
		named[n.Node().Name] = n
	}
	passed := make([]fwk.NodeInfo, len(answer.Passed))
	for i, name := range answer.Passed {
		passed[i] = named[name]
	}
	return passed, answer.Failed, answer.Unresolvable, nil
}

// Prioritize asks for scores of the nodes, and says what they weigh.
func (h hosted) Prioritize(pod *v1.Pod, nodes []fwk.NodeInfo) (*extenderv1.HostPriorityList, int64, error) {
	list := make(extenderv1.HostPriorityList, len(nodes))
	for i, n := range nodes {
		list[i].Host = n.Node().Name
	}
	if !h.IsPrioritizer() {
		return &list, 0, nil
	}
	e := about(machine.Prioritize, pod)
	e.Nodes = nodesFor(nodes)
	scores, err := h.service.prioritize(context.Background(), e)
	if err != nil {
		return nil, 0, err
	}
	for i := range list {
		list[i].Score = scores[list[i].Host]
	}
	return &list, h.service.Weight, nil
}

// Bind has the extender bind the pod.
func (h hosted) Bind(binding *v1.Binding) error {
	if !h.IsBinder() {
		return fmt.Errorf("extender %q has no bindVerb", h.Name())
	}
	pod := &object.Pod{UID: binding.UID, Namespace: binding.Namespace, Name: binding.Name}
	_, err := Extenders{h.service}.Bind(context.Background(), machine.BindByExtender{Pod: pod, Node: binding.Target.Name}, func() bool { return true })
	return err
}

// ProcessPreemption asks which of the nodes, and of the victims on them, are left.
func (h hosted) ProcessPreemption(pod *v1.Pod, victims map[string]*extenderv1.Victims, nodes fwk.NodeInfoLister) (map[string]*extenderv1.Victims, error) {
	if !h.SupportsPreemption() {
		return nil, fmt.Errorf("extender %q has no preemptVerb", h.Name())
	}
	e := about(machine.Preempt, pod)
	for node, v := range victims { // any order: the question is a map by node
		c := framework.Candidate{Node: node, NumPDBViolations: int(v.NumPDBViolations)}
		for _, p := range v.Pods {
			c.Victims = append(c.Victims, podOf(p))
		}
		e.Candidates = append(e.Candidates, c)
	}
	left, err := h.service.preempt(context.Background(), e)
	if err != nil {
		return nil, err
	}
	out := map[string]*extenderv1.Victims{}
	for _, l := range left {
		info, err := nodes.Get(l.Node)
		if err != nil {
			return nil, err
		}
		v := &extenderv1.Victims{NumPDBViolations: int64(l.Violations)}
		for _, uid := range l.Victims {
			p := podOn(info, string(uid))
			if p == nil {
				return nil, fmt.Errorf("extender %q: preempt: no pod with UID %q is on node %q", h.Name(), uid, l.Node)
			}
			v.Pods = append(v.Pods, p)
		}
		out[l.Node] = v
	}
	return out, nil
}

func podOn(n fwk.NodeInfo, uid string) *v1.Pod {
	for _, p := range n.GetPods() {
		if string(p.GetPod().UID) == uid {
			return p.GetPod()
		}
	}
	return nil
}
