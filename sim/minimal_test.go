package sim_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helper "k8s.io/component-helpers/resource"

	"github.com/berth-scheduler/berth/sim/generate"
	"github.com/berth-scheduler/berth/sim/written"
)

// Fixes hold and are minimal for pods whose demand is no plain sum: with requests of the
// pod itself, init containers, sidecars and overhead.
func TestFixesOfComposedRequestsAreMinimal(t *testing.T) {
	pods := uint64(300)
	if testing.Short() {
		pods = 40
	}
	fixes := 0
	for seed := range pods {
		files, err := written.New(composed(seed))
		if err != nil {
			t.Fatal(err)
		}
		c, err := files.Load()
		if err != nil {
			continue
		}
		api, err := c.Find("default/p", "")
		if err != nil {
			t.Fatal(err)
		}
		a := c.Why(t.Context(), api)
		for i := range a.Fixes {
			fixes++
			if err := holds(t, files, "default/p", &a.Fixes[i]); err != nil {
				text, _ := json.Marshal(a.Fixes[i])
				spec, _ := json.Marshal(api.Spec)
				t.Errorf("seed %d: fix %d: %v: %s of %s", seed, i, err, text, spec)
			}
		}
	}
	t.Logf("%d fixes", fixes)
	if fixes < int(pods) {
		t.Errorf("only %d fixes of %d pods", fixes, pods)
	}
}

// composed is two nodes that are used in part, and a pod of containers of all sorts.
func composed(seed uint64) generate.World {
	random := rand.New(rand.NewPCG(seed, 7))
	large := 1 + 4*random.IntN(2)*random.IntN(3)
	list := func(most int) v1.ResourceList {
		all := v1.ResourceList{}
		most *= large
		if random.IntN(6) == 0 {
			all["example.com/gpu"] = *resource.NewQuantity(int64(random.IntN(4)), resource.DecimalSI)
		}
		if random.IntN(4) > 0 {
			all[v1.ResourceCPU] = *resource.NewMilliQuantity(int64(100*(1+random.IntN(most))), resource.DecimalSI)
		}
		if random.IntN(2) > 0 {
			all[v1.ResourceMemory] = *resource.NewQuantity(int64(random.IntN(most))<<27, resource.BinarySI)
		}
		return all
	}
	w := generate.World{Mix: "composed", Seed: seed}
	for i := range 2 {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}}
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("8Gi"), v1.ResourcePods: resource.MustParse("9"), "example.com/gpu": resource.MustParse("2")}
		w.Nodes = append(w.Nodes, n)
		b := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("b%d", i)}}
		b.Spec.NodeName = n.Name
		b.Spec.Containers = []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{Requests: list(30)}}}
		w.Bound = append(w.Bound, b)
	}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
	always := v1.ContainerRestartPolicyAlways
	for i := range random.IntN(3) {
		c := v1.Container{Name: fmt.Sprintf("i%d", i), Image: "i", Resources: v1.ResourceRequirements{Requests: list(60)}}
		if random.IntN(2) > 0 {
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	for i := range 1 + random.IntN(3) {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: fmt.Sprintf("c%d", i), Image: "i", Resources: v1.ResourceRequirements{Requests: list(40)}})
	}
	if random.IntN(2) > 0 {
		own := helper.AggregateContainerRequests(p, helper.PodResourcesOptions{})
		for name, more := range list(20) { // any order: each by itself
			sum := own[name]
			sum.Add(more)
			own[name] = sum
		}
		p.Spec.Resources = &v1.ResourceRequirements{Requests: own}
	}
	if random.IntN(3) == 0 {
		p.Spec.Overhead = list(5)
	}
	w.Pending = []*v1.Pod{p}
	return w
}
