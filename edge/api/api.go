package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/bounds"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/shadow"
	"github.com/berth-scheduler/berth/edge/snapshot"
	"github.com/berth-scheduler/berth/edge/why"
)

// Prefix is the path below which everything is served.
const Prefix = "/berth/v1/"

// Version is the apiVersion of all answers.
const Version = why.APIVersion

// Head says what an answer is.
type Head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

func head(kind string) Head { return Head{Version, kind} }

// Problem is the answer to a question that cannot be answered.
type Problem struct {
	Head
	Code    int    `json:"code"` // as the status of HTTP
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Leader is who leads, as far as it is known, where this daemon does not.
	Leader string `json:"leader,omitempty"`
}

func (p *Problem) Error() string { return p.Message }

// Reasons of Problems.
const (
	BadRequest  = "BadRequest"
	NotFound    = "NotFound"
	NotLeading  = "NotLeading"
	NotSynced   = "NotSynced"
	TooMany     = "TooManyRequests"
	Unsupported = "NotImplemented"
	Ended       = "StreamEnded" // as all streams do; ask again
	Failed      = "InternalError"
)

func problem(code int, reason, format string, args ...any) *Problem {
	return &Problem{Head: head("Problem"), Code: code, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Options are what a handler asks.
type Options struct {
	Recorder *records.Recorder
	History  *records.History
	Build    Build
	// Inspect runs a function between two steps of the loop.
	Inspect func(ctx context.Context, look func(*machine.Machine)) error
	// Leads tells whether this daemon schedules, Leader who does as far as it is known,
	// Synced whether the cluster is known.
	Leads  func() bool
	Leader func() string
	Synced func() bool
	// Shadow tells that the daemon schedules nothing, Hosted that it has plugins that
	// cannot be asked about a copy of the machine.
	Shadow, Hosted bool
	// Status returns what is known of the daemon beside its machine and records. Its
	// caller owns the answer.
	Status func(context.Context) Status
	// Differences returns the last differences that a shadow found, the newest first. It is
	// called between two steps of the loop.
	Differences func() []shadow.Record
	// Profiles makes profiles for a copy of the machine; an error where the daemon has
	// plugins that cannot be copied.
	Profiles func() ([]*profile.Profile, error)
	// Machine are the options of such a copy except for the profiles.
	Machine machine.Options
	// Read reads from the API server's core group.
	Read rest.Interface
	// PodFields returns a pod without the fields that are not to be read; nil: all are.
	PodFields func(*v1.Pod) *v1.Pod
	// Stopped is closed when the daemon stops.
	Stopped <-chan struct{}
	// Now is the time.
	Now func() time.Time
}

// How many questions are answered at the same time: one client holds at most half of these
// places, each until the answer is written. Only one answer of the first two kinds is being
// worked out at a time, as it takes as much memory as a second picture of the cluster.
const (
	mostWhys    = 2
	mostWhyAlls = 2
	mostReads   = 4
	mostWatches = 16
)

// queryTimeout is how long a question waits until it is its turn.
const queryTimeout = 10 * time.Second

type handler struct {
	Options
	watches *bounds.Places
	started time.Time
	process string // this one, in the ids of events
	// snapshots are what all who ask about nodes share.
	snapshots *snapshot.Source
	paths     []string // that are served
}

func newHandler(o Options) *handler {
	if o.PodFields == nil {
		o.PodFields = func(p *v1.Pod) *v1.Pod { return p }
	}
	h := &handler{Options: o, watches: bounds.NewPlaces(mostWatches), started: o.Now().UTC()}
	h.process = processOf(h.started)
	h.snapshots = snapshot.NewSource(h.look, o.Now)
	return h
}

// Handler serves the paths below Prefix.
func Handler(o Options) http.Handler {
	h := newHandler(o)
	reads := bounds.NewPlaces(mostReads)
	mux := http.NewServeMux()
	serve := func(path string, answer http.HandlerFunc) {
		h.paths = append(h.paths, path)
		mux.HandleFunc("GET "+Prefix+path, answer)
	}
	read := func(answer func(*http.Request) (any, error)) http.HandlerFunc {
		return placed(reads, h.compressed(answer))
	}
	serve("status", read(h.status))
	serve("capabilities", read(h.capabilities))
	serve("records", h.led(read(h.records)))
	serve("pending", h.led(read(h.pending)))
	serve("summary", h.led(read(h.summary)))
	serve("history", h.led(read(h.history)))
	serve("nodes", h.led(read(h.nodes)))
	serve("node", h.led(read(h.node)))
	serve("groups", h.led(read(h.groups)))
	serve("quotas", h.led(read(h.quotas)))
	serve("find", h.led(read(h.find)))
	serve("group", h.led(placed(bounds.NewPlaces(mostWhys), h.compressed(inTurn(h.group)))))
	serve("watch", h.led(compressed(h.watch)))
	serve("shadow", h.led(read(h.shadow)))
	serve("why", h.led(placed(bounds.NewPlaces(mostWhys), h.compressed(inTurn(h.why)))))
	serve("blockers", h.led(placed(bounds.NewPlaces(mostWhys), h.compressed(inTurn(h.blockers)))))
	serve("why/all", h.led(placed(bounds.NewPlaces(mostWhyAlls), h.compressed(inTurn(h.whyAll)))))
	mux.HandleFunc(Prefix, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			refuse(w, problem(http.StatusMethodNotAllowed, BadRequest, "%s: only GET is served", r.Method))
			return
		}
		refuse(w, problem(http.StatusNotFound, NotFound, "%s is not served: there are %s below %s", r.URL.Path, strings.Join(h.paths, ", "), Prefix))
	})
	return mux
}

// led answers if this daemon has something to say.
func (h *handler) led(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h.leading(); err != nil {
			refuse(w, err)
			return
		}
		answer(w, r)
	}
}

// leading is why this daemon has nothing to say, nil if it has.
func (h *handler) leading() error {
	switch {
	case !h.Leads():
		return h.notLeading()
	case !h.Synced():
		return problem(http.StatusServiceUnavailable, NotSynced, "this daemon leads and does not know the cluster yet")
	}
	return nil
}

// notLeading says that this daemon does not lead, and who does.
func (h *handler) notLeading() *Problem {
	p := problem(http.StatusServiceUnavailable, NotLeading, "this daemon does not lead")
	if p.Leader = h.Leader(); p.Leader != "" {
		p.Message += ": " + p.Leader + " does"
	}
	return p
}

// compressed writes what a function answers, in gzip where the client takes it.
func (h *handler) compressed(answer func(*http.Request) (any, error)) http.HandlerFunc {
	return compressed(h.answered(answer))
}

// answered writes what a function answers.
func (h *handler) answered(answer func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := answer(r)
		if err != nil {
			refuse(w, err)
			return
		}
		switch out := out.(type) {
		case text:
			if err := tooLarge(out.body); err != nil {
				refuse(w, err)
				return
			}
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			for name, value := range out.headers { // any order: each by itself
				w.Header().Set(name, value)
			}
			_, _ = w.Write(out.body)
		case *list:
			defer out.end()
			asJSON(w, http.StatusOK)
			_ = out.write(w) // who asked is gone
		case *NodeTable, *NodeBlockers, *History:
			writeLine(w, out)
		default:
			write(w, http.StatusOK, out)
		}
	}
}

// text is an answer for people.
type text struct {
	headers map[string]string
	body    []byte
}

func refuse(w http.ResponseWriter, err error) {
	var p *Problem
	switch {
	case errors.As(err, &p):
	case errors.Is(err, context.DeadlineExceeded):
		p = problem(http.StatusGatewayTimeout, Failed, "there is no answer within %s", questionTime)
	default:
		p = problem(http.StatusInternalServerError, Failed, "%s", err)
	}
	write(w, p.Code, p)
}

func write(w http.ResponseWriter, code int, out any) {
	var b bytes.Buffer
	send(w, code, &b, encoder(&b, "").Encode(out))
}

// writeLine writes an answer with long columns, on one line.
func writeLine(w http.ResponseWriter, out any) {
	var b bytes.Buffer
	line := json.NewEncoder(&b)
	line.SetEscapeHTML(false)
	send(w, http.StatusOK, &b, line.Encode(out))
}

// send writes what was encoded, unless there was an error.
func send(w http.ResponseWriter, code int, b *bytes.Buffer, err error) {
	if err == nil {
		err = tooLarge(b.Bytes())
	}
	if err != nil {
		refuse(w, err)
		return
	}
	asJSON(w, code)
	_, _ = w.Write(b.Bytes()) // who asked is gone
}

// mostWhole bounds an answer that is encoded as a whole, and so held until its reader has taken
// it: each of the places may hold one.
const mostWhole = 32 << 20

// tooLarge returns an error if the body is too large to be sent.
func tooLarge(body []byte) error {
	if len(body) <= mostWhole {
		return nil
	}
	return problem(http.StatusInternalServerError, Failed, "the answer has %d MiB, and at most %d are sent", len(body)>>20, mostWhole>>20)
}

func asJSON(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
}

// encoder returns an encoder whose lines after the first begin with the indent.
func encoder(w io.Writer, indent string) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent(indent, "  ")
	return enc
}

// questionTime bounds the time from a question to its answer. What is found until then is
// the answer, and says that it was cut.
const questionTime = 55 * time.Second

// placed answers when there is a place, and holds it until the answer is written.
func placed(places *bounds.Places, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		whole, end := context.WithTimeout(r.Context(), questionTime)
		defer end()
		ctx, cancel := context.WithTimeout(whole, queryTimeout)
		giveBack, err := places.Take(ctx, bounds.Client(r))
		cancel()
		if err != nil {
			refuse(w, problem(http.StatusTooManyRequests, TooMany, "%d such questions are being answered, or half as many of yours; ask again", places.Most()))
			return
		}
		defer giveBack()
		answer(w, r.WithContext(whole))
	}
}

// inTurn works out one answer at a time.
func inTurn(answer func(*http.Request) (any, error)) func(*http.Request) (any, error) {
	turn := make(chan struct{}, 1)
	return func(r *http.Request) (any, error) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
			return answer(r)
		case <-r.Context().Done():
			return nil, problem(http.StatusTooManyRequests, TooMany, "other such questions took all of the time; ask again")
		}
	}
}

// lookTime is how long a question waits for the loop.
const lookTime = 5 * time.Second

// look runs a function between two steps of the loop.
func (h *handler) look(ctx context.Context, f func(*machine.Machine)) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if err := h.Inspect(ctx, f); err != nil {
		return problem(http.StatusServiceUnavailable, Failed, "the scheduling loop does not answer: %s", err)
	}
	return nil
}
