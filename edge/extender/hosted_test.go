package extender

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// info is a node as plugins know it, and the list of the nodes.
type info struct {
	fwk.NodeInfo
	node *v1.Node
	pods []fwk.PodInfo
}

func (n *info) Node() *v1.Node         { return n.node }
func (n *info) GetPods() []fwk.PodInfo { return n.pods }

type infos map[string]fwk.NodeInfo

func (l infos) List() ([]fwk.NodeInfo, error)                                 { return nil, nil }
func (l infos) HavePodsWithAffinityList() ([]fwk.NodeInfo, error)             { return nil, nil }
func (l infos) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) { return nil, nil }
func (l infos) HavePodsWithRequiredNonHostScopedAntiAffinityList() ([]fwk.NodeInfo, error) {
	return nil, nil
}
func (l infos) Get(name string) (fwk.NodeInfo, error) {
	if n := l[name]; n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("no node %q", name)
}

type placed struct {
	fwk.PodInfo
	pod *v1.Pod
}

func (p placed) GetPod() *v1.Pod { return p.pod }

func nodeInfo(name string, pods ...*v1.Pod) *info {
	n := &info{node: &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	for _, p := range pods {
		n.pods = append(n.pods, placed{pod: p})
	}
	return n
}

// A plugin asks an extender with kube-scheduler's interface, and the answer comes back in
// the terms of that: the nodes and pods that the plugin named.
func TestHosted(t *testing.T) {
	replies := map[string]string{
		"/filter":     `{"nodenames": ["b"], "failedNodes": {"a": "full"}, "failedAndUnresolvableNodes": {"c": "broken"}}`,
		"/prioritize": `[{"host": "b", "score": 7}]`,
		"/preempt":    `{"nodeNameToMetaVictims": {"a": {"pods": [{"uid": "y"}], "numPDBViolations": 1}}}`,
		"/bind":       `{"error": "no"}`,
	}
	x, _ := served(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, replies[r.URL.Path]) }, func(c *configv1.Extender) {
		c.Weight, c.Ignorable = 3, true
		c.ManagedResources = []configv1.ExtenderManagedResource{{Name: "example.com/x"}}
	})
	h, p := x.Hosted()[0], pod("p").API
	if !h.IsFilter() || !h.IsPrioritizer() || !h.IsBinder() || !h.SupportsPreemption() || !h.IsIgnorable() || h.IsInterested(p) || h.Name() == "" {
		t.Errorf("%+v does not say what it is", h)
	}
	nodes := []fwk.NodeInfo{nodeInfo("a", pod("x").API, pod("y").API), nodeInfo("b"), nodeInfo("c")}
	passed, failed, unresolvable, err := h.Filter(p, nodes)
	if err != nil || len(passed) != 1 || passed[0] != nodes[1] || failed["a"] != "full" || unresolvable["c"] != "broken" {
		t.Errorf("filter: %v %v %v %v", passed, failed, unresolvable, err)
	}
	list, weight, err := h.Prioritize(p, nodes)
	if err != nil || weight != 3 || fmt.Sprint(*list) != "[{a 0} {b 7} {c 0}]" {
		t.Errorf("prioritize: %v %d %v", list, weight, err)
	}
	victims := map[string]*extenderv1.Victims{"a": {Pods: []*v1.Pod{pod("x").API, pod("y").API}, NumPDBViolations: 1}}
	left, err := h.ProcessPreemption(p, victims, infos{"a": nodes[0]})
	if err != nil || len(left) != 1 || len(left["a"].Pods) != 1 || left["a"].Pods[0].Name != "y" || left["a"].NumPDBViolations != 1 {
		t.Errorf("preempt: %v %v", left, err)
	}
	if _, err := h.ProcessPreemption(p, victims, infos{"a": nodeInfo("a")}); err == nil || !strings.Contains(err.Error(), `"y"`) {
		t.Errorf("preempt, the victim is gone: %v", err)
	}
	if _, err := h.ProcessPreemption(p, victims, infos{}); err == nil {
		t.Error("preempt, the node is gone: no error")
	}
	if err := h.Bind(&v1.Binding{ObjectMeta: p.ObjectMeta, Target: v1.ObjectReference{Name: "a"}}); err == nil || err.Error() != "no" {
		t.Errorf("bind: %v", err)
	}
}

// An extender without a verb is not asked for it.
func TestHostedWithoutVerbs(t *testing.T) {
	x, err := New([]configv1.Extender{{URLPrefix: "http://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	h, p, nodes := x.Hosted()[0], pod("p").API, []fwk.NodeInfo{nodeInfo("a")}
	if passed, _, _, err := h.Filter(p, nodes); err != nil || len(passed) != 1 {
		t.Errorf("filter: %v %v", passed, err)
	}
	if list, weight, err := h.Prioritize(p, nodes); err != nil || weight != 0 || fmt.Sprint(*list) != "[{a 0}]" {
		t.Errorf("prioritize: %v %d %v", list, weight, err)
	}
	if _, err := h.ProcessPreemption(p, nil, infos{}); err == nil {
		t.Error("preempt: no error")
	}
	if err := h.Bind(&v1.Binding{}); err == nil {
		t.Error("bind: no error")
	}
}

// An answer about a node that was not asked about is an error, as where Berth asks.
func TestHostedChecksAnswers(t *testing.T) {
	x, _ := served(t, says(`{"nodenames": ["other"]}`), nil)
	if _, _, _, err := x.Hosted()[0].Filter(pod("p").API, []fwk.NodeInfo{nodeInfo("a")}); err == nil {
		t.Error("no error")
	}
}
