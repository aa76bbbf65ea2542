package conform

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-scheduler/berth/core/framework"
	pluginnames "github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/lab/oracle"
	"github.com/berth-scheduler/berth/sim/generate"
	"github.com/berth-scheduler/berth/sim/scenario"
)

// unknownUpstream are plugins and settings that kube-scheduler does not have: a story with one is
// not compared.
var unknownUpstream = []string{pluginnames.CapacityScheduling, pluginnames.Coscheduling, framework.PreemptionBudgets}

// playStories plays every story below a directory on both sides, and says where
// they part without a mark, or where a mark is stale.
func playStories(dir string, out io.Writer) error {
	var total storyCounts
	faults, wrong := 0, 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".txt" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		counts, said := compareStory(path, string(text))
		total.add(counts)
		for _, line := range said {
			fmt.Fprintln(out, line)
		}
		faults += len(said)
		wrong += min(1, len(said))
		return nil
	})
	if err != nil {
		return fmt.Errorf("--stories: %w", err)
	}
	if total.stories == 0 {
		return fmt.Errorf("--stories: %s holds no story", dir)
	}
	fmt.Fprintf(out, "stories: %d played, %d decisions and %d requeues compared (%d extra, %d in vain that Berth spares), %d intended differences, %d stories not compared, %d stories disagree\n",
		total.stories, total.decisions, total.requeues, total.extra, total.spared, total.marked, total.alone, wrong)
	if faults > 0 {
		return fmt.Errorf("Berth and kube-scheduler disagree in %d stories", wrong)
	}
	return nil
}

func (c *storyCounts) add(d storyCounts) {
	c.stories += d.stories
	c.decisions += d.decisions
	c.requeues += d.requeues
	c.extra += d.extra
	c.spared += d.spared
	c.marked += d.marked
	c.alone += d.alone
	c.places += d.places
	for r, n := range d.cycles { // any order: sums
		if c.cycles == nil {
			c.cycles = map[string]int{}
		}
		c.cycles[r] += n
	}
}

// compareStory plays one story. What it returns says, with file and line, where
// the sides part and where the story itself does not hold.
func compareStory(file, text string) (storyCounts, []string) {
	none := storyCounts{stories: 1}
	s, err := scenario.Parse(file, text)
	if err != nil {
		return none, []string{err.Error()}
	}
	var w generate.World
	if len(s.Steps) > 0 && s.Steps[0].Words[0] == "gates" {
		if w.Gates, err = gatesOf(s.Steps[0].Words[1:]); err != nil {
			return none, []string{fmt.Sprintf("%s:%d: %v", file, s.Steps[0].Line, err)}
		}
	}
	var asked *storyExtender
	for _, step := range s.Steps { // each stands before what happens
		switch {
		case step.Words[0] == "config":
			w.Config = step.Block
		case step.Words[0] == "extender" && asked == nil:
			asked = newStoryExtender()
			defer asked.Close()
		}
	}
	if asked != nil {
		if w.Config, err = asked.configured(w.Config); err != nil {
			return none, []string{fmt.Sprintf("%s: configuration: %v", file, err)}
		}
	}
	if slices.ContainsFunc(unknownUpstream, func(name string) bool { return strings.Contains(w.Config, name) }) {
		return storyCounts{stories: 1, alone: 1}, nil
	}
	upstream, err := oracle.New(w)
	if err != nil {
		return none, []string{fmt.Sprintf("%s: kube-scheduler: %v", file, err)}
	}
	defer upstream.Stop()
	follower := newFollower(upstream)
	follower.extender = asked
	follower.groups = w.Gates[string(features.GenericWorkload)]
	err = s.Play(scenario.Engine{Seed: 1, Workers: 1, Observe: follower.observe, Watch: follower})
	follower.fail()
	var said []string
	for _, f := range follower.faults {
		said = append(said, file+":"+f)
	}
	if err == nil && follower.err != nil {
		err = fmt.Errorf("%s: %w", file, follower.err)
	}
	if err != nil {
		said = append(said, err.Error())
	}
	follower.counts.stories = 1
	return follower.counts, said
}

// gatesOf is what gates a story sets; that there are such is looked up first, for
// kube-scheduler is told without asking.
func gatesOf(words []string) (map[string]bool, error) {
	gates := map[string]bool{}
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		on, err := strconv.ParseBool(value)
		if err != nil {
			return nil, fmt.Errorf("%q: want NAME=true or NAME=false", w)
		}
		gates[name] = on
	}
	known := features.New()
	return gates, errors.Join(known.SetEmulationVersion(oracle.Emulated(gates)), known.SetFromMap(gates))
}
