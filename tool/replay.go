package tool

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/why"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/replay"
)

// replaying is what the flags of `berth replay` say.
type replaying struct {
	config  string
	seed    uint64
	seeded  bool // --seed is given
	output  string
	workers int
	plugins *sim.Plugins
	own     []string
}

const replayLong = `Replay a record of a scheduler's inputs, made by "berth-scheduler --record-to" or
"berth record". Nothing is asked of any cluster.

Without --config and --seed the command takes the scheduler's own steps and
compares each decision, and each other effect, with what was recorded. They are
the same unless this berth decides otherwise than the one that recorded, as it
may if that followed another minor version of Kubernetes.

With --config or --seed, and for a record of "berth record", the nodes, the pods
and all other objects come and go as in the record, at their times, and a virtual
cluster does at once what the scheduler decides. Pods end when they did.

Exit status: 0 if all decisions are the same (or a configuration was tried), 1 if
some are different, 2 if the record or the call is not valid.`

const replayExamples = `  # Does this version decide as the one that recorded did?
  %[1]s replay /var/lib/berth/record

  # Every decision, for a script
  %[1]s replay record/ -o json | jq -r '.decisions[] | select(.result == "Unschedulable") | .pod'

  # What would another configuration have done?
  %[1]s replay record/ --config new.yaml

  # How much is due to the draw among equal nodes?
  %[1]s replay record/ --seed 7`

func newReplay(name string, own *sim.Plugins) *cobra.Command {
	r := replaying{plugins: own, workers: runtime.GOMAXPROCS(0)}
	cmd := &cobra.Command{
		Use:     "replay DIR",
		Short:   "Replay a record of a scheduler's inputs",
		Long:    replayLong,
		Example: fmt.Sprintf(replayExamples, name),
		Args:    oneRecord,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.seeded = cmd.Flags().Changed("seed")
			return r.run(args[0], cmd)
		},
	}
	cmd.Flags().StringVar(&r.config, "config", "", "KubeSchedulerConfiguration file to try; default: the record's own configuration")
	cmd.Flags().Uint64Var(&r.seed, "seed", 0, "seed of the draw among nodes with the same score; default: the record's own seed")
	cmd.Flags().StringSliceVar(&r.own, "plugins", nil, pluginsUsage)
	addOutput(cmd, &r.output, "", "table", "wide", "json")
	return cmd
}

func oneRecord(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("give one directory with a record")
	}
	return nil
}

func (r *replaying) run(dir string, cmd *cobra.Command) error {
	log, err := recording.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	out := bufio.NewWriterSize(cmd.OutOrStdout(), 1<<16)
	if r.config != "" || r.seeded || log.Header().Source == recording.Watch {
		err = r.changed(log, out, cmd.ErrOrStderr())
	} else {
		err = r.exact(log, out, cmd.ErrOrStderr())
	}
	notes(cmd.ErrOrStderr(), log.Notes)
	return errors.Join(out.Flush(), err)
}

// exact replays the scheduler's own steps.
func (r *replaying) exact(log *recording.Reader, out, stderr io.Writer) error {
	decisions := []replay.Attempt{}
	var decided func(replay.Attempt)
	if r.output == "json" {
		decided = func(d replay.Attempt) { decisions = append(decisions, d) }
	}
	x, err := replay.Exact(log, r.workers, decided)
	if x.Steps > 0 || err == nil {
		if r.output == "json" {
			err = errors.Join(err, writeJSON(out, "ReplayResult", struct {
				*replay.Exactly
				Decisions []replay.Attempt `json:"decisions"`
			}{x, decisions}))
		} else {
			x.Write(out)
		}
	}
	if err != nil || x.Different == 0 {
		return err
	}
	h := log.Header()
	notes(stderr, otherRules(&h))
	return exitStatus(1)
}

// otherRules returns a note if the recorded decisions followed another Kubernetes.
func otherRules(h *recording.Header) []string {
	if o := h.Origin(); o != "" && h.Source == recording.Scheduler {
		return []string{o + ": it may decide otherwise where the rules changed"}
	}
	return nil
}

// changed replays what came from outside, under another configuration or seed.
func (r *replaying) changed(log *recording.Reader, out, stderr io.Writer) error {
	header := log.Header()
	text, err := configText("--config", r.config)
	if err != nil {
		return err
	}
	p, err := playWith(&header, r.config, text, r.plugins, r.own)
	if err != nil {
		return err
	}
	notes(stderr, p.notes)
	name := recordsConfiguration
	if r.config != "" {
		name = r.config
	}
	if r.seeded {
		p.options.Seed = r.seed
		name = fmt.Sprintf("%s, seed %d", name, r.seed)
	}
	p.options.Workers = r.workers
	day, err := replay.Run(log, p.served(), p.options, p.scheduler)
	if err != nil {
		return err
	}
	c := replay.ChangedOf(name, day)
	if r.output == "json" {
		return writeJSON(out, "ReplayResult", c)
	}
	return c.Write(out, r.output == "wide")
}

const recordsConfiguration = "the record's configuration"

// playing is what a record is played with.
type playing struct {
	scheduler *sim.Scheduler
	options   machine.Options
	recorded  []string // the names of the record's own profiles, as far as they are known
	notes     []string // about what is not as recorded or configured
}

// served returns the names of the schedulers whose pods are decided on: of the record's own
// profiles and of those that are tried.
func (p *playing) served() []string {
	names := slices.Clone(p.recorded)
	for _, profile := range p.options.Profiles {
		names = append(names, profile.Name)
	}
	return names
}

// playWith returns what plays a record with the configuration of the file, under the
// record's feature gates and with its seed; without a file, with the record's configuration.
func playWith(h *recording.Header, file string, text []byte, own *sim.Plugins, others []string) (*playing, error) {
	gates := features.New()
	if err := gates.SetFromMap(h.FeatureGates); err != nil {
		return nil, h.Refusal(fmt.Errorf("%s: the record's feature gates: %w", h.Path, err))
	}
	p, of := &playing{notes: otherRules(h)}, recordsConfiguration
	c, err := config.With(gates).Decode([]byte(h.Config), of)
	switch {
	case err == nil:
		for i := range c.Profiles {
			p.recorded = append(p.recorded, *c.Profiles[i].SchedulerName)
		}
	case file == "":
		return nil, h.Refusal(fmt.Errorf("%s: %w", h.Path, err))
	default:
		p.notes = append(p.notes, fmt.Sprintf("the names of the recorded profiles are not known, so only pods of the profiles that are tried are decided on: %s", err))
	}
	if file != "" {
		of = file
		if c, err = config.With(gates).Decode(text, file); err != nil {
			return nil, err
		}
	}
	if p.scheduler, p.options, err = schedulerOf(c, gates, own, others); err != nil {
		return nil, fmt.Errorf("%s: %w", of, err)
	}
	p.notes = append(p.notes, absences(p.scheduler)...)
	p.options.Seed = h.Seed
	if file == "" && h.MaxUnschedulable != 0 {
		p.options.MaxUnschedulable = h.MaxUnschedulable
	}
	return p, nil
}

// writeJSON writes a result as the other commands do.
func writeJSON(out io.Writer, kind string, result any) error {
	body, err := json.Marshal(result)
	if err != nil {
		return err
	}
	_, err = terminal.Fprintf(out, `{"apiVersion":%q,"kind":%q,%s`+"\n", why.APIVersion, kind, body[1:])
	return err
}
