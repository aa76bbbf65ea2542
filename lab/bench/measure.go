package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// errUnfit is a workload that the mode cannot run, which is no failure.
var errUnfit = errors.New("this mode cannot run the workload")

// measureAll measures one workload after the other and writes what came of
// each. One that fails does not stop the others; a signal does, and what was
// measured by then is written.
func measureAll(ctx context.Context, o Options, w io.Writer, say func(string, ...any)) error {
	var results []*Result
	var unfit, failed []error
	for _, name := range o.Workloads {
		if ctx.Err() != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, context.Cause(ctx)))
			continue
		}
		say("%s", name)
		result, err := Measure(ctx, o, name, say)
		switch {
		case errors.Is(err, errUnfit) && len(o.Workloads) > 1:
			say("  %v", err)
			unfit = append(unfit, err)
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			say("  failed: %v", err)
		default:
			results = append(results, result)
			if o.Output == "markdown" {
				continue
			}
			if err := result.write(w, o.Output); err != nil {
				return err
			}
		}
	}
	if o.Output == "markdown" {
		writeMarkdown(w, results, append(unfit, failed...))
	}
	return errors.Join(failed...)
}

// Measure runs one workload; progress is told in lines.
func Measure(ctx context.Context, o Options, name string, say func(string, ...any)) (*Result, error) {
	w, err := Load(o.Dir, name)
	if err != nil {
		return nil, err
	}
	w.limit(o.Pods)
	if o.Mode == decideMode {
		if _, err := w.scene(); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errUnfit, name, err)
		}
	}
	r := newResult(w.Name, o.Mode)
	r.Threshold, r.Gates = w.Threshold, o.Gates
	if o.Mode == clusterMode && !o.NoCeiling {
		say("measuring the ceiling: a client that binds without deciding")
		ceiling, err := measureCeilings(ctx, w)
		if err != nil {
			return nil, fmt.Errorf("the binding ceiling: %w", err)
		}
		r.BindCeiling, r.CreateBindCeiling = ceiling.bind, ceiling.createBind
		say("  %.0f bindings/s; %.0f pods/s created and bound", ceiling.bind, ceiling.createBind)
	}
	for n := range o.Runs {
		for _, scheduler := range o.Schedulers {
			say("turn %d of %d: %s", n+1, o.Runs, scheduler)
			run, err := one(ctx, o, w, scheduler)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", scheduler, err)
			}
			say("  %.0f pods/s, %.4f ms of CPU per pod", run.PodsPerSecond, run.CPUMillisPerPod)
			r.Runs = append(r.Runs, *run)
		}
	}
	r.finish()
	return r, nil
}

func one(ctx context.Context, o Options, w *Workload, scheduler string) (*Run, error) {
	if o.Mode == clusterMode {
		return runCluster(ctx, o, w, scheduler)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	t := turn{Scheduler: scheduler, Workload: w.Name, Dir: dir, Pods: o.Pods}
	if scheduler == Berth {
		t.CPUProfile, t.MemProfile = o.CPUProfile, o.MemProfile
	} else {
		t.Gates = o.Gates
	}
	run := &Run{}
	return run, t.in(ctx, run)
}
