package attack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// The bounds that no attack may break.
const (
	mostMemory = 512 << 20              // of the daemon above what it took before, and of a call of the tool, in bytes
	mostHeld   = 100 * time.Millisecond // of the scheduling loop, by one step
	mostAnswer = 60 * time.Second       // of a call of the tool
	mostLive   = 10 * time.Second       // of an answer of /livez
	mostProbe  = 10 * time.Second       // from a small pod's creation to its binding
)

// killAt is the memory at which the daemon is killed, killCallAt that of a call of the
// tool, of which several are under way, in bytes.
const killAt, killCallAt = 3 << 30, 1 << 30

// playTime is how long an attack may take.
const playTime = 3 * time.Minute

// Attack is one attack.
type Attack struct {
	Name  string // TOPIC/NAME
	Title string // what it plays
	Short bool   // part of the short form
	Quiet bool   // nothing else happens in the cluster while it is played
	// start returns how the daemon is started; nil: the attack is on the tool alone.
	start func(*stage) cluster.SchedulerOptions
	// prepare makes what the attack needs, before the daemon's memory is taken as the
	// base; nil: nothing.
	prepare func(*stage)
	play    func(*stage)
}

// All are the attacks in the order in which they are played.
var All = slices.Concat(endpointAttacks, objectAttacks, largeAttacks(), extenderAttacks, serverAttacks, daemonAttacks, fileAttacks, configAttacks, machineAttacks)

// plain starts a daemon as it is.
func plain(*stage) cluster.SchedulerOptions { return cluster.SchedulerOptions{} }

// Result is what came of an attack.
type Result struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// NotPlayed says why the attack could not be played here.
	NotPlayed string `json:"notPlayed,omitempty"`
	// Broken are the bounds that did not hold.
	Broken  []string `json:"broken,omitempty"`
	Seconds float64  `json:"seconds"`
	// Memory of the daemon before the attack and at most, in MiB; 0 without a daemon.
	BaseMiB float64 `json:"baseMiB,omitempty"`
	PeakMiB float64 `json:"peakMiB,omitempty"`
	// Longest step of the daemon's loop, in milliseconds.
	HeldMS float64 `json:"heldMS,omitempty"`
	// From a small pod's creation to its binding, in milliseconds: usually, and at most
	// in the attack.
	UsualMS float64 `json:"usualMS,omitempty"`
	ProbeMS float64 `json:"probeMS,omitempty"`
	// The most memory that a call of the tool took, in MiB, and the longest call.
	ToolMiB     float64 `json:"toolMiB,omitempty"`
	ToolSeconds float64 `json:"toolSeconds,omitempty"`
	// heldAlone: the only bound that broke is the one on the loop's steps.
	heldAlone bool
}

// Options are the flags of `berth-lab attack`.
type Options struct {
	Only   string // matches names; empty: all
	Short  bool
	Nodes  int
	Dir    string // of the control plane, which keeps the logs; empty: a temporary one
	Daemon string // the berth-scheduler; empty: the one beside the running executable
	Tool   string // berth; empty: likewise
}

// chosen returns the attacks that the options name.
func (o Options) chosen() ([]Attack, error) {
	only, err := regexp.Compile(o.Only)
	if err != nil {
		return nil, fmt.Errorf("--only %s: %w", o.Only, err)
	}
	var chosen []Attack
	for _, a := range All {
		if only.MatchString(a.Name) && (a.Short || !o.Short) {
			chosen = append(chosen, a)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("--only %s: no attack has such a name; --list shows them", o.Only)
	}
	return chosen, nil
}

func (o Options) validate() error {
	if o.Nodes < 1 || o.Nodes > 5000 {
		return fmt.Errorf("--nodes %d: must be between 1 and 5000", o.Nodes)
	}
	if _, err := o.chosen(); err != nil {
		return err
	}
	return cluster.SchedulerOptions{Kind: cluster.Berth, Binary: o.Daemon}.Check()
}

// Run plays the chosen attacks on a control plane of its own and tells each result as
// it comes.
func Run(ctx context.Context, o Options, tell func(Result)) (err error) {
	chosen, err := o.chosen()
	if err != nil {
		return err
	}
	l, err := newLab(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for _, a := range chosen {
		r, err := l.play(ctx, a)
		if err == nil && r.heldAlone {
			// Another process of the machine may have held the loop up: a step that is too
			// long by itself is so again.
			r, err = l.play(ctx, a)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
		tell(r)
	}
	return nil
}

// write prints a result in a line, and a line for each bound that broke.
func (r Result) write(w io.Writer) {
	verdict := "holds"
	switch {
	case r.NotPlayed != "":
		verdict = "not played: " + r.NotPlayed
	case len(r.Broken) > 0:
		verdict = "BROKEN"
	}
	fmt.Fprintf(w, "%-26s %5.1f s", r.Name, r.Seconds)
	if r.BaseMiB > 0 {
		fmt.Fprintf(w, "  daemon %4.0f MiB +%4.0f  longest step %5.1f ms  pod bound in %4.0f ms, usually %3.0f",
			r.BaseMiB, r.PeakMiB-r.BaseMiB, r.HeldMS, r.ProbeMS, r.UsualMS)
	}
	if r.ToolMiB > 0 {
		fmt.Fprintf(w, "  tool %4.0f MiB, %4.1f s", r.ToolMiB, r.ToolSeconds)
	}
	fmt.Fprintf(w, "  %s\n", verdict)
	for _, b := range r.Broken {
		fmt.Fprintf(w, "    %s\n", b)
	}
}

// play plays an attack in a directory of its own.
func (l *lab) play(ctx context.Context, a Attack) (r Result, err error) {
	dir, err := os.MkdirTemp("", "berth-attack-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	s := &stage{ctx: ctx, lab: l, dir: dir, result: Result{Name: a.Name, Title: a.Title}}
	began := time.Now()
	err = s.run(a)
	s.result.Seconds = time.Since(began).Seconds()
	return s.result, err
}
