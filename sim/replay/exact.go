package replay

import (
	"fmt"
	"io"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/extender"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/sim"
)

// Log is where entries come from: a recording.Reader.
type Log interface {
	Next() (*recording.Entry, error)
}

// Options returns the options of the machine that the header tells of.
func Options(h *recording.Header) (machine.Options, error) {
	gates := features.New()
	if err := gates.SetFromMap(h.FeatureGates); err != nil {
		return machine.Options{}, h.Refusal(fmt.Errorf("%s: the record's feature gates: %w", h.Path, err))
	}
	c, err := config.With(gates).Decode([]byte(h.Config), h.Path+": the record's configuration")
	if err != nil {
		return machine.Options{}, h.Refusal(err)
	}
	o, err := sim.OptionsUnder(c, gates)
	if err != nil {
		return machine.Options{}, h.Refusal(fmt.Errorf("%s: the record's configuration: %w", h.Path, err))
	}
	o.Extenders, err = extenders(c)
	o.Seed, o.MaxUnschedulable = h.Seed, h.MaxUnschedulable
	if o.MaxUnschedulable == 0 {
		o.MaxUnschedulable = queue.DefaultMaxUnschedulable
	}
	return o, err
}

// Difference is a step of which something else came than the record says.
type Difference struct {
	Step     int       `json:"step"` // counted from one
	Time     time.Time `json:"time"`
	Event    string    `json:"event"`         // its type
	Pod      string    `json:"pod,omitempty"` // the first that was decided on otherwise
	Recorded string    `json:"recorded"`
	Replayed string    `json:"replayed"`

	kind string // of the event, without the package
}

// Attempt is an attempt, as the replay has it.
type Attempt struct {
	Time     time.Time       `json:"time"`
	Pod      string          `json:"pod"`
	Result   decision.Result `json:"result"`
	Node     string          `json:"node,omitempty"`
	Score    int64           `json:"score,omitempty"`
	Feasible int             `json:"feasible"`
	Attempt  int             `json:"attempt"`
}

// Exactly is what came of an exact replay.
type Exactly struct {
	Steps     int                     `json:"steps"`
	Runs      int                     `json:"runs"`
	Decisions int                     `json:"decisions"`
	Same      int                     `json:"same"` // decisions
	ByResult  map[decision.Result]int `json:"results"`
	// Different counts the steps of which something else came, First is the first.
	Different int         `json:"different"`
	First     *Difference `json:"firstDifference,omitempty"`
	// Unverified counts the decisions of runs that begin in the middle, up to the first
	// snapshot: how long each pod had waited then is not in the record. Notes say why a
	// snapshot was of no use.
	Unverified int           `json:"unverified"`
	Notes      []string      `json:"notes,omitempty"`
	From       time.Time     `json:"from"`
	To         time.Time     `json:"to"`
	Took       time.Duration `json:"-"`
}

// Exact takes the steps of the log and compares. decided, when set, gets each
// decision. An error of the log ends it; what came before is in the result.
func Exact(l Log, workers int, decided func(Attempt)) (*Exactly, error) {
	x := &exact{result: &Exactly{ByResult: map[decision.Result]int{}}, workers: workers, decided: decided}
	for {
		e, err := l.Next()
		if err == io.EOF {
			return x.result, nil
		}
		switch {
		case err != nil:
		case e.Begin != nil:
			err = x.begin(e.Begin)
		case e.Snapshot != nil:
			err = x.restore(e)
		default:
			x.step(e)
		}
		if err != nil {
			return x.result, err
		}
	}
}

type exact struct {
	result  *Exactly
	workers int
	decided func(Attempt)

	begun   *recording.Begin
	machine *machine.Machine
	digest  *recording.Digest
	exact   bool // the run can be compared from here on
}

// begin begins a run with a new machine.
func (x *exact) begin(b *recording.Begin) error {
	if b.Source != recording.Scheduler {
		return fmt.Errorf("the record is of a cluster without Berth: there are no decisions in it to compare with; give --config")
	}
	x.begun, x.digest, x.exact = b, recording.NewDigest(nil, !b.Redacted), b.Whole
	var err error
	if x.machine, err = x.newMachine(); err != nil {
		return err
	}
	for _, e := range b.Objects {
		x.machine.Step(b.Start, e)
	}
	if x.result.Runs++; x.result.Runs == 1 {
		x.result.From = b.Start
	}
	return nil
}

func (x *exact) newMachine() (*machine.Machine, error) {
	o, err := Options(&x.begun.Header)
	if err != nil {
		return nil, err
	}
	o.Workers = x.workers
	return machine.New(o), nil
}

// restore goes on with a machine that knows what the log says, where the one at hand
// does not know what was before the log.
func (x *exact) restore(e *recording.Entry) error {
	if x.exact {
		return nil
	}
	m, err := x.newMachine()
	if err != nil {
		return err
	}
	if err := restored(m, e); err != nil {
		x.result.Notes = append(x.result.Notes, fmt.Sprintf("%s: %v", e.Now.UTC().Format(time.RFC3339), err))
		return nil
	}
	x.machine, x.exact = m, true
	return nil
}

func restored(m *machine.Machine, e *recording.Entry) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("restoring the scheduler panicked: %v", r)
		}
	}()
	return m.Restore(e.Now, e.Objects, e.Snapshot)
}

// step takes a step and compares what comes of it.
func (x *exact) step(e *recording.Entry) {
	r := x.result
	r.Steps++
	r.To = e.Now
	effects, panicked := stepOf(x.machine, e.Now, e.Event)
	digest := x.digest.Of(effects)
	outcomes := recording.Attempts(effects)
	same := digest == e.Digest && panicked == e.Panicked
	for _, effect := range effects {
		done, ok := effect.(machine.AttemptDone)
		if !ok {
			continue
		}
		d := done.Decision
		r.Decisions++
		r.ByResult[d.Result]++
		if x.decided != nil {
			x.decided(Attempt{e.Now, d.Pod.String(), d.Result, d.Node, d.Score, d.NodesFeasible, d.Attempt})
		}
		switch {
		case !x.exact:
			r.Unverified++
		case same:
			r.Same++
		}
	}
	if !same && x.exact {
		r.Different++
		if r.First == nil {
			r.First = x.differ(e, outcomes, panicked)
		}
	}
}

// stepOf takes a step as the loop does: a machine that panics repairs itself.
func stepOf(m *machine.Machine, now time.Time, e machine.Event) (effects []machine.Effect, panicked bool) {
	defer func() {
		if recover() != nil {
			effects, panicked = repair(m), true
		}
	}()
	return m.Step(now, e), false
}

func repair(m *machine.Machine) []machine.Effect {
	defer func() { _ = recover() }()
	return m.Repair()
}

// differ tells the first outcome that is another than the recorded one.
func (x *exact) differ(e *recording.Entry, got []recording.Attempt, panicked bool) *Difference {
	d := &Difference{Step: x.result.Steps, Time: e.Now, Event: fmt.Sprintf("%T", e.Event), kind: reflect.TypeOf(e.Event).Name()}
	for i := range max(len(got), len(e.Attempts)) {
		var was, is recording.Attempt
		if i < len(e.Attempts) {
			was = e.Attempts[i]
		}
		if i < len(got) {
			is = got[i]
		}
		if was != is {
			d.Pod, d.Recorded, d.Replayed = x.name(was.UID, is.UID), outcome(was), outcome(is)
			return d
		}
	}
	d.Recorded, d.Replayed = "other effects", "other effects"
	switch {
	case panicked != e.Panicked:
		d.Recorded, d.Replayed = panics(e.Panicked), panics(panicked)
	case e.Digest == 0:
		d.Recorded = "no effects"
	case x.digest.Of(nil) == 0 && len(got) == 0:
		d.Replayed = "other effects, or none"
	}
	return d
}

func panics(yes bool) string {
	if yes {
		return "the step panicked"
	}
	return "the step did not panic"
}

// name is the pod's, or its UID where it is gone.
func (x *exact) name(uids ...types.UID) string {
	for _, uid := range uids {
		if e := x.machine.Entry(uid); e != nil {
			return e.Pod.Key()
		}
		if pl := x.machine.Table().Pod(uid); pl != nil {
			return pl.Pod.Key()
		}
	}
	for _, uid := range uids {
		if uid != "" {
			return string(uid)
		}
	}
	return ""
}

func outcome(o recording.Attempt) string {
	switch {
	case o.UID == "":
		return "no decision"
	case o.Node == "":
		return fmt.Sprintf("%s, feasible nodes: %d", o.Result, o.Feasible)
	}
	return fmt.Sprintf("%s on %s, score %d, feasible nodes: %d", o.Result, o.Node, o.Score, o.Feasible)
}

// extenders are those of the configuration, as the machine knows them. None is
// called.
func extenders(c *config.Config) ([]machine.Extender, error) {
	x, err := extender.New(c.Extenders)
	if err != nil {
		return nil, err
	}
	return x.Machine(), nil
}
