package sim_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim"
)

// restless is a cluster in which a pod preempts another one that is made again at once.
func restless(t *testing.T) sim.Input {
	t.Helper()
	options, err := sim.Options(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	n := plainNode("n")
	low, high := plainPod("low"), plainPod("high")
	low.UID, high.UID = "low", "high"
	for _, p := range []*v1.Pod{low, high} {
		p.Spec.SchedulerName = v1.DefaultSchedulerName
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("3")}
	}
	low.Spec.NodeName = "n"
	high.Spec.Priority = new(int32(10))
	pods := []*object.Pod{decode.Pod(low), decode.Pod(high)}
	made := 0
	return sim.Input{Machine: options, Nodes: []*object.Node{decode.Node(n)}, Pods: pods, Evicted: func(c *sim.Cluster, victim *object.Pod, _ bool) {
		made++
		again := *victim
		again.UID = types.UID(fmt.Sprint("low-", made))
		c.SetPod(&again) // on its node, as no controller would
	}}
}

// A world that never comes to rest is cut after a number of steps, and the result names
// the pods that were decided on most often.
func TestNeverAtRest(t *testing.T) {
	r, err := sim.Run(restless(t))
	if err != nil || !strings.Contains(r.Cut, "did not come to rest in 12000 steps; decided on most often: default/high (") {
		t.Errorf("cut: %q, %v", r.Cut, err)
	}
}

// A run stops when it is told to.
func TestStop(t *testing.T) {
	in := restless(t)
	in.Stop = func() bool { return true }
	r, err := sim.Run(in)
	if err != nil || r.Cut != "the time was up before all pods were tried" || r.Decisions > 64 {
		t.Errorf("cut: %q after %d decisions, %v", r.Cut, r.Decisions, err)
	}
}
