package bench

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/lab/oracle"
)

// decider takes decisions in process.
type decider interface {
	// decide places the pod, counted whole: its record made and its room taken.
	decide(i int) error
}

// runDecide places the pods of each step in turn; the measured step's
// decisions are timed one by one.
func runDecide(o Options, w *Workload, scheduler string) (*Run, error) {
	nodes, bound, measured := w.inMemory()
	d, stop, err := newDecider(scheduler, nodes, bound, measured)
	if err != nil {
		return nil, err
	}
	defer stop()
	if o.CPUProfile != "" && scheduler == Berth {
		f, err := os.Create(o.CPUProfile)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, err
		}
		defer pprof.StopCPUProfile()
	}
	runtime.GC()
	took := make([]time.Duration, len(measured))
	cpu, start := cpuTime(), time.Now()
	for i := range measured {
		before := time.Now()
		if err := d.decide(i); err != nil {
			return nil, fmt.Errorf("pod %s: %w", measured[i].Name, err)
		}
		took[i] = time.Since(before)
	}
	wall, used, n := time.Since(start), cpuTime()-cpu, len(measured)
	return &Run{
		Scheduler: scheduler, Nodes: len(nodes), Pods: n, Scheduled: n,
		PodsPerSecond:   round(float64(n) / wall.Seconds()),
		CPUMillisPerPod: round(float64(used) / float64(time.Millisecond) / float64(n)),
		P50Millis:       round(percentile(millis(took), 0.5)),
		P99Millis:       round(percentile(millis(took), 0.99)),
		PeakRSSMiB:      round(peakRSS()),
	}, nil
}

// inMemory makes the workload's objects: pods of earlier steps are spread
// over the nodes in turn.
func (w *Workload) inMemory() (nodes []*v1.Node, bound, measured []*v1.Pod) {
	for i, s := range w.Steps {
		prefix := fmt.Sprintf("step%d", i)
		if s.Kind == "nodes" {
			nodes = append(nodes, s.Nodes(prefix)...)
			continue
		}
		pods := s.Pods(prefix)
		for k, p := range pods {
			p.UID = types.UID(p.Name)
			if !s.Measure {
				p.Spec.NodeName = nodes[k%len(nodes)].Name
			}
			decode.DefaultPod(p)
		}
		if s.Measure {
			measured = append(measured, pods...)
		} else {
			bound = append(bound, pods...)
		}
	}
	return nodes, bound, measured
}

func newDecider(scheduler string, nodes []*v1.Node, bound, measured []*v1.Pod) (decider, func(), error) {
	if scheduler == KubeScheduler {
		rival, err := oracle.NewRival(nodes, bound)
		if err != nil {
			return nil, nil, err
		}
		return rivalDecider{rival, measured}, rival.Stop, nil
	}
	d, err := newBerth(nodes, bound, measured)
	return d, func() {}, err
}

type rivalDecider struct {
	*oracle.Rival
	pods []*v1.Pod
}

func (d rivalDecider) decide(i int) error {
	_, err := d.Rival.Decide(d.pods[i])
	return err
}

// berthDecider drives the daemon's own machine. The pods are in its queue
// when measuring begins; each decision is a Cycle: pop, decide, record,
// assume, effects handed over.
type berthDecider struct{ m *machine.Machine }

func newBerth(nodes []*v1.Node, bound, measured []*v1.Pod) (*berthDecider, error) {
	profiles, err := profile.BuildAll(config.Profiles(config.Default()), plugins.Registry(plugins.Features{}))
	if err != nil {
		return nil, err
	}
	m := machine.New(machine.Options{
		Profiles: profiles, Seed: 1, Workers: runtime.GOMAXPROCS(0),
		InitialBackoff: time.Second, MaxBackoff: 10 * time.Second, MaxUnschedulable: 5 * time.Minute,
	})
	for _, n := range nodes {
		m.Step(time.Now(), machine.NodeSet{Node: decode.Node(n)})
	}
	for _, p := range append(append([]*v1.Pod{}, bound...), measured...) {
		m.Step(time.Now(), machine.PodSet{Pod: decode.Pod(p)})
	}
	return &berthDecider{m}, nil
}

func (d *berthDecider) decide(int) error {
	for _, e := range d.m.Step(time.Now(), machine.Cycle{}) {
		if out, ok := e.(machine.Decided); ok && out.Decision.Result == decision.Scheduled {
			return nil
		}
	}
	return fmt.Errorf("was not placed")
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakRSS is the process's largest resident size so far, in MiB. In mode
// decide both schedulers share the process.
func peakRSS() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Maxrss) / 1024
}
