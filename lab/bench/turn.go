package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/berth-scheduler/berth/edge/daemon"
	"github.com/berth-scheduler/berth/lab/cluster"
)

// turn is one scheduler's turn in process. Each runs in a process of its own,
// so that its memory and its CPU time are its own: the same program, called as
// `bench turn`, which reads a turn from its input and writes what came of it.
type turn struct {
	Scheduler  string
	Workload   string     // of the suites, and
	Dir        string     // where Berth's own are, and
	Pods       int        // the most that a measured step creates, 0: as the file says, and
	Gates      string     // the feature gates of kube-scheduler; or
	Scale      *scaleCase // one case of bench scale; or
	Hard       *hardWorld
	Gangs      *gangCase
	Replay     *trace // a trace
	CPUProfile string // of the measured phase, "" for none
	MemProfile string // of all allocations, "" for none
}

// in runs the turn in a process of its own and reads what came of it.
func (t turn) in(ctx context.Context, into any) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	input, err := json.Marshal(t)
	if err != nil {
		return err
	}
	var out, errs bytes.Buffer
	command := exec.CommandContext(ctx, self, "bench", "turn")
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), &out, &errs
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if said := bytes.TrimSpace(errs.Bytes()); len(said) > 0 {
			return fmt.Errorf("%s", bytes.TrimPrefix(said, []byte("berth-lab: ")))
		}
		return err
	}
	return json.Unmarshal(out.Bytes(), into)
}

func newTurnCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "turn",
		Short:  "Run one turn, read as JSON from the input (bench calls itself so)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			var t turn
			if err := json.NewDecoder(command.InOrStdin()).Decode(&t); err != nil {
				return fmt.Errorf("the turn: %w", err)
			}
			return t.run(command.OutOrStdout())
		},
	}
}

func (t turn) run(w io.Writer) (err error) {
	if t.Scheduler == Berth && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(daemon.GCPercent) // as the daemon does
	}
	var result any
	switch {
	case t.Scale != nil:
		result, err = t.Scale.measure(t)
	case t.Hard != nil:
		result, err = t.Hard.measure(t)
	case t.Gangs != nil:
		result, err = t.Gangs.measure(t)
	case t.Replay != nil:
		result, err = t.Replay.measure(t)
	default:
		result, err = t.decide()
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(result)
}

// decide measures the decisions of a workload.
func (t turn) decide() (*Run, error) {
	w, err := Load(t.Dir, t.Workload)
	if err != nil {
		return nil, err
	}
	w.limit(t.Pods)
	if err := utilfeature.DefaultMutableFeatureGate.Set(t.Gates); err != nil {
		return nil, err
	}
	s, err := w.scene()
	if err != nil {
		return nil, err
	}
	took, err := t.take(s)
	if err != nil {
		return nil, err
	}
	n := float64(took.decisions)
	return &Run{
		Scheduler: t.Scheduler, Nodes: w.nodes(), Pods: took.decisions, Scheduled: took.decisions,
		PodsPerSecond:   round(n / took.wall.Seconds()),
		CPUMillisPerPod: round(float64(took.cpu) / float64(time.Millisecond) / n),
		P50Millis:       round(percentile(millis(took.took), 0.5)),
		P99Millis:       round(percentile(millis(took.took), 0.99)),
		PeakRSSMiB:      round(peakRSS()),
	}, nil
}

// take has the turn's scheduler take the decisions of the scene.
func (t turn) take(s *scene) (*timing, error) {
	d, stop, err := newDecider(t.Scheduler, s)
	if err != nil {
		return nil, err
	}
	defer stop()
	if err := s.warm(d); err != nil {
		return nil, err
	}
	return t.profiled(func() (*timing, error) { return s.take(d) })
}

// profiled calls f, under the profilers that the turn asks for.
func (t turn) profiled(f func() (*timing, error)) (*timing, error) {
	if t.CPUProfile != "" {
		file, err := os.Create(t.CPUProfile)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return nil, err
		}
		defer pprof.StopCPUProfile()
	}
	if t.MemProfile != "" {
		runtime.MemProfileRate = 512 // bytes: nearly every allocation from here on
	}
	took, err := f()
	if err != nil || t.MemProfile == "" {
		return took, err
	}
	file, err := os.Create(t.MemProfile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	runtime.GC() // the profile is as of the last collection
	return took, pprof.Lookup("allocs").WriteTo(file, 0)
}

// cpuTime is the process's user and system time so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakRSS is the most memory that the process ever had resident, in MiB. What
// getrusage calls so would count the parent's, from before the exec.
func peakRSS() float64 {
	u, err := cluster.UsageOf(os.Getpid())
	if err != nil {
		return 0
	}
	return float64(u.PeakRSS) / (1 << 20)
}
