package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/par"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/extender"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/edge/spelling"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/whatif"
)

// source says where a cluster and the configuration of its scheduler come
// from. Every command that looks at a cluster has its flags.
type source struct {
	files         []string
	api           connection
	reached       *rest.Config // the cluster of api; nil: not asked for yet
	config, gates string
	expand        string
	strict        bool
	seed          uint64
	workers       int
	fillBudgets   bool // as their controller would, where it has not
	askExtenders  bool
	profiles      []string     // the schedulerNames of the configuration, once it is loaded
	orElse        string       // what helps, too, if no profile has the schedulerName of a pod
	plugins       *sim.Plugins // that the tool was built with
	others        []string     // plugins that it was not built with
	// keepWritten keeps objects as they were written.
	keepWritten bool
	// redacted are the names that objects get; nil: their own.
	redacted *recording.Names
}

func newSource(own *sim.Plugins) source {
	return source{plugins: own, api: newConnection(), expand: "auto", seed: 1, workers: runtime.GOMAXPROCS(0)}
}

func (s *source) addFlags(f *pflag.FlagSet) {
	f.StringArrayVarP(&s.files, "filename", "f", nil, "file, directory or - (standard input) with the objects of the cluster; may be repeated")
	s.api.addFlags(f, "read the cluster from the API server of this kubeconfig; nothing is written; default without -f, and with --context, --cluster or --server: that of kubectl")
	f.StringVar(&s.config, "config", "", "KubeSchedulerConfiguration file; default: kube-scheduler's defaults")
	f.StringSliceVar(&s.others, "plugins", nil, pluginsUsage+"; a pod's last attempt alone tells of them")
	f.StringVar(&s.gates, "feature-gates", "", "the scheduler's feature gates, as its flag has them: NAME=true,NAME=false")
	f.StringVar(&s.expand, "expand", s.expand, "make the pods and claims that controllers make of workloads in files: auto (of workloads that have no pod in the input), true (of all, and claims of pods, until each has what it wants) or false")
	f.Lookup("expand").NoOptDefVal = "true"
	f.BoolVar(&s.strict, "strict", false, "refuse unknown fields, and read pods whole; by default such fields are left out and named on standard error, and of pods only what decisions depend on is read")
	f.Uint64Var(&s.seed, "seed", s.seed, "seed of the draw among nodes with the same score")
}

// expansions are the values of --expand.
var expansions = map[string]manifest.Expand{"auto": manifest.ExpandNew, "true": manifest.ExpandAll, "false": manifest.ExpandNone}

func (s *source) check() error {
	if slices.Contains(s.files, "") {
		return errors.New("--filename: is empty; give a file, a directory or -")
	}
	for _, name := range s.files {
		if _, err := os.Stat(name); err != nil && strings.Contains(name, ",") {
			return fmt.Errorf("--filename %s: %w; give a -f for each file", name, reasonOf(err))
		}
	}
	if _, ok := expansions[s.expand]; !ok {
		return fmt.Errorf("--expand %s: must be auto, true or false", s.expand)
	}
	return nil
}

// useless tells of flags that the others leave nothing to say.
func (s *source) useless(f *pflag.FlagSet) error {
	if len(s.files) == 0 {
		if err := given(f, "is about files; give some with -f", "strict", "expand"); err != nil {
			return err
		}
	}
	if !s.isLive() {
		return given(f, "goes with --kubeconfig or --context: the cluster comes from files here", connectionFlags()...)
	}
	return nil
}

// namesUsage is that of -n where it is about names in the call.
const namesUsage = "namespace of pods and workloads that are named without one; default: that of the context, or \"default\" with -f, or the only one that has such a name"

// names says in which namespace a name without one is looked for.
func (s *source) names() whatif.Names {
	n := whatif.Names{Namespace: s.api.given(), Only: s.api.given() != ""}
	if !n.Only && s.isLive() {
		n.Namespace = s.api.namespace()
	}
	return n
}

// readingAfter is when a person is told that a stream has not ended yet.
const readingAfter = 2 * time.Second

// load reads the configuration and the cluster. The set has the notices for
// the user.
func (s *source) load(ctx context.Context, stdin io.Reader, stderr io.Writer) (*manifest.Set, sim.Input, error) {
	c, scheduler, options, err := s.scheduler()
	if err != nil {
		return nil, sim.Input{}, err
	}
	set, err := s.read(ctx, scheduler.Hosts(), stdin, stderr)
	if err != nil {
		return nil, sim.Input{}, err
	}
	gates, err := gatesOf(s.gates, features.Unsupported)
	if err != nil {
		return nil, sim.Input{}, err
	}
	set.Notices = append(set.Notices, uncounted(set.Objects, gates, options.Profiles)...)
	set.Notices = append(set.Notices, absences(scheduler)...)
	in := input(set, s.workers)
	for _, p := range options.Profiles {
		s.profiles = append(s.profiles, p.Name)
	}
	in.Machine, in.Scheduler, in.NoProfile = options, scheduler, s.noProfile
	if n := len(c.Extenders); n > 0 && !s.askExtenders {
		set.Notices = append(set.Notices, fmt.Sprintf("%s: extenders: a simulation asks none of its extenders (%d)", s.config, n))
	} else if n > 0 {
		err = ask(ctx, &in, set, c)
	}
	return set, in, err
}

// noProfile says that the configuration is not that of the scheduler of a pod.
func (s *source) noProfile(schedulerName string) string {
	return fmt.Sprintf("no profile of the configuration used here (%s) has the schedulerName %q: give --config FILE of that scheduler%s%s",
		nameOf(s.config), schedulerName, s.orElse, spelling.Profile(schedulerName, s.profiles))
}

// ask has the run ask the extenders of the configuration. They are told of nodes
// and pods as the input has them.
func ask(ctx context.Context, in *sim.Input, set *manifest.Set, c *config.Config) error {
	x, err := extender.New(c.Extenders)
	if err != nil {
		return err
	}
	in.Machine.Extenders = x.Machine()
	in.Ask = func(e machine.CallExtender) machine.ExtenderReply { return x.Answer(ctx, e) }
	for i := range in.Nodes {
		in.Nodes[i].API = set.Nodes[i]
	}
	for i := range in.Pods {
		in.Pods[i].API = set.Pods[i]
	}
	return nil
}

// scheduler reads the configuration; without a path it is the default.
func (s *source) scheduler() (*config.Config, *sim.Scheduler, machine.Options, error) {
	gates, err := gatesOf(s.gates, features.Unsupported)
	if err != nil {
		return nil, nil, machine.Options{}, err
	}
	c := config.With(gates).Default()
	if s.config != "" {
		if c, err = loadConfig(config.With(gates), "--config", s.config); err != nil {
			return nil, nil, machine.Options{}, err
		}
	}
	scheduler, o, err := schedulerOf(c, gates, s.plugins, s.others)
	if err != nil {
		err = fmt.Errorf("%s: %w", s.config, err)
	}
	o.Seed, o.Workers = s.seed, s.workers
	return c, scheduler, o, err
}

// schedulerOf makes a scheduler of the configuration, with the plugins that the tool was
// built with and without those that only the scheduler has.
func schedulerOf(c *config.Config, gates featuregate.FeatureGate, own *sim.Plugins, others []string) (*sim.Scheduler, machine.Options, error) {
	if own == nil {
		own = &sim.Plugins{}
	}
	known := own.All()
	for name := range plugins.Registry(features.Plugins(gates)) { // any order: fills a map
		known[name] = true
	}
	absent := map[string]string{}
	for _, name := range others {
		if known[name] {
			return nil, machine.Options{}, fmt.Errorf("--plugins: this tool has %s; leave it out", name)
		}
		absent[name] = "this tool was not built with it"
	}
	s, o, err := sim.NewScheduler(c, gates, *own, absent)
	if err != nil {
		err = fmt.Errorf("%w%s", err, foreign(c, known))
	}
	return s, o, err
}

// absences are notes about the plugins of the configuration that are not asked here.
func absences(s *sim.Scheduler) (notes []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Absent)) {
		notes = append(notes, fmt.Sprintf("plugin %s of the configuration is not asked here: %s; what it says of a pod is known of the last attempt alone (the pod's condition)", name, s.Absent[name]))
	}
	return notes
}

// foreign says what to do about plugins of a configuration that the tool does not have, ""
// where it has all.
func foreign(c *config.Config, known map[string]bool) string {
	for _, p := range config.Profiles(c) {
		for _, set := range append(p.Points[:], p.MultiPoint) {
			for _, e := range set.Enabled {
				if !known[e.Plugin] {
					return fmt.Sprintf("; if your scheduler has it, build the tool with it (scheduler.NewToolCommand), go on without it (--plugins %s), or ask the scheduler (\"why POD --daemon auto\", \"events POD\")", e.Plugin)
				}
			}
		}
	}
	return ""
}

// isLive reports whether objects come from an API server. Without files, and without a
// flag that names a cluster, it is that of kubectl.
func (s *source) isLive() bool { return len(s.files) == 0 || s.api.namesCluster() }

// read reads the objects of the cluster.
func (s *source) read(ctx context.Context, hosts bool, stdin io.Reader, stderr io.Writer) (*manifest.Set, error) {
	set := manifest.NewSet()
	set.Strict, set.Expand, set.FillBudgets, set.KeepWritten = s.strict, expansions[s.expand], s.fillBudgets, s.keepWritten
	if s.redacted != nil {
		set.Redact = s.redacted.Redact
	}
	set.Trim = !s.strict && !s.askExtenders && !hosts // extenders and hosted plugins see whole pods
	set.KeepAPI = hosts
	set.Reading = func(name string) func() {
		late := time.AfterFunc(readingAfter, func() { terminal.Fprintf(stderr, "berth: note: still reading %s\n", name) })
		return func() { late.Stop() }
	}
	if s.isLive() {
		if err := s.live(ctx, set); err != nil {
			return nil, err
		}
	} else {
		set.Knows.Classes, set.Knows.Templates = true, true
	}
	if err := set.Files(s.files, stdin, s.workers); err != nil {
		return nil, err
	}
	return set, set.Resolve()
}

// input decodes the objects of the set.
func input(set *manifest.Set, workers int) sim.Input {
	in := sim.Input{
		Nodes: make([]*object.Node, len(set.Nodes)),
		Pods:  make([]*object.Pod, len(set.Pods)),
		Start: set.Newest.UTC(),

		Namespaces:     set.Namespaces,
		SelectorOwners: set.SelectorOwners,
		Objects:        set.Objects,
		Refused:        set.Refusals,
	}
	for i, n := range set.Nodes {
		in.Nodes[i] = set.DecodeNode(n)
	}
	for _, b := range set.Budgets {
		in.Budgets = append(in.Budgets, decode.Budget(b))
	}
	par.Rows(len(set.Pods), workers, 64, func(rows par.Range) {
		for i := rows.From; i < rows.To; i++ {
			in.Pods[i] = set.DecodePod(set.Pods[i])
		}
	})
	return in
}
