package records

import (
	"fmt"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/loop"
)

func benchNode(i int) *v1.Node {
	name := fmt.Sprintf("node-%d", i)
	room := v1.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{
		v1.LabelHostname: name, v1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3)}}, Status: v1.NodeStatus{Allocatable: room}}
}

func benchPod(i int, cpu string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("workload-5d8f7c6b9-%d", i), UID: uid(i)}}
	p.Spec.SchedulerName = v1.DefaultSchedulerName
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
		"cpu": resource.MustParse(cpu), "memory": resource.MustParse("200Mi")}}}}
	return p
}

// BenchmarkDecide is a decision in a cluster of 5,000 nodes, as `berth-lab bench --mode
// decide` counts it, by turns in a scheduler without records and in one with records;
// "life" is the pod's arrival and binding besides. It reports the CPU time of the
// goroutine, which other processes do not distort as much as the time on the wall.
func BenchmarkDecide(b *testing.B) {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	r := New(64 << 20)
	for i := 0; r.log.size()+r.log.segmentBytes <= r.log.limit; i++ { // as after a while
		r.Observe(loop.Step{Now: start, Effects: done(placement(i, 1))})
	}
	without, with := newScene(b, nil), newScene(b, r)
	var spent, life [2][]time.Duration
	for i := 0; i < b.N; i += slice {
		for k, s := range []*scene{without, with} {
			d, l := s.slice(i)
			spent[k] = append(spent[k], d)
			life[k] = append(life[k], l)
		}
	}
	b.ReportMetric(median(spent[0])/slice, "ns-without/op")
	b.ReportMetric(median(spent[1])/slice, "ns-with/op")
	b.ReportMetric(100*(median(spent[1])/median(spent[0])-1), "%-more")
	b.ReportMetric(100*(median(life[1])/median(life[0])-1), "%-more-life")
}

// median of the slices: one that the garbage collector or another process disturbed
// does not count more than any other.
func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Nanoseconds())
}

// slice is how many pods are decided on before their bindings are answered.
const slice = 64

type scene struct {
	m *machine.Machine
	r *Recorder // nil: none
}

func newScene(b *testing.B, r *Recorder) *scene {
	options := machineOptions(b)
	options.Check = false
	s := &scene{m: machine.New(options), r: r}
	if r != nil {
		r.Watch(s.m)
	}
	for i := range 5000 {
		s.step(machine.NodeSet{Node: decode.Node(benchNode(i))})
	}
	return s
}

func (s *scene) step(e machine.Event) []machine.Effect {
	now := time.Now()
	effects := s.m.Step(now, e)
	if s.r != nil {
		s.r.Observe(loop.Step{Now: now, Event: e, Effects: effects})
	}
	return effects
}

// slice takes pods from their arrival to their binding, and then away: the cluster
// does not fill up.
func (s *scene) slice(first int) (decisions, life time.Duration) {
	var pods []*object.Pod
	for i := range slice {
		pods = append(pods, decode.Pod(benchPod(first+i, "10m")))
	}
	began := cpuTime()
	for _, p := range pods {
		s.step(machine.PodSet{Pod: p})
	}
	binds := make([]machine.BindReply, 0, slice)
	decide := cpuTime()
	for range slice {
		for _, effect := range s.step(machine.ScheduleOne{}) {
			if bind, ok := effect.(machine.Bind); ok {
				binds = append(binds, machine.BindReply{UID: bind.Pod.UID, Result: machine.BindDone})
			}
		}
	}
	decisions = cpuTime() - decide
	for _, e := range binds {
		s.step(e)
	}
	life = cpuTime() - began
	for _, p := range pods {
		s.step(machine.PodGone{UID: p.UID, Namespace: p.Namespace, Name: p.Name})
	}
	return decisions, life
}

// cpuTime is what this thread has used, to the nanosecond.
func cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// BenchmarkRecord is what the records of one placed pod cost: it enters the queue,
// is popped and placed, and is bound.
func BenchmarkRecord(b *testing.B) {
	r := New(64 << 20)
	p := decode.Pod(benchPod(1, "1"))
	d := placement(1, 1)
	d.UID, d.Pod = p.UID, p.NamespacedName()
	attempt := []machine.Effect{machine.AttemptDone{Decision: d}, machine.Bind{Pod: p, Node: d.Node}}
	bound := []machine.Effect{machine.PublishEvent{Pod: p, Reason: "Scheduled"}}
	b.ReportAllocs()
	for b.Loop() {
		r.popped, r.queued = p, start
		r.Observe(loop.Step{Now: start, Effects: attempt})
		r.left = p
		r.Observe(loop.Step{Now: start, Effects: bound})
	}
}
