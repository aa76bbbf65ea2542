package failover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// limit is how long a pod may take to be bound.
const limit = 3 * time.Minute

// Result is what one scheduler did in one turn. Times are in seconds.
type Result struct {
	Scheduler string  `json:"scheduler"`
	Nodes     int     `json:"nodes"`
	Pods      int     `json:"pods"`
	Start     float64 `json:"startSeconds"`    // from the start of the process to its first binding
	StartCPU  float64 `json:"startCPUSeconds"` // of the process until then
	PeakMiB   float64 `json:"startPeakRSSMiB"` // of the process until then
	Terminate float64 `json:"sigtermSeconds"`  // from the signal to the standby's first binding
	Kill      float64 `json:"killSeconds"`     // from the kill to the standby's first binding
	AfterKill float64 `json:"expirySeconds"`   // from the end of the lease to that binding
}

// Run measures each scheduler in turn on one control plane.
func Run(ctx context.Context, progress io.Writer, o Options) ([]Result, error) {
	fmt.Fprintf(progress, "starting a control plane with %d nodes and %d pods\n", o.Nodes, o.Pods)
	s, err := newScene(ctx, o.Nodes, o.Pods)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var results []Result
	for range o.Runs {
		for _, kind := range o.Schedulers {
			fmt.Fprintf(progress, "%s: start, SIGTERM, kill\n", kind)
			r, err := s.turn(ctx, cluster.SchedulerOptions{Kind: kind, Binary: o.Binary, LeaderElect: true})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", kind, err)
			}
			r.Scheduler, r.Nodes, r.Pods = kind, o.Nodes, o.Pods
			results = append(results, *r)
		}
	}
	return results, nil
}

// turn takes one scheduler through a start, a stop and a death.
func (s *scene) turn(ctx context.Context, o cluster.SchedulerOptions) (*Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &Result{}
	first, err := s.start(ctx, o, r)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	defer first.Kill()
	second, err := s.StartScheduler(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("standby: %w", err)
	}
	defer second.Kill()
	if r.Terminate, _, err = s.succeed(ctx, first.Stop); err != nil {
		return nil, fmt.Errorf("SIGTERM: %w", err)
	}
	third, err := s.StartScheduler(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("standby: %w", err)
	}
	defer third.Kill()
	r.Kill, r.AfterKill, err = s.succeed(ctx, func() error { second.Kill(); return nil })
	if err != nil {
		return nil, fmt.Errorf("kill: %w", err)
	}
	return r, third.Stop() // gives the lease up for the next turn
}

// start starts a scheduler when a pod waits already.
func (s *scene) start(ctx context.Context, o cluster.SchedulerOptions, r *Result) (*cluster.Scheduler, error) {
	bound, err := s.probe(ctx)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	p, err := s.StartScheduler(ctx, o)
	if err != nil {
		return nil, err
	}
	at, err := await(ctx, bound)
	if err != nil {
		p.Kill()
		return nil, err
	}
	r.Start = at.Sub(begin).Seconds()
	u, err := p.Usage()
	r.StartCPU, r.PeakMiB = u.CPU.Seconds(), float64(u.PeakRSS)/(1<<20)
	return p, err
}

// succeed ends the leader and waits until the standby binds a pod that was
// created afterwards. It returns the seconds since the end began and, of them,
// those since the lease had run out.
func (s *scene) succeed(ctx context.Context, end func() error) (all, expired float64, err error) {
	begin := time.Now()
	if err := end(); err != nil {
		return 0, 0, err
	}
	expiry, err := s.expiry(ctx)
	if err != nil {
		return 0, 0, err
	}
	bound, err := s.probe(ctx)
	if err != nil {
		return 0, 0, err
	}
	at, err := await(ctx, bound)
	return at.Sub(begin).Seconds(), at.Sub(expiry).Seconds(), err
}

func await(ctx context.Context, bound <-chan time.Time) (time.Time, error) {
	select {
	case at, ok := <-bound:
		if !ok {
			return at, errors.New("the watch of the pod ended")
		}
		return at, nil
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	case <-time.After(limit):
		return time.Time{}, fmt.Errorf("no pod was bound for %s", limit)
	}
}
