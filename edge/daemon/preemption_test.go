package daemon_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/edge/logs/logstest"
	"github.com/berth-scheduler/berth/sim/apiserver"
)

// A pod whose required anti-affinity is about the pods of a ReplicaSet preempts one of them, which
// takes 3 s to go. The pod that takes its place has no terms, and the node has room for it: it
// waits, also once the preemptor is placed. One pod is evicted in three minutes.
func TestReplacedVictimWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{Server: apiserver.New()}
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		room := v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("1Gi"), v1.ResourcePods: resource.MustParse("10")}
		must(c.Create(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{v1.LabelHostname: "n"}}, Status: v1.NodeStatus{Allocatable: room, Capacity: room}}))
		low := replicaSet{cluster: c, going: map[types.UID]int{}}
		must(low.second())
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- daemonOf(t, c, &logstest.Sink{}, "me").Run(ctx, nil) }()
		node := func(name string) string {
			if p := c.Get("pods", "ns", name); p != nil {
				return p.(*v1.Pod).Spec.NodeName
			}
			return "no longer there"
		}
		for range 30 {
			time.Sleep(time.Second)
			must(low.second())
		}
		if node("low-1") != "n" {
			t.Fatal("the first pod of the ReplicaSet is not placed")
		}
		p := requesting("p", "100m", 1000)
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "low"}}}}}}
		must(c.Create(p))
		for range 180 {
			time.Sleep(time.Second)
			must(low.second())
		}
		if low.made != 2 || node("p") != "n" || node("low-2") != "" {
			t.Errorf("p is on %q, and %d pods were evicted; low-2 is on %q", node("p"), low.made-1, node("low-2"))
		}
		stop()
		<-ended
	})
}

// replicaSet is a ReplicaSet of one pod with a node's kubelet, under which a pod takes 3 s to go.
type replicaSet struct {
	*cluster
	made  int
	going map[types.UID]int // terminating pods: since how many seconds
}

// second does what is due in a second.
func (rs *replicaSet) second() error {
	running := 0
	for _, o := range rs.List("pods") {
		p := o.(*v1.Pod)
		switch {
		case p.Labels["app"] != "low":
		case p.DeletionTimestamp == nil:
			running++
		default:
			if rs.going[p.UID]++; rs.going[p.UID] > 3 {
				rs.Delete("pods", p.Namespace, p.Name)
			}
		}
	}
	if running > 0 {
		return nil
	}
	rs.made++
	p := requesting(fmt.Sprint("low-", rs.made), "100m", 0)
	p.Labels = map[string]string{"app": "low"}
	return rs.Create(p)
}
