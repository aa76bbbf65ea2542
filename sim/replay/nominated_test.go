package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/sim/generate"
)

// nominatedWorld has a pod that is nominated to the only node and waits for its victim. Its
// required anti-affinity keeps pods without terms from there.
func nominatedWorld() *generate.World {
	pod := func(name, app string) *v1.Pod {
		return &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{"app": app}},
			Spec:       v1.PodSpec{SchedulerName: v1.DefaultSchedulerName, Priority: new(int32(0)), Containers: []v1.Container{{Name: "c", Image: "i"}}},
			Status:     v1.PodStatus{Phase: v1.PodPending},
		}
	}
	room := v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("4Gi"), v1.ResourcePods: resource.MustParse("100")}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{v1.LabelHostname: "n"}}, Status: v1.NodeStatus{Allocatable: room, Capacity: room}}
	victim, first := pod("victim", "low"), pod("first", "high")
	victim.Spec.NodeName, victim.DeletionTimestamp = "n", &metav1.Time{Time: begin.Add(24 * time.Hour)}
	victim.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler}}
	first.Spec.Priority, first.Status.NominatedNodeName = new(int32(100)), "n"
	first.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
		{TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "low"}}}}}}
	w := &generate.World{Mix: "nominated", Nodes: []*v1.Node{node}, Bound: []*v1.Pod{victim}, Pending: []*v1.Pod{first}}
	for i := range 40 {
		w.Pending = append(w.Pending, pod(fmt.Sprint("low-", i), "low"))
	}
	return w
}

// The anti-affinity of a nominated pod keeps others from its node in the replay, too, wherever
// the record begins: a scheduler that starts from what another one knew knows it.
func TestNominatedAntiAffinityIsExact(t *testing.T) {
	cut := 0
	for seed := range uint64(4) {
		w := nominatedWorld()
		w.Seed = seed
		dir := t.TempDir()
		playTo(t, w, dir, nil, func(u *recording.Tuning) { u.Segment, u.Flush = 8000, 0 }, true)
		names, _ := filepath.Glob(filepath.Join(dir, "*.berthrecord"))
		for ; len(names) > 0; names = names[1:] {
			x := exactly(t, dir)
			if x.Different > 0 || x.Same+x.Unverified != x.Decisions {
				t.Fatalf("seed %d from %s on: %d steps of %d are different: %+v", seed, filepath.Base(names[0]), x.Different, x.Steps, x.First)
			}
			if len(names) > 1 && x.ByResult["Unschedulable"] > 0 {
				cut++
			}
			if err := os.Remove(names[0]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if cut < 5 {
		t.Errorf("%d records with pods that wait", cut)
	}
}
