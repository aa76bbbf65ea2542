package daemon_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/daemon"
	"github.com/berth-scheduler/berth/edge/logs/logstest"
	"github.com/berth-scheduler/berth/edge/loop"
	"github.com/berth-scheduler/berth/sim/apiserver"
)

// reach is a whole daemon over an API server in memory, in real time, and what it has
// done.
type reach struct {
	*testing.B
	cluster  *cluster
	daemon   *daemon.Daemon
	stop     context.CancelFunc
	ended    chan error
	mu       sync.Mutex
	bound    int
	first    time.Time
	attempts map[string]int // that failed, by pod
}

func newReach(b *testing.B, nodes int) *reach {
	r := &reach{B: b, cluster: &cluster{Server: apiserver.New()}, ended: make(chan error, 1), attempts: map[string]int{}}
	for i := range nodes {
		list := v1.ResourceList{"cpu": resource.MustParse("32"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
		r.create(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}, Status: v1.NodeStatus{Allocatable: list, Capacity: list}})
	}
	r.cluster.Changed = func(c *apiserver.Change) {
		if p, ok := c.Object.(*v1.Pod); ok && c.By != "" && p.Spec.NodeName != "" {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.bound++; r.bound == 1 {
				r.first = time.Now()
			}
		}
	}
	return r
}

func (r *reach) create(o apiserver.Object) {
	if err := r.cluster.Create(o); err != nil {
		r.Fatal(err)
	}
}

// wrap counts attempts that fail.
func (r *reach) wrap(m loop.Machine) loop.Machine { return counting{m, r} }

type counting struct {
	loop.Machine
	reach *reach
}

func (c counting) Step(now time.Time, e machine.Event) []machine.Effect {
	effects := c.Machine.Step(now, e)
	for i := range effects {
		if done, ok := effects[i].(machine.AttemptDone); ok && done.Decision.Result != decision.ResultScheduled {
			c.reach.mu.Lock()
			c.reach.attempts[done.Decision.Pod.String()]++
			c.reach.mu.Unlock()
		}
	}
	return effects
}

func (r *reach) failed() (attempts int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.attempts {
		attempts += n
	}
	return attempts
}

// run starts the daemon and waits until it has bound a first pod.
func (r *reach) run() {
	ctx, stop := context.WithCancel(r.Context())
	r.stop = stop
	r.daemon = daemonOf(r.B, r.cluster, &logstest.Sink{}, "a", r.wrap)
	go func() { r.ended <- r.daemon.Run(ctx, nil) }()
	r.create(requesting("warm", "100m", 0))
	r.until(func() bool { return r.bound > 0 })
	r.mu.Lock()
	r.bound = 0
	r.mu.Unlock()
}

func (r *reach) until(holds func() bool) {
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		ok := holds()
		r.mu.Unlock()
		if ok {
			return
		}
		if time.Since(begin) > 3*time.Minute {
			r.Fatal("it takes more than three minutes")
		}
	}
}

// heap is the live heap, in MiB.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

func (r *reach) end() {
	r.stop()
	<-r.ended
}

func requesting(name, cpu string, priority int32) *v1.Pod {
	p := podOf(name, "")
	p.Spec.Priority = &priority
	p.Spec.Containers[0].Resources.Requests = v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("100Mi")}
	return p
}

// 100,000 pods that are told at once on 5,000 nodes: when the first is bound, when all
// are, and what this adds to the heap, of which the API server's share is its own: the
// bound pods and the history.
func BenchmarkReachBurst(b *testing.B) {
	for b.Loop() {
		r := newReach(b, 5000)
		r.run()
		told := time.Now().Add(40 * time.Second)
		r.cluster.Lag = func(string, string, *apiserver.Change) time.Time { return told }
		for i := range 100_000 {
			r.create(requesting(fmt.Sprint("p", i), "100m", 0))
		}
		before := heap()
		if time.Now().After(told) {
			b.Fatal("the pods are told before all are there")
		}
		r.until(func() bool { return r.bound == 100_000 })
		b.ReportMetric(r.first.Sub(told).Seconds(), "s-to-first-binding")
		b.ReportMetric(time.Since(told).Seconds(), "s-to-last-binding")
		b.ReportMetric(heap()-before, "MiB-more")
		r.end()
	}
}

// A restart with 140,000 pods on 5,000 nodes: how long it takes until the lists are read and a pod
// that waits is bound, over HTTP without a network and without etcd. `go test ./edge/daemon -run '^$'
// -bench ReachRestart -benchtime 1x`.
func BenchmarkReachRestart(b *testing.B) {
	for b.Loop() {
		r := newReach(b, 5000)
		for i := range 140_000 {
			p := requesting(fmt.Sprint("p", i), "1", 0)
			p.Spec.NodeName = fmt.Sprint("n", i%5000)
			r.create(p)
		}
		before, began := heap(), time.Now()
		r.run()
		b.ReportMetric(time.Since(began).Seconds(), "s-to-first-binding")
		b.ReportMetric(heap()-before, "MiB-more")
		r.end()
	}
}

// 10,000 pods that fit nowhere, though each update of a node, of which there are 100 a
// second, may help each of them: when a pod of a lower priority that fits is bound.
func BenchmarkReachUnschedulable(b *testing.B) {
	for b.Loop() {
		r := newReach(b, 5000)
		for i := range 5000 {
			p := requesting(fmt.Sprint("full", i), "31", 0)
			p.Spec.NodeName = fmt.Sprint("n", i)
			r.create(p)
		}
		r.run()
		for i := range 10_000 {
			r.create(requesting(fmt.Sprint("p", i), "2", 10))
		}
		ticker := time.NewTicker(10 * time.Millisecond)
		begin, slowest := time.Now(), time.Duration(0)
		sent := time.Time{}
		for i := range 4000 { // 40 s
			<-ticker.C
			_ = r.cluster.Update("nodes", "", fmt.Sprint("n", i%5000), func(o apiserver.Object) {
				o.(*v1.Node).Status.Allocatable["cpu"] = resource.MustParse(fmt.Sprint(32010+i%900, "m"))
			})
			r.mu.Lock()
			done := r.bound > 0
			r.mu.Unlock()
			switch {
			case i%500 == 0:
				sent = time.Now()
				r.create(requesting(fmt.Sprint("late", i), "100m", -5))
			case done:
				slowest = max(slowest, r.first.Sub(sent))
				r.mu.Lock()
				r.bound = 0
				r.mu.Unlock()
			}
		}
		ticker.Stop()
		b.ReportMetric(slowest.Seconds(), "s-to-binding-at-most")
		b.ReportMetric(float64(r.failed())/time.Since(begin).Seconds(), "attempts/s")
		r.end()
	}
}

// 5,000 pods that wait for their volumes: how many attempts it costs when the claim of
// one of them is bound. The volume is there before: a new one may help any of them.
func BenchmarkReachVolumes(b *testing.B) {
	for b.Loop() {
		r := newReach(b, 5000)
		atOnce := storagev1.VolumeBindingImmediate
		r.create(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "now"}, Provisioner: "x", VolumeBindingMode: &atOnce})
		class := "now"
		for i := range 5000 {
			name := fmt.Sprint("c", i)
			r.create(&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
				Spec: v1.PersistentVolumeClaimSpec{StorageClassName: &class}})
			p := requesting(fmt.Sprint("p", i), "100m", 0)
			p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
			r.create(p)
		}
		r.create(&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v7"}, Spec: v1.PersistentVolumeSpec{StorageClassName: class,
			ClaimRef: &v1.ObjectReference{Namespace: "ns", Name: "c7"}}})
		r.run()
		r.until(func() bool { return len(r.attempts) == 5000 })
		for n := -1; n != r.failed(); time.Sleep(12 * time.Second) { // longer than a backoff
			n = r.failed()
		}
		before, begin := r.failed(), time.Now()
		_ = r.cluster.Update("persistentvolumeclaims", "ns", "c7", func(o apiserver.Object) {
			o.(*v1.PersistentVolumeClaim).Spec.VolumeName = "v7"
			o.SetAnnotations(map[string]string{"pv.kubernetes.io/bind-completed": "yes"})
		})
		r.until(func() bool { return r.bound == 1 })
		b.ReportMetric(r.first.Sub(begin).Seconds(), "s-to-binding")
		time.Sleep(3 * time.Second)
		b.ReportMetric(float64(r.failed()-before), "attempts-of-others")
		r.end()
	}
}
