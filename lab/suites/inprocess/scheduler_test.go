package inprocess

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	kubeconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/testing/defaults"

	"github.com/berth-scheduler/berth/sim/apiserver"
)

// cluster is the way to an API server in memory.
type cluster struct{ *apiserver.Server }

func (c cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	return apiserver.Do(c, r), nil
}

func (c cluster) create(t *testing.T, o apiserver.Object) {
	t.Helper()
	if err := c.Create(o); err != nil {
		t.Fatal(err)
	}
}

// node is where a pod is bound.
func (c cluster) node(pod string) string {
	return c.Get("pods", "default", pod).(*v1.Pod).Spec.NodeName
}

// A scheduler knows the cluster when it is made, and decides once the test runs it.
func TestDecidesWhenRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{apiserver.New()}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		s, err := New(ctx, Options{API: &rest.Config{Host: "http://api", Transport: c, QPS: -1}, Parallelism: 1, MaxUnschedulable: time.Minute,
			Profiles: []kubeconfig.KubeSchedulerProfile{{SchedulerName: v1.DefaultSchedulerName, Plugins: defaults.PluginsV1, PluginConfig: defaults.PluginConfigsV1}}})
		if err != nil {
			t.Fatal(err)
		}
		room := v1.ResourceList{v1.ResourcePods: resource.MustParse("10")}
		c.create(t, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: v1.NodeStatus{Capacity: room, Allocatable: room}})
		c.create(t, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: v1.PodSpec{SchedulerName: v1.DefaultSchedulerName, Containers: []v1.Container{{Name: "c"}}}})
		time.Sleep(5 * time.Second)
		if node := c.node("p"); node != "" {
			t.Errorf("bound to %s before it runs", node)
		}
		go s.Run(ctx)
		time.Sleep(5 * time.Second)
		if node := c.node("p"); node != "n" {
			t.Errorf("not bound: %q", node)
		}
		stop()
		<-s.ended
	})
}
