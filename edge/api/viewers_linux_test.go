package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/loop"
)

// viewed is a scheduler that decides without a rest, and is asked between two steps.
type viewed struct {
	*fixture
	asked chan func()
	pods  int
}

// inspect is what the loop's does.
func (v *viewed) inspect(ctx context.Context, look func(*machine.Machine)) error {
	done := make(chan struct{})
	select {
	case v.asked <- func() { look(v.m); close(done) }:
		<-done
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (v *viewed) give(e machine.Event) []machine.Effect {
	select {
	case answer := <-v.asked:
		answer()
	default:
	}
	now := time.Now()
	effects := v.m.Step(now, e)
	v.r.Observe(loop.Step{Now: now, Event: e, Effects: effects})
	return effects
}

// batch takes 64 pods from their arrival to their binding, and away. It returns the CPU time of
// this thread.
func (v *viewed) batch() time.Duration {
	pods := make([]*object.Pod, 64)
	for i := range pods {
		v.pods++
		p := &v1.Pod{}
		p.Namespace, p.Name, p.UID = "default", fmt.Sprint("workload-5d8f7c6b9-", v.pods), types.UID(fmt.Sprint(v.pods))
		p.Spec.SchedulerName = v1.DefaultSchedulerName
		p.Spec.Containers = []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("10m")}}}}
		pods[i] = decode.Pod(p)
	}
	began := threadTime()
	for _, p := range pods {
		v.give(machine.PodSet{Pod: p})
	}
	for range pods {
		v.give(machine.ScheduleOne{})
	}
	for _, p := range pods {
		v.give(machine.BindReply{UID: p.UID, Result: machine.BindDone})
	}
	for _, p := range pods {
		v.give(machine.PodGone{UID: p.UID, Namespace: p.Namespace, Name: p.Name})
	}
	return threadTime() - began
}

// run returns the CPU time a pod of a second, in nanoseconds.
func (v *viewed) run() float64 {
	spent, pods := time.Duration(0), 0
	for began := time.Now(); time.Since(began) < time.Second; pods += 64 {
		spent += v.batch()
	}
	return float64(spent.Nanoseconds()) / float64(pods)
}

// viewer reads a stream and keeps nothing.
type viewer struct{ header http.Header }

func (w *viewer) Header() http.Header         { return w.header }
func (w *viewer) Write(p []byte) (int, error) { return len(p), nil }
func (w *viewer) WriteHeader(int)             {}
func (w *viewer) Flush()                      {}

// view opens streams until end is called.
func (v *viewed) view(h http.Handler, streams int) (end func()) {
	ctx, cancel := context.WithCancel(v.Context())
	var all sync.WaitGroup
	for i := range streams {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, Prefix+"watch?every=250ms", nil)
		r.RemoteAddr = fmt.Sprintf("10.0.0.%d:1", i)
		r.Header.Set("Accept-Encoding", "gzip")
		all.Go(func() { h.ServeHTTP(&viewer{http.Header{}}, r) })
	}
	return func() { cancel(); all.Wait() }
}

func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// BenchmarkViewers is a pod from its arrival to its binding and away, in a cluster of 5,000 nodes,
// by turns of a second with 16 streams of what changes and without. It reports the CPU time of the
// deciding goroutine.
func BenchmarkViewers(b *testing.B) {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	f, _ := largeNodes(b)
	v := &viewed{fixture: f, asked: make(chan func())}
	o := f.options
	o.Inspect, o.Now = v.inspect, time.Now
	h := Handler(o)
	v.run()
	var without, with float64
	for b.Loop() {
		without += v.run()
		end := v.view(h, mostWatches)
		with += v.run()
		end()
	}
	b.ReportMetric(without/float64(b.N), "ns-without/pod")
	b.ReportMetric(with/float64(b.N), "ns-with/pod")
	b.ReportMetric(100*(with/without-1), "%-more")
}
