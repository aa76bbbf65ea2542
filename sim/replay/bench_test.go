package replay

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/sim/day"
	"github.com/berth-scheduler/berth/sim/generate"
)

var keep = flag.String("keep", "", "directory in which BenchmarkDay leaves its record")

// BenchmarkDay records a day of 5,000 nodes that report every 5 minutes and 200,000
// pods, and replays it.
//
//	go test ./sim/replay -run '^$' -bench Day -benchtime 1x -timeout 30m
func BenchmarkDay(b *testing.B) {
	size := day.Size{Nodes: 5000, Pods: 200000, Length: 24 * time.Hour, Heartbeat: 5 * time.Minute, Seed: 1}
	if testing.Short() {
		size.Nodes, size.Pods = 500, 20000
	}
	for b.Loop() {
		dir := *keep
		if dir == "" {
			dir = b.TempDir()
		}
		start := time.Now()
		recordDay(b, dir, size, recording.Scheduler, nil)
		b.ReportMetric(time.Since(start).Seconds(), "s-to-record")
		l, err := recording.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		start = time.Now()
		x, err := Exact(l, runtime.GOMAXPROCS(0), nil)
		if err != nil || x.Different > 0 || x.Decisions < size.Pods {
			b.Fatalf("%v; %d of %d decisions are the same: %+v", err, x.Same, x.Decisions, x.First)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s-to-replay")
		b.ReportMetric(float64(sizeOf(b, dir))/float64(x.Steps), "B/event")
		b.ReportMetric(float64(sizeOf(b, dir))/(1<<20), "MiB")
		b.ReportMetric(float64(x.Steps), "events")
		b.ReportMetric(float64(x.Decisions), "decisions")
	}
}

// BenchmarkRecording measures what recording costs the goroutine that decides: one
// cluster records, another does not, and they take turns.
//
//	go test ./sim/replay -run '^$' -bench Recording -benchtime 200x
func BenchmarkRecording(b *testing.B) {
	h := header(b, &generate.World{Seed: 5})
	sides := [2]*busy{newBusy(b, &h, false), newBusy(b, &h, true)}
	for b.Loop() {
		for _, s := range sides {
			s.round()
		}
	}
	off, on := sides[0], sides[1]
	b.ReportMetric(float64(off.spent.Nanoseconds())/float64(off.pods), "ns/pod-off")
	b.ReportMetric(float64(on.spent.Nanoseconds())/float64(on.pods), "ns/pod-on")
	b.ReportMetric(100*(float64(on.spent)/float64(off.spent)-1), "%overhead")
	if c := on.recorder.Counters(); c.Lost > 0 {
		b.Fatalf("the recorder counts %+v", c)
	}
}

// BenchmarkSnapshot measures how long one snapshot holds up the goroutine that decides,
// where all pods are bound, ten to a node. The shortest is the one that other work on the
// machine held up the least.
//
//	go test ./sim/replay -run '^$' -bench Snapshot -benchtime 20x
func BenchmarkSnapshot(b *testing.B) {
	for _, pods := range []int{50_000, 200_000} {
		b.Run(fmt.Sprint(pods), func(b *testing.B) {
			o, err := Options(new(header(b, &generate.World{Seed: 5})))
			if err != nil {
				b.Fatal(err)
			}
			o.Workers, o.Check = 1, false
			c := day.NewCluster(machine.New(o), begin)
			for _, e := range day.NewBurst(c, pods/10).Arrivals(pods) {
				c.Step(e)
			}
			c.Settle()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			shortest, spent := time.Hour, time.Duration(0)
			for b.Loop() {
				from, start := time.Now(), threadTime()
				s := c.Machine.Snapshot()
				spent += threadTime() - start
				if shortest = min(shortest, time.Since(from)); s == nil || len(s.Known) != pods || len(s.Pods) > 0 {
					b.Fatal("not all pods are bound")
				}
			}
			b.ReportMetric(float64(shortest.Microseconds())/1000, "ms-shortest")
			b.ReportMetric(float64(spent.Microseconds())/1000/float64(b.N), "cpu-ms")
		})
	}
}

// busy is a cluster in which pods come in bursts, as fast as they are decided on.
type busy struct {
	*day.Cluster
	recorder *recording.Recorder
	day      *day.Burst
	spent    time.Duration
	pods     int
}

func newBusy(b *testing.B, h *recording.Header, recorded bool) *busy {
	o, err := Options(h)
	if err != nil {
		b.Fatal(err)
	}
	o.Workers, o.Check = 1, false
	s := &busy{Cluster: day.NewCluster(machine.New(o), begin)}
	s.Objects = recording.NewObjects(nil) // the watches have done so, on both sides
	if recorded {
		if s.recorder, err = recording.Start(recording.Options{Dir: b.TempDir(), Limit: 1 << 30, Header: *h, Logger: klog.Background()}); err != nil {
			b.Fatal(err)
		}
		s.Observe = s.recorder.Observe
		b.Cleanup(func() { s.recorder.Close(context.Background()) })
	}
	s.day = day.NewBurst(s.Cluster, 5000)
	s.round() // warm
	s.spent, s.pods = 0, 0
	return s
}

// threadTime is the processor time of this thread: what else runs does not count.
func threadTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(1, &u) // RUSAGE_THREAD
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// round lets 500 pods come, be decided on, bound and deleted, and measures the steps.
func (s *busy) round() {
	events := s.day.Arrivals(500)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	for _, e := range events {
		s.Step(e)
	}
	s.Settle()
	s.spent += threadTime() - start
	s.pods += len(events)
	s.day.Leave()
}
