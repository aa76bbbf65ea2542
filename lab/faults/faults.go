package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// Fault is one of kube-scheduler.
type Fault struct {
	Name  string // R1 to R5
	Title string
	play  func(*stage) Outcome
}

// All are the faults in the order of their names.
var All = []Fault{
	{"R1", "a namespace's labels change for pods with a namespaceSelector", namespaceLabels},
	{"R2", "partners come and go in namespaces that a namespaceSelector selects", partners},
	{"R3", "the last of a group goes, and a pod that waits could be the first again", firstOfGroup},
	{"R4", "the reply to a binding is lost while the watch lags", lostReply},
	{"R5", "victims of a preemption over a ReadWriteOncePod claim go one by one", preemption},
}

// Outcome is what one scheduler did in a story.
type Outcome struct {
	Shown bool // the fault is there
	What  string
}

// Result is a fault with what the two schedulers did.
type Result struct {
	Fault
	Kube, Berth Outcome
}

// Met: kube-scheduler has the fault and Berth has not.
func (r Result) Met() bool { return r.Kube.Shown && !r.Berth.Shown }

// Options are the flags of `berth-lab faults`.
type Options struct {
	Only   []string // names; none: all
	Binary string   // the berth-scheduler; empty: the one beside the running executable
}

// chosen are the faults that the options name.
func (o Options) chosen() ([]Fault, error) {
	for _, name := range o.Only {
		if !slices.ContainsFunc(All, func(f Fault) bool { return f.Name == name }) {
			return nil, fmt.Errorf("--only %s: there are R1 to R%d", name, len(All))
		}
	}
	return slices.DeleteFunc(slices.Clone(All), func(f Fault) bool {
		return len(o.Only) > 0 && !slices.Contains(o.Only, f.Name)
	}), nil
}

// Run plays the chosen faults with kube-scheduler, then with Berth, on a control
// plane of its own. What happens is told to progress as it does.
func Run(ctx context.Context, progress io.Writer, o Options) (results []Result, err error) {
	chosen, err := o.chosen()
	if err != nil {
		return nil, err
	}
	if err := (cluster.SchedulerOptions{Kind: cluster.Berth, Binary: o.Binary}).Check(); err != nil {
		return nil, err
	}
	c, err := cluster.Start(ctx, cluster.Options{WithoutKWOK: true, WithoutControllers: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for _, fault := range chosen {
		fmt.Fprintf(progress, "%s: %s\n", fault.Name, fault.Title)
		result := Result{Fault: fault}
		for _, turn := range []struct {
			kind    string
			outcome *Outcome
		}{{cluster.KubeScheduler, &result.Kube}, {cluster.Berth, &result.Berth}} {
			if *turn.outcome, err = play(ctx, c, fault, turn.kind, o.Binary); err != nil {
				return results, fmt.Errorf("%s with %s: %w", fault.Name, turn.kind, err)
			}
			fmt.Fprintf(progress, "  %s: %s\n", turn.kind, turn.outcome.What)
		}
		results = append(results, result)
	}
	return results, nil
}

// write is the table of results.
func write(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "FAULT\tWHAT HAPPENS\tKUBE-SCHEDULER %s\tBERTH\n", cluster.KubernetesVersion)
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.Name, r.Title, r.Kube.What, r.Berth.What)
	}
	return t.Flush()
}
