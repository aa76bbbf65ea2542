package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// An extender hands out seats: on nodes 1 and 2, node 2 first, and binds the
// pods itself. Another is broken in the way that the pod's name says. Its pods
// stay pending and say why; all others are placed as if it was not there.
func TestExtenders(t *testing.T) {
	f := newField(t, "extenders")
	f.sameNodes(3, "8", 110)
	good, broken := f.seats(), brokenExtender(t)
	f.berth(cluster.SchedulerOptions{Config: fmt.Appendf(nil, `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- {urlPrefix: %q, filterVerb: filter, prioritizeVerb: prioritize, weight: 10, bindVerb: bind, nodeCacheCapable: true, managedResources: [{name: example.com/seat, ignoredByScheduler: true}]}
- {urlPrefix: %q, filterVerb: filter, httpTimeout: 2s, managedResources: [{name: example.com/broken, ignoredByScheduler: true}]}
`, good, broken)})

	wants := map[string]string{
		"null": "the reply is null", "truncated": "unexpected end of JSON input", "huge": "the reply is larger than",
		"late": "Client.Timeout exceeded", "stranger": `claims a filtered node "elsewhere"`,
	}
	for name := range wants {
		f.create(f.asking(name, "example.com/broken"))
	}
	for i := range 4 {
		f.create(f.pod(fmt.Sprintf("plain-%d", i), "1"), f.asking(fmt.Sprintf("seated-%d", i), "example.com/seat"))
	}
	f.await("the pods of no broken extender to be bound", func() string { return missing(bound(f.seen("")), 8) })
	for i := range 4 {
		if pod := f.get(fmt.Sprintf("seated-%d", i)); pod.Spec.NodeName != f.nodeName(2) || pod.Annotations["bound-by"] != "the extender" {
			t.Errorf("pod %s is on node %s, want %s; annotations %v", pod.Name, pod.Spec.NodeName, f.nodeName(2), pod.Annotations)
		}
	}
	f.awaitScheduledOnce()
	for name, want := range wants {
		f.await("pod "+name+" to say what is wrong with its extender", func() string {
			c := condition(f.get(name), corev1.PodScheduled)
			if c == nil || c.Reason != corev1.PodReasonSchedulerError || !strings.Contains(c.Message, want) || !strings.Contains(c.Message, broken) {
				return fmt.Sprintf("the condition is %v, want %q of %s", c, want, broken)
			}
			return ""
		})
	}
}

// asking is a pod that wants one of a resource.
func (f *field) asking(name, what string) *corev1.Pod {
	pod := f.pod(name, "1")
	r := &pod.Spec.Containers[0].Resources
	r.Limits = corev1.ResourceList{corev1.ResourceName(what): resource.MustParse("1")}
	r.Requests[corev1.ResourceName(what)] = resource.MustParse("1")
	return pod
}

// seats is the address of an extender that works.
func (f *field) seats() string {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /filter", func(w http.ResponseWriter, r *http.Request) {
		var args extenderv1.ExtenderArgs
		_ = json.NewDecoder(r.Body).Decode(&args)
		reply := extenderv1.ExtenderFilterResult{NodeNames: &[]string{}, FailedNodes: extenderv1.FailedNodesMap{}}
		for _, name := range *args.NodeNames {
			if name == f.nodeName(0) {
				reply.FailedNodes[name] = "no seats"
				continue
			}
			*reply.NodeNames = append(*reply.NodeNames, name)
		}
		_ = json.NewEncoder(w).Encode(reply)
	})
	mux.HandleFunc("POST /prioritize", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(extenderv1.HostPriorityList{{Host: f.nodeName(1), Score: 1}, {Host: f.nodeName(2), Score: 10}})
	})
	mux.HandleFunc("POST /bind", func(w http.ResponseWriter, r *http.Request) {
		var args extenderv1.ExtenderBindingArgs
		_ = json.NewDecoder(r.Body).Decode(&args)
		var reply extenderv1.ExtenderBindingResult
		err := f.client.CoreV1().Pods(args.PodNamespace).Bind(r.Context(), &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: args.PodName, UID: args.PodUID, Annotations: map[string]string{"bound-by": "the extender"}},
			Target:     corev1.ObjectReference{Kind: "Node", Name: args.Node},
		}, metav1.CreateOptions{})
		if err != nil {
			reply.Error = err.Error()
		}
		_ = json.NewEncoder(w).Encode(reply)
	})
	server := httptest.NewServer(mux)
	f.Cleanup(server.Close)
	return server.URL
}

// brokenExtender is the address of one that never gives a usable answer.
func brokenExtender(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var args extenderv1.ExtenderArgs
		_ = json.NewDecoder(r.Body).Decode(&args)
		switch args.Pod.Name {
		case "null":
			_, _ = w.Write([]byte("null"))
		case "truncated":
			_, _ = w.Write([]byte(`{"nodes": {"items": [{"metadata":`))
		case "huge":
			for junk := make([]byte, 1<<20); r.Context().Err() == nil; {
				if _, err := w.Write(junk); err != nil {
					return
				}
			}
		case "late":
			<-r.Context().Done()
		case "stranger":
			_, _ = w.Write([]byte(`{"nodes": {"items": [{"metadata": {"name": "elsewhere"}}]}}`))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}
