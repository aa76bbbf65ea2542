package sample

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// admits says whether a node, empty, could run a pod of a workload.
func admits(node *corev1.Node, w workload) bool {
	for key, value := range w.selector {
		if node.Labels[key] != value {
			return false
		}
	}
	for i := range node.Spec.Taints {
		tolerated := false
		for _, toleration := range w.tolerations {
			tolerated = tolerated || toleration.MatchToleration(&corev1.Toleration{
				Key: node.Spec.Taints[i].Key, Operator: corev1.TolerationOpEqual,
				Value: node.Spec.Taints[i].Value, Effect: node.Spec.Taints[i].Effect})
		}
		if !tolerated {
			return false
		}
	}
	cpu, memory := resource.MustParse(w.cpu), resource.MustParse(w.memory)
	return node.Status.Allocatable.Cpu().Cmp(cpu) >= 0 && node.Status.Allocatable.Memory().Cmp(memory) >= 0
}

// Whatever the scheduler's taste, what is called fitting fits: even if every
// other pod were put on the nodes that a workload may use, and each node lost as
// much as one more pod to fragments, there is room.
func TestTheOutcomeIsCertain(t *testing.T) {
	nodes := cluster.Nodes(MinNodes)
	for _, w := range workloads {
		var cpu, memory, pods int64
		for _, node := range nodes {
			if admits(node, w) {
				cpu += node.Status.Allocatable.Cpu().MilliValue() - 1000
				memory += node.Status.Allocatable.Memory().Value() - 4<<30
				pods += node.Status.Allocatable.Pods().Value()
			}
		}
		if !w.fits {
			if pods > 0 {
				t.Errorf("%s is said to fit nowhere, and does", w.name)
			}
			continue
		}
		for _, other := range workloads {
			if !other.fits {
				continue
			}
			if meet := func() bool {
				for _, node := range nodes {
					if admits(node, w) && admits(node, other) {
						return true
					}
				}
				return false
			}(); !meet {
				continue
			}
			n := int64(other.pods)
			c, m := resource.MustParse(other.cpu), resource.MustParse(other.memory)
			cpu, memory, pods = cpu-n*c.MilliValue(), memory-n*m.Value(), pods-n
		}
		if cpu < 0 || memory < 0 || pods < 0 {
			t.Errorf("%s may find no room: %dm CPU, %d bytes, %d pods short", w.name, cpu, memory, pods)
		}
	}
}

// The sample has ten pods per node, for whole tens of nodes.
func TestTenPodsANode(t *testing.T) {
	for nodes, want := range map[int]int{10: 100, 19: 100, 100: 1000, 5000: 50000} {
		s, err := For(nodes)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Fitting() + s.Unfitting(); got != want {
			t.Errorf("%d nodes: %d pods, want %d", nodes, got, want)
		}
	}
	if _, err := For(9); err == nil {
		t.Error("nine nodes were accepted")
	}
}

// The progress counts pods that fit, that are rejected, and that are on a wrong
// node.
func TestMeasure(t *testing.T) {
	pod := func(app, node, message string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appLabel: app}}, Spec: corev1.PodSpec{NodeName: node}}
		if message != "" {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: message}}
		}
		return p
	}
	s := Sample{scale: 1}
	got := s.measure([]*corev1.Pod{
		pod("web", "n1", ""), pod("api", "n1", "an old message"), pod("web", "", ""), pod("web", "", ""), pod("web", "", "no room yet"),
		pod("huge", "", "too big"), pod("huge", "", "too big"), pod("huge", "", "too big"), pod("nvme", "", ""), pod("nvme", "n2", ""),
	})
	want := Progress{Total: 100, Created: 10, Bound: 3, Fitting: 2, Misfits: 1, Rejected: 3, Pending: []Reason{
		{"huge", "too big", 3}, {"web", "", 2}, {"nvme", "", 1}, {"web", "no room yet", 1},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// The sample is settled when all pods that fit are placed and all others are
// rejected.
func TestSettled(t *testing.T) {
	s := Sample{scale: 1}
	for _, test := range []struct {
		p    Progress
		want bool
	}{
		{Progress{Fitting: 95, Rejected: 5}, true},
		{Progress{Fitting: 94, Rejected: 5}, false},
		{Progress{Fitting: 95, Rejected: 4}, false}, // the scheduler may still place it
		{Progress{Fitting: 95, Rejected: 4, Misfits: 1}, false},
	} {
		if got := s.Settled(test.p); got != test.want {
			t.Errorf("%+v: settled is %t", test.p, got)
		}
	}
}
