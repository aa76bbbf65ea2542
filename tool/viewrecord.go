package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/page"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/replay"
)

// tape is a record that can be shown as it was at any time of it. It is played on to a later time,
// and from the begin to an earlier one.
type tape struct {
	ctx  context.Context // of the command
	view *viewing
	day  *replayed
	from time.Time
	to   time.Time

	mu     sync.Mutex // held for each question
	log    *recording.Reader
	player *replay.Player
	still  *still
	data   page.Data // of the still
	stop   context.CancelFunc
	at     time.Time // that was played to
	shown  bool      // data is of at

	able []byte // the answer about capabilities, which holds at each time

	// configText is the configuration of the call as it was at the start: all times of the record
	// are shown under it.
	configText []byte
	comparing  sync.Mutex // held by who makes or reads the comparison
	comparedTo []byte     // the text of the configuration that it is with; nil: there is none yet
	comparison []byte
}

// replayed is the answer of replay: that of the command, and when something was decided.
type replayed struct {
	*replay.Changed
	Decisions []time.Time `json:"decisions"` // each time once, some of them if there are many
	Redacted  bool        `json:"redacted,omitempty"`
	// Cut says why the record ends before its time.
	Cut string `json:"cut,omitempty"`
}

// mostDecisions is how many times of decisions an answer has.
const mostDecisions = 10000

// thinned keeps every so manieth time, where there are too many.
func thinned(times []time.Time) []time.Time {
	every := (len(times)-1)/mostDecisions + 1
	kept := []time.Time{}
	for i := 0; i < len(times); i += every {
		kept = append(kept, times[i])
	}
	return kept
}

// playing returns what plays the record, with the configuration of the call or with its own.
func (t *tape) playing(log *recording.Reader) (*playing, error) {
	header := log.Header()
	p, err := playWith(&header, t.view.config, t.configText, t.view.plugins, t.view.others)
	if err == nil {
		p.options.Workers = t.view.workers
	}
	return p, err
}

// openTape plays a record to its end.
func (v *viewing) openTape(ctx context.Context, stderr io.Writer) (*tape, error) {
	text, err := configText("--config", v.config)
	if err != nil {
		return nil, err
	}
	t := &tape{ctx: ctx, view: v, stop: func() {}, configText: text}
	decided := map[time.Time]bool{}
	lines, err := t.begin(func(w *sim.World) {
		shown := w.Observe
		w.Observe = func(e machine.Effect) {
			shown(e)
			if _, is := e.(machine.AttemptDone); is {
				decided[w.Now] = true
			}
		}
	})
	if err != nil {
		return nil, err
	}
	cut := t.player.PlayTo(ctx, endOfTime)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if t.player.World() == nil {
		return nil, cmp.Or(cut, fmt.Errorf("%s: the record is empty", v.record))
	}
	day := t.player.Finish()
	t.from, t.to = day.From, day.To
	t.day = &replayed{Changed: replay.ChangedOf(cmp.Or(v.config, recordsConfiguration), day), Redacted: t.log.Header().Redacted}
	t.day.Decisions = slices.AppendSeq([]time.Time{}, maps.Keys(decided))
	slices.SortFunc(t.day.Decisions, time.Time.Compare)
	t.day.Decisions = thinned(t.day.Decisions)
	if cut != nil {
		t.day.Cut = cut.Error()
		lines = append(lines, "the record is shown up to where it is cut: "+cut.Error())
	}
	notes(stderr, append(lines, t.log.Notes...))
	if err := t.show(day.To); err != nil {
		return nil, err
	}
	t.able, err = answerOf(ctx, t.data, "capabilities", nil)
	return t, err
}

// endOfTime is later than all records.
var endOfTime = time.Unix(1<<40, 0)

// begin opens the record and plays nothing yet. It returns notes.
func (t *tape) begin(begun func(*sim.World)) ([]string, error) {
	log, err := recording.Open(t.view.record)
	if err != nil {
		return nil, err
	}
	p, err := t.playing(log)
	if err != nil {
		_ = log.Close()
		return nil, err
	}
	t.close()
	t.at, t.shown = time.Time{}, false
	options := p.options
	options.Profiles = nil
	c := &still{identity: "record", written: fromRecord{t}, records: records.New(recordBytes), options: options, version: t.view.build.Version, profiles: func() ([]*profile.Profile, error) {
		if p.scheduler.Hosts() {
			return nil, api.ErrHosted
		}
		again, err := t.playing(log)
		if err != nil {
			return nil, err
		}
		return again.options.Profiles, nil
	}}
	c.history = records.NewHistory(c.records)
	t.log, t.still, t.player = log, c, replay.NewPlayer(log, p.served(), p.options, p.scheduler)
	t.player.Begun = func(w *sim.World) {
		c.world = w
		c.records.Watch(w.Machine)
		c.observe()
		if begun != nil {
			begun(w)
		}
	}
	return p.notes, nil
}

// close ends what was played so far.
func (t *tape) close() {
	t.stop()
	if t.log != nil {
		_ = t.log.Close()
		if w := t.player.World(); w != nil {
			w.Close()
		}
	}
}

// move plays to a time, or towards it until the context ends.
func (t *tape) move(ctx context.Context, to time.Time) error {
	if to.Before(t.from) {
		to = t.from
	}
	if to.After(t.to) {
		to = t.to
	}
	switch {
	case t.shown && to.Equal(t.at):
		return nil
	case to.Before(t.at):
		if _, err := t.begin(nil); err != nil {
			return err
		}
	}
	t.shown = false
	err := t.player.PlayTo(ctx, to)
	w := t.player.World()
	if w == nil {
		return cmp.Or(err, fmt.Errorf("%s: the record is empty", t.view.record))
	}
	t.at = w.Now
	if err != nil && (t.day.Cut == "" || ctx.Err() != nil) {
		return err
	}
	return t.show(to)
}

// show makes the data of the time that was played to.
func (t *tape) show(at time.Time) (err error) {
	t.stop()
	ctx, stop := context.WithCancel(t.ctx)
	t.stop, t.at = stop, at
	t.still.records.Flush()
	t.data, err = t.still.data(ctx)
	t.shown = err == nil
	return err
}

// ask is a page.Data: what the scheduler knew at the time "at", by default at the end.
func (t *tape) ask(ctx context.Context, what string, query map[string][]string, header http.Header) (*http.Response, error) {
	if what == "watch" {
		return uneventful(ctx), nil
	}
	at, query := t.to, maps.Clone(query)
	if text := url.Values(query).Get("at"); text != "" {
		var err error
		if at, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return refused(page.Problem(http.StatusBadRequest, api.BadRequest, "parameter at="+text+": must be like 2026-01-31T12:00:00Z"))
		}
	}
	delete(query, "at")
	switch what {
	case "replay":
		var out bytes.Buffer
		err := writeJSON(&out, "ReplayResult", t.day)
		return accepted(out.Bytes()), err
	case "compare":
		return t.compare()
	case "capabilities":
		return accepted(t.able), nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := ctx.Err(); err != nil { // who asked is gone
		return nil, err
	}
	if err := t.move(ctx, at); err != nil {
		return nil, err
	}
	reply, err := t.data(context.WithoutCancel(ctx), what, query, header) // whole, before the world moves
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	reply.Body = io.NopCloser(bytes.NewReader(body))
	return reply, err
}

// compared returns the comparison of the record's configuration with that of the file as it is
// now. It is made anew when the file has changed.
func (t *tape) compared() ([]byte, error) {
	t.comparing.Lock()
	defer t.comparing.Unlock()
	text, err := configText("--config", t.view.config)
	if err != nil || t.comparedTo != nil && bytes.Equal(text, t.comparedTo) {
		return t.comparison, err
	}
	c := comparing{record: t.view.record, output: "json", workers: t.view.workers, plugins: t.view.plugins, own: t.view.others}
	answer, err := printedBy(func(out io.Writer) error { return c.run([]string{"recorded", t.view.config}, out, io.Discard) })
	if err == nil {
		t.comparedTo, t.comparison = text, answer
	}
	return answer, err
}

// compare compares the record's configuration with that of the call, as the command does.
func (t *tape) compare() (*http.Response, error) {
	if t.view.config == "" {
		return refused(page.Problem(http.StatusNotFound, api.NotFound, "there is one configuration only: start \"berth view --record DIR --config NEW.yaml\" to compare the record's with another"))
	}
	body, err := t.compared()
	if err != nil {
		return refused(page.Problem(http.StatusBadRequest, api.BadRequest, err.Error()))
	}
	return accepted(body), nil
}

// accepted returns JSON as an answer.
func accepted(body []byte) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body))}
}

// refused returns a problem as an answer.
func refused(p *api.Problem) (*http.Response, error) {
	body, err := json.Marshal(p)
	return &http.Response{StatusCode: p.Code, Status: http.StatusText(p.Code), Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body))}, err
}

// aliveTime is how often a stream without events says that it is alive.
const aliveTime = 15 * time.Second

// uneventful returns a stream of a daemon to which nothing happens.
func uneventful(ctx context.Context) *http.Response {
	from, to := io.Pipe()
	go func() {
		alive := time.NewTicker(aliveTime)
		defer alive.Stop()
		for {
			select {
			case <-alive.C:
				_, _ = io.WriteString(to, ": alive\n\n") // who read is gone
			case <-ctx.Done():
				_ = to.CloseWithError(ctx.Err())
				return
			}
		}
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: from}
}

// fromRecord are objects as the record keeps them.
type fromRecord struct{ tape *tape }

func (f fromRecord) pod(is *object.Pod) *v1.Pod {
	p, err := recording.PodOf(is)
	if err != nil {
		return nil
	}
	return p
}

func (f fromRecord) node(name string) *v1.Node {
	is := f.tape.still.world.Cluster.Node(name)
	if is == nil {
		return nil
	}
	n, err := recording.NodeOf(is)
	if err != nil {
		return nil
	}
	return n
}

// claim is of no record: a pod's claims are known as far as decisions need them.
func (f fromRecord) claim(string, string) []byte { return nil }
