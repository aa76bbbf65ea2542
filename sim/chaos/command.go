package chaos

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/untrusted"
	"github.com/berth-scheduler/berth/sim/scenario"
)

const long = `Run whole schedulers, one to three replicas of them, over an API server in
memory under a virtual clock. Each seed makes a small cluster, things that happen
in it, and faults: lost requests and replies, hangs, errors, watches that freeze
or end, stale lists, crashes, stops, a restored backup.

Some things must always hold: no scheduler over-commits a node by what it knows;
none sends two bindings of a pod at once, writes without the lease, or watches on
where a read showed that history went back; a victim has a lower priority; all
invariants of the scheduler hold after each step. When the faults are over, the
cluster has to come to rest within three minutes of its clock: each pod that fits is
bound, nothing is nominated or assumed, each scheduler knows what the API server
knows. Nothing may change then.

With groups, no gang that lost none of its pods is bound in part. With quotas, none
is exceeded, none lends what its min guarantees to who asks, and each status is true.

A seed that fails is cut down to a story, which is printed. --story plays it. The
exit status is 1 if a seed or the story fails. The same seed gives the same run.`

// NewCommand is the command sim.
func NewCommand() *cobra.Command {
	seeds, file, verbose, whole := "1-300", "", false, false
	var add []string
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Run whole schedulers under a virtual clock, with faults that a seed decides",
		Long:  long,
		Example: `  berth-lab sim --seeds 1-1000
  berth-lab sim --seeds 17 --verbose
  berth-lab sim --seeds 1-200 --with devices,extenders
  berth-lab sim --seeds 1-10000 --with groups,quotas
  berth-lab sim --story failing.txt --verbose`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := parseWith(add)
			if err != nil {
				return err
			}
			stories, err := storiesOf(seeds, file, w)
			if err != nil {
				return err
			}
			o := Options{}
			if verbose {
				o.Log, o.Verbosity = cmd.OutOrStdout(), 2
			}
			return inTest(func(t *testing.T) error { return campaign(t, stories, o, whole, cmd.OutOrStdout()) })
		},
	}
	cmd.Flags().StringVar(&seeds, "seeds", seeds, "seeds to run: one (17), or a range (1-1000)")
	cmd.Flags().StringVar(&file, "story", file, "play the story in this file instead")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", verbose, "print what happens, and the logs of the schedulers")
	cmd.Flags().StringSliceVar(&add, "with", nil, "other stories of the seeds, which have this besides: "+strings.Join(additions, ", "))
	cmd.Flags().BoolVar(&whole, "whole", whole, "print a story that fails as it is, without cutting it down")
	return cmd
}

// inTest runs f as a test, which a bubble of virtual time needs, and ends the
// process with it.
func inTest(f func(*testing.T) error) error {
	testing.Init()
	Prepare()
	if err := flag.CommandLine.Parse(nil); err != nil { // the flags of tests have their defaults
		return err
	}
	testing.Main(func(_, _ string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "sim", F: func(t *testing.T) {
		if err := f(t); err != nil {
			fmt.Fprintln(terminal.NewWriter(os.Stderr), "berth-lab:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}}}, nil, nil)
	return errors.New("the simulation did not run")
}

func storiesOf(seeds, file string, w with) ([]*scenario.Story, error) {
	if file != "" {
		text, err := untrusted.File(file, untrusted.Config)
		if err != nil {
			return nil, err
		}
		s, err := scenario.Parse(file, string(text))
		return []*scenario.Story{s}, err
	}
	first, last, isRange := strings.Cut(seeds, "-")
	from, err := strconv.ParseUint(first, 10, 32)
	to := from
	if err == nil && isRange {
		to, err = strconv.ParseUint(last, 10, 32)
	}
	if err != nil || to < from {
		return nil, fmt.Errorf("--seeds %s: want a number, or a range such as 1-1000", seeds)
	}
	var stories []*scenario.Story
	for seed := from; seed <= to; seed++ {
		stories = append(stories, generate(seed, w))
	}
	return stories, nil
}

// campaign plays the stories and prints those that fail.
func campaign(t *testing.T, stories []*scenario.Story, o Options, whole bool, out io.Writer) error {
	begin, failed, bindings := time.Now(), 0, 0
	happened := map[string]int{}
	var virtual time.Duration
	for _, s := range stories {
		r, err := Run(t, s, o)
		if err != nil {
			return err
		}
		bindings += r.Bindings
		virtual += r.Virtual
		for does, n := range r.Faults { // any order: sums
			happened[does] += n
		}
		if len(r.Breaches) == 0 {
			continue
		}
		failed++
		fmt.Fprintf(out, "%s fails: %s\n", s.File, r.Breaches[0])
		if !whole {
			s = Shrink(s, func(s *scenario.Story) bool {
				r, err := Run(t, s, Options{})
				return err == nil && len(r.Breaches) > 0
			})
		}
		fmt.Fprintf(out, "%s\n", scenario.Block(Write(s)))
	}
	fmt.Fprintf(out, "%d runs, %d failed; %s of virtual time in %s; %d bindings", len(stories), failed,
		virtual.Round(time.Second), time.Since(begin).Round(time.Second), bindings)
	for _, does := range slices.Sorted(maps.Keys(happened)) {
		fmt.Fprintf(out, ", %s %d", does, happened[does])
	}
	fmt.Fprintln(out)
	if failed > 0 {
		return fmt.Errorf("%d of %d runs failed", failed, len(stories))
	}
	return nil
}
