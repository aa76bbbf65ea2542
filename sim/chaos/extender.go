package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/sim/apiserver"
)

// The extender that a story may have says that pods which request licences may be on
// nodes with the label licences=yes.
const (
	extenderHost = "extender"
	licence      = "sim.example.com/licence"
	licenceLabel = "licences"
	licenceValue = "yes"
	extenderYAML = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true}
extenders:
- urlPrefix: http://extender
  filterVerb: filter
  prioritizeVerb: prioritize
  preemptVerb: preempt
  weight: 1
  httpTimeout: 2s
  nodeCacheCapable: true
  managedResources: [{name: sim.example.com/licence, ignoredByScheduler: true}]
`
	extenderBinds = "  bindVerb: bind\n"
)

// extend has all replicas ask the extender: binds, it also binds.
func (p *play) extend(words []string) error {
	text := extenderYAML
	switch {
	case len(words) == 1 && words[0] == "binds":
		text += extenderBinds
	case len(words) > 0:
		return errors.New("want nothing, or binds")
	}
	if len(p.replicas) > 0 {
		return errors.New("it must stand before the replicas")
	}
	c, err := config.Decode([]byte(text), "extender")
	if err == nil {
		p.config = c
	}
	return err
}

// managed tells whether the extender has a say about the pod.
func managed(p *v1.Pod) bool {
	_, wants := p.Spec.Containers[0].Resources.Requests[licence]
	return wants
}

// allowed tells whether the extender lets the pod pass on the node.
func allowed(p *v1.Pod, n *v1.Node) bool {
	return !managed(p) || n.Labels[licenceLabel] == licenceValue
}

// licenceExtender is the extender, as one replica asks it.
type licenceExtender struct {
	*network
	lies uint64 // 0: it says the truth; else how it lies
}

// ServeHTTP answers a question of a scheduler.
func (x licenceExtender) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var question struct {
		extenderv1.ExtenderArgs
		extenderv1.ExtenderPreemptionArgs
		extenderv1.ExtenderBindingArgs
		Pod       *v1.Pod
		NodeNames []string
	}
	if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var reply any
	switch verb := r.URL.Path; {
	case verb == "/bind":
		reply = x.bind(r, question.ExtenderBindingArgs)
	case x.lies > 0 && verb == "/prioritize":
		reply = x.wrongScores(question.NodeNames)
	case x.lies > 0 && verb == "/filter":
		reply = x.wrongNodes(question.Pod, question.NodeNames)
	case x.lies > 0:
		reply = x.wrongVictims(question.NodeNameToMetaVictims)
	case verb == "/filter":
		passed := x.allowing(question.Pod, question.NodeNames)
		x.check.passes(x.process.name, question.Pod.UID, passed)
		failed := extenderv1.FailedNodesMap{}
		for _, name := range question.NodeNames {
			if !slices.Contains(passed, name) {
				failed[name] = "no licence"
			}
		}
		reply = extenderv1.ExtenderFilterResult{NodeNames: &passed, FailedNodes: failed}
	case verb == "/prioritize":
		scores := extenderv1.HostPriorityList{}
		for i, name := range question.NodeNames {
			scores = append(scores, extenderv1.HostPriority{Host: name, Score: int64(i) % extenderv1.MaxExtenderPriority})
		}
		reply = scores
	default:
		for name := range question.NodeNameToMetaVictims { // any order: each for itself
			if len(x.allowing(question.Pod, []string{name})) == 0 {
				delete(question.NodeNameToMetaVictims, name)
			}
		}
		reply = extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: question.NodeNameToMetaVictims}
	}
	_ = json.NewEncoder(w).Encode(reply)
}

// allowing is the nodes on which the pod may be.
func (x licenceExtender) allowing(p *v1.Pod, names []string) []string {
	passed := []string{}
	for _, name := range names {
		if n, ok := x.server.Get("nodes", "", name).(*v1.Node); ok && allowed(p, n) {
			passed = append(passed, name)
		}
	}
	return passed
}

// bind binds a pod for the scheduler that asks.
func (x licenceExtender) bind(r *http.Request, a extenderv1.ExtenderBindingArgs) extenderv1.ExtenderBindingResult {
	body, err := json.Marshal(&v1.Binding{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: a.PodNamespace, Name: a.PodName, UID: a.PodUID}, Target: v1.ObjectReference{Kind: "Node", Name: a.Node}})
	if err != nil {
		return extenderv1.ExtenderBindingResult{Error: err.Error()}
	}
	path := "http://api/api/v1/namespaces/" + a.PodNamespace + "/pods/" + a.PodName + "/binding"
	to, err := http.NewRequestWithContext(apiserver.As(r.Context(), x.process.name), http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return extenderv1.ExtenderBindingResult{Error: err.Error()}
	}
	to.Header.Set("Content-Type", "application/json")
	reply := apiserver.Do(x.server, to)
	defer func() { _ = reply.Body.Close() }()
	if reply.StatusCode != http.StatusCreated {
		return extenderv1.ExtenderBindingResult{Error: fmt.Sprint("the API server answers ", reply.StatusCode)}
	}
	return extenderv1.ExtenderBindingResult{}
}

// wrongNodes is a lie about nodes. One that can be believed lets all pass, or none.
func (x licenceExtender) wrongNodes(p *v1.Pod, names []string) any {
	none, strange := []string{}, append(slices.Clone(names), "atlantis")
	switch x.lies % 7 {
	case 0:
		return nil
	case 1:
		return struct{}{}
	case 2:
		return extenderv1.ExtenderFilterResult{NodeNames: &strange}
	case 3:
		return extenderv1.ExtenderFilterResult{NodeNames: &names, FailedNodes: extenderv1.FailedNodesMap{"atlantis": "it sank"}}
	case 4:
		return extenderv1.ExtenderFilterResult{NodeNames: &none}
	case 5:
		x.check.passes(x.process.name, p.UID, names)
		return extenderv1.ExtenderFilterResult{NodeNames: &names}
	}
	return extenderv1.ExtenderFilterResult{Error: "no idea"}
}

func (x licenceExtender) wrongScores(names []string) any {
	switch x.lies % 4 {
	case 0:
		return nil
	case 1:
		return extenderv1.HostPriorityList{{Host: "atlantis", Score: 1}}
	case 2:
		return extenderv1.HostPriorityList{{Host: names[0], Score: math.MaxInt64}, {Host: names[0], Score: math.MaxInt64}}
	}
	return extenderv1.HostPriorityList{{Host: names[0], Score: -5}}
}

func (x licenceExtender) wrongVictims(victims map[string]*extenderv1.MetaVictims) any {
	lie := map[string]*extenderv1.MetaVictims{}
	for name := range victims { // any order: a map
		switch x.lies % 4 {
		case 0:
			lie[name] = nil
		case 1:
			lie["atlantis"] = victims[name]
		case 2:
			lie[name] = &extenderv1.MetaVictims{Pods: []*extenderv1.MetaPod{{UID: "nobody"}, nil}}
		default:
			lie[name] = &extenderv1.MetaVictims{}
		}
	}
	return extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: lie}
}

// passes notes what the extender answered a process about a pod.
func (c *check) passes(process string, pod types.UID, nodes []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := process + " " + string(pod)
	c.passed[of] = append(c.passed[of], nodes...)
}

// boundAsAllowed looks that a pod which the extender manages is bound to a node that
// the extender let pass.
func (c *check) boundAsAllowed(p *v1.Pod, by string) {
	if c.play.config != defaultConfig() && managed(p) && !slices.Contains(c.passed[by+" "+string(p.UID)], p.Spec.NodeName) {
		c.note("%s binds pod %s to node %s, which the extender did not let pass", by, p.Name, p.Spec.NodeName)
	}
}
