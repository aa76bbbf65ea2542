package conform

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/berth-scheduler/berth/sim/generate"
)

// reachable puts the address of a service that answers both sides in place of
// the extenders' in a configuration.
func reachable(configuration string) string {
	if !strings.Contains(configuration, generate.ExtenderAddress) {
		return configuration
	}
	return strings.ReplaceAll(configuration, generate.ExtenderAddress, extenders().URL+"/")
}

// extenders is all extenders of all worlds, one process long. What one of them
// says depends on its address, the pod and the node alone.
var extenders = sync.OnceValue(func() *httptest.Server { return httptest.NewServer(http.HandlerFunc(serve)) })

// draw is a number below n that the words decide.
func draw(n uint64, words ...string) uint64 {
	h := fnv.New64a()
	for _, w := range words {
		_, _ = h.Write([]byte(w + "\x00"))
	}
	return h.Sum64() >> 11 % n
}

func serve(w http.ResponseWriter, r *http.Request) {
	at := strings.LastIndexByte(r.URL.Path, '/')
	who, verb := r.URL.Path[:at], r.URL.Path[at+1:]
	var reply any
	var pod string
	switch verb {
	case "preempt":
		var args extenderv1.ExtenderPreemptionArgs
		_ = json.NewDecoder(r.Body).Decode(&args)
		pod, reply = args.Pod.Name, reviewCandidates(who, &args)
	default:
		var args extenderv1.ExtenderArgs
		_ = json.NewDecoder(r.Body).Decode(&args)
		if pod = args.Pod.Name; verb == "filter" {
			reply = filterNodes(who, &args)
		} else {
			reply = scoreNodes(who, &args)
		}
	}
	if draw(16, who, verb, pod, "fails") == 0 {
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(reply)
}

// filterNodes lets most nodes pass, and says of most others why not.
func filterNodes(who string, args *extenderv1.ExtenderArgs) *extenderv1.ExtenderFilterResult {
	reply := &extenderv1.ExtenderFilterResult{FailedNodes: extenderv1.FailedNodesMap{}, FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{}}
	if draw(16, who, args.Pod.Name, "errs") == 0 {
		reply.Error = "no word about pod " + args.Pod.Name
		return reply
	}
	strict := draw(4, who, args.Pod.Name, "strict") == 0
	passed := []string{}
	for _, name := range askedAbout(args) {
		switch n := draw(12, who, args.Pod.Name, name); {
		case n < 6 && !strict:
			passed = append(passed, name)
		case n < 9:
			reply.FailedNodes[name] = fmt.Sprintf("no seat in row %d", n%2)
		case n == 9:
			reply.FailedAndUnresolvableNodes[name] = "no seats at all"
		case n == 10:
			reply.FailedNodes[name], reply.FailedAndUnresolvableNodes[name] = "perhaps", "never"
		}
	}
	if args.NodeNames != nil {
		reply.NodeNames = &passed
		return reply
	}
	reply.Nodes = args.Nodes.DeepCopy()
	reply.Nodes.Items = nil
	for _, name := range passed {
		for _, n := range args.Nodes.Items {
			if n.Name == name {
				reply.Nodes.Items = append(reply.Nodes.Items, n)
			}
		}
	}
	return reply
}

func askedAbout(args *extenderv1.ExtenderArgs) []string {
	if args.NodeNames != nil {
		return *args.NodeNames
	}
	var names []string
	for i := range args.Nodes.Items {
		names = append(names, args.Nodes.Items[i].Name)
	}
	return names
}

// scoreNodes leaves out some.
func scoreNodes(who string, args *extenderv1.ExtenderArgs) extenderv1.HostPriorityList {
	list := extenderv1.HostPriorityList{}
	for _, name := range askedAbout(args) {
		if n := draw(13, who, name, "score"); n <= 10 {
			list = append(list, extenderv1.HostPriority{Host: name, Score: int64(n)})
		}
	}
	return list
}

// reviewCandidates leaves most of them, with the victims as they are.
func reviewCandidates(who string, args *extenderv1.ExtenderPreemptionArgs) *extenderv1.ExtenderPreemptionResult {
	reply := &extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{}}
	keep := func(node string) bool { return draw(4, who, args.Pod.Name, node, "preempt") > 0 }
	for node, v := range args.NodeNameToMetaVictims {
		if keep(node) {
			reply.NodeNameToMetaVictims[node] = v
		}
	}
	for node, v := range args.NodeNameToVictims {
		if !keep(node) {
			continue
		}
		meta := &extenderv1.MetaVictims{NumPDBViolations: v.NumPDBViolations}
		for _, p := range v.Pods {
			meta.Pods = append(meta.Pods, &extenderv1.MetaPod{UID: string(p.UID)})
		}
		reply.NodeNameToMetaVictims[node] = meta
	}
	return reply
}
