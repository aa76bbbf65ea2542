package conform

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/lab/oracle"
	"github.com/berth-scheduler/berth/sim/generate"
)

const (
	// maxShown is how many disagreements of a mix are shrunk and printed.
	maxShown = 3
	// maxSeeds is how many worlds of a mix one run may play.
	maxSeeds = 1_000_000
	// storiesHere is where the project keeps its stories.
	storiesHere = "scenarios"
	// quiet is how long nothing is said of a mix that is played.
	quiet = 10 * time.Second
)

const long = `Compare Berth's decisions with kube-scheduler, decision by decision.

Both sides get the same generated worlds: a cluster, pods in order, and changes
in between. The command compares the feasible nodes, the first plugin that
rejects each other node with its code and reasons, the normalised scores of every
plugin, the choice among the best nodes, preemptions, messages, the waiting pods
that a change requeues, and the order of the queue. A mix is a choice of subjects
that its worlds vary. A seed makes the same world on every machine.

The stories of scenarios/ are also played on both sides, step by step, with the
same comparison, but for those of quotas and of Coscheduling, which kube-scheduler does not know.
A story marks an intended difference ("differs"). A mark without
a difference is an error. The run includes the stories if neither --mix nor
--stories is given and the current directory has a directory scenarios.

The first disagreements of each mix are shrunk to the smallest case. They are
written as stories (scenarios/README.md) that expect what kube-scheduler says.

With --hosted, kube-scheduler's own plugins run in Berth, unmodified, in place of
the native ones: those that are named, or all. With --feature-gates, both sides run
under these gates; a mix that has gates of its own keeps them. The stories are left
out then, and so is the mix groups, whose worlds are stories at random.

The exit status is 1 if there is any disagreement. docs/conformance.md says more.`

const examples = `  berth-lab conform                          # the stories, and all mixes with seeds
                                             # 1-600: some minutes
  berth-lab conform --seeds 1-50             # a sample
  berth-lab conform --mix taints,images      # some of the mixes
  berth-lab conform --mix all --seeds 17     # one world
  berth-lab conform --stories scenarios      # the stories alone
  berth-lab conform --stories scenarios/queue/flush.txt
  berth-lab conform --hosted all --seeds 1-20  # kube-scheduler's own plugins in Berth
  berth-lab conform --feature-gates DRADeviceTaints=false --mix devices
  berth-lab conform --out scenarios/found    # write disagreements there;
                                             # go test ./sim/scenario plays them`

// NewCommand is "berth-lab conform".
func NewCommand() *cobra.Command {
	seeds, mix, dir, stories, hosted, gates, brief := "1-600", "", "", "", "", "", false
	cmd := &cobra.Command{
		Use:     "conform",
		Short:   "Compare Berth's decisions with kube-scheduler, decision by decision",
		Long:    long,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			first, last, err := span(seeds)
			if err != nil {
				return err
			}
			mixes, err := chosen(mix)
			if err != nil {
				return err
			}
			flips, err := parseGates(gates)
			if err != nil {
				return err
			}
			if hosted != "" || gates != "" { // those of its stories count
				mixes = slices.DeleteFunc(mixes, func(m string) bool { return m == groupsMix })
				if len(mixes) == 0 {
					return fmt.Errorf("--mix %s has gates and plugins of its own", groupsMix)
				}
			}
			start := Start(Berth)
			if hosted != "" {
				names, err := hostedNames(hosted)
				if err != nil {
					return err
				}
				start = Hosted(names...)
			}
			silence()
			alone := stories != "" && mix == "" && !cmd.Flags().Changed("seeds")
			if _, err := os.Stat(storiesHere); stories == "" && mix == "" && hosted == "" && gates == "" && err == nil {
				stories = storiesHere
			}
			var told error
			if stories != "" {
				told = playStories(stories, cmd.OutOrStdout())
			}
			if alone {
				return told
			}
			c := comparison{mixes: mixes, gates: flips, first: first, last: last, berth: start,
				out: cmd.OutOrStdout(), progress: cmd.ErrOrStderr(), dir: dir, brief: brief}
			return errors.Join(told, c.run())
		},
	}
	cmd.Flags().StringVar(&seeds, "seeds", seeds, "seeds of the worlds, A-B or one number")
	cmd.Flags().StringVar(&mix, "mix", mix, "mixes of the worlds, separated by commas; \"all\" is one of them, which varies all subjects at once; default: every mix: "+strings.Join(playable(), ", "))
	cmd.Flags().StringVar(&dir, "out", dir, "directory for the stories of disagreements, one file each; default: standard output")
	cmd.Flags().StringVar(&hosted, "hosted", hosted, `plugins of kube-scheduler's own that Berth hosts, separated by commas, or "all"`)
	cmd.Flags().StringVar(&gates, "feature-gates", gates, "feature gates of both sides, NAME=true,NAME=false")
	cmd.Flags().BoolVar(&brief, "brief", brief, "print only the first disagreement of each mix, in one line")
	cmd.Flags().StringVar(&stories, "stories", stories, "file or directory of stories to play; worlds are played too only if --mix or --seeds is given")
	return cmd
}

func allMixes() []string { return slices.Concat(generate.Mixes(), generate.GateMixes()) }

// playable lists the mixes of worlds, and that of stories.
func playable() []string { return append(allMixes(), groupsMix) }

// chosen reads mixes separated by commas.
func chosen(mix string) ([]string, error) {
	if mix == "" {
		return playable(), nil
	}
	mixes := strings.Split(mix, ",")
	for _, m := range mixes {
		if !slices.Contains(playable(), m) {
			return nil, fmt.Errorf("--mix: no mix %q (there are %s)", m, strings.Join(playable(), ", "))
		}
	}
	return mixes, nil
}

// parseGates reads gates separated by commas, and refuses what Berth refuses.
func parseGates(text string) (map[string]bool, error) {
	if text == "" {
		return nil, nil
	}
	set, err := gatesOf(strings.Split(text, ","))
	if err == nil {
		gates := features.New()
		err = errors.Join(gates.SetEmulationVersion(oracle.Emulated(set)), gates.SetFromMap(set), errors.Join(features.Unsupported(gates)...))
	}
	if err != nil {
		return nil, fmt.Errorf("--feature-gates: %w", err)
	}
	return set, nil
}

// silence keeps the logs of the linked kube-scheduler out of the report.
func silence() { klog.SetSlogLogger(slog.New(slog.DiscardHandler)) }

// span reads "A-B" or "A".
func span(s string) (first, last uint64, err error) {
	a, b, ranged := strings.Cut(s, "-")
	if !ranged {
		b = a
	}
	first, err = strconv.ParseUint(a, 10, 64)
	if err == nil {
		last, err = strconv.ParseUint(b, 10, 64)
	}
	if err != nil || last < first {
		return 0, 0, fmt.Errorf("--seeds %q: want A-B with A no larger than B, or one number", s)
	}
	if last-first >= maxSeeds {
		return 0, 0, fmt.Errorf("--seeds %q: more than %d worlds", s, maxSeeds)
	}
	return first, last, nil
}

// comparison is one run of the command.
type comparison struct {
	mixes         []string
	gates         map[string]bool // beside those of the mixes
	first, last   uint64
	berth         Start
	out, progress io.Writer
	dir           string // for stories; "": they go to out
	brief         bool   // no stories
}

// run plays every mix with every seed and fails if the sides ever part.
func (c *comparison) run() error {
	parted := 0
	for _, mix := range c.mixes {
		if mix == groupsMix {
			n, err := c.playGroups()
			if parted += n; err != nil {
				return err
			}
			continue
		}
		if c.brief {
			d, err := c.firstApart(mix)
			if err != nil {
				return err
			}
			if d != nil {
				parted++
				fmt.Fprintf(c.out, "%s, seed %d: %s\n", mix, d.World.Seed, d.Diffs[0])
			}
			continue
		}
		start := time.Now()
		counts, apart, err := playAll(mix, c.gates, c.first, c.last, c.berth, c.report(mix))
		if err != nil {
			return err
		}
		fmt.Fprintln(c.out, summary(mix, counts, len(apart), time.Since(start)))
		parted += len(apart)
		for _, d := range apart[:min(maxShown, len(apart))] {
			if err := c.write(Shrink(d, c.berth)); err != nil {
				return err
			}
		}
	}
	if parted > 0 {
		return fmt.Errorf("Berth and kube-scheduler disagree in %d worlds", parted)
	}
	return nil
}

// firstApart plays worlds of a mix until the sides part.
func (c *comparison) firstApart(mix string) (*Disagreement, error) {
	for seed := c.first; seed <= c.last; seed++ {
		w, err := cluster(mix, c.gates, seed)
		if err != nil {
			return nil, err
		}
		if _, d := Compare(w, c.berth); d != nil {
			return d, nil
		}
	}
	return nil, nil
}

// report says now and then how far a mix is.
func (c *comparison) report(mix string) func(done int) {
	var mutex sync.Mutex
	said := time.Now()
	return func(done int) {
		mutex.Lock()
		defer mutex.Unlock()
		if time.Since(said) >= quiet {
			said = time.Now()
			fmt.Fprintf(c.progress, "%s: %d of %d worlds\n", mix, done, c.last-c.first+1)
		}
	}
}

// write puts a disagreement where it belongs.
func (c *comparison) write(d *Disagreement) error {
	if c.dir == "" {
		return Print(c.out, d)
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	path := filepath.Join(c.dir, fmt.Sprintf("%s-%d.txt", d.World.Mix, d.World.Seed))
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if err := errors.Join(Print(f, d), f.Close()); err != nil {
		return fmt.Errorf("--out: %s: %w", path, err)
	}
	fmt.Fprintf(c.out, "  %s: %s\n", path, d.Diffs[0])
	return nil
}

func summary(mix string, c Counts, apart int, took time.Duration) string {
	return fmt.Sprintf("%s: %d worlds, %d decisions (%d scheduled, %d unschedulable, %d preempting, %d gated, %d errors), "+
		"%d requeues compared (%d extra, %d that kube-scheduler misses, %d in vain that Berth spares), %d worlds disagree; %.0f decisions/s",
		mix, c.Worlds, c.Decisions, c.Scheduled, c.Unschedulable, c.Preempted, c.Gated, c.Failed,
		c.Requeues, c.Extra, c.Missed, c.Spared, apart, float64(c.Decisions)/took.Seconds())
}

// cluster is the world of a mix under gates that are set beside its own.
func cluster(mix string, gates map[string]bool, seed uint64) (generate.World, error) {
	w, err := generate.Cluster(mix, seed)
	if len(gates) > 0 {
		all := maps.Clone(gates)
		maps.Copy(all, w.Gates)
		w.Gates = all
	}
	return w, err
}

// playAll plays the worlds of a mix on all processors and reports each.
// Disagreements come in the order of their seeds.
func playAll(mix string, gates map[string]bool, first, last uint64, berth Start, report func(done int)) (Counts, []*Disagreement, error) {
	type played struct {
		counts Counts
		apart  *Disagreement
		err    error
	}
	results := make([]played, last-first+1)
	var workers sync.WaitGroup
	var done atomic.Int64
	n := runtime.GOMAXPROCS(0)
	for worker := range n {
		workers.Go(func() {
			for i := worker; i < len(results); i += n {
				w, err := cluster(mix, gates, first+uint64(i))
				if err != nil {
					results[i].err = err
					continue
				}
				results[i].counts, results[i].apart = Compare(w, berth)
				report(int(done.Add(1)))
			}
		})
	}
	workers.Wait()
	var total Counts
	var apart []*Disagreement
	for _, r := range results {
		if r.err != nil {
			return total, nil, r.err
		}
		total.add(r.counts)
		if r.apart != nil {
			apart = append(apart, r.apart)
		}
	}
	return total, apart, nil
}
