package api

import (
	"context"
	"net/http"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/access"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/shadow"
)

// Status is the answer of status: how it stands with this process. One that does not lead
// answers, too.
type Status struct {
	Head
	Time     time.Time `json:"time"`
	Identity string    `json:"identity"`
	Started  time.Time `json:"started"`
	// Leads is set if the process schedules. Leader is who does, as far as it knows.
	Leads  bool   `json:"leads"`
	Leader string `json:"leader,omitempty"`
	Lease  string `json:"lease,omitempty"` // NAMESPACE/NAME; "" without leader election
	// Synced is set if the process knows the cluster.
	Synced        bool          `json:"synced"`
	Configuration Configuration `json:"configuration"`
	Hosted        []string      `json:"hosted,omitempty"` // plugins written against kube-scheduler's framework
	Watches       []Watch       `json:"watches"`
	APIServer     *APIServer    `json:"apiServer,omitempty"` // nil: its version is not known
	// Shadow is how a shadow's choices compare, nil for a scheduler that binds pods.
	Shadow *ShadowStatus `json:"shadow,omitempty"`

	// Stuck says why the scheduling loop does not answer. The queue and the figures beside
	// it are not known then.
	Stuck string `json:"stuck,omitempty"`

	// These are as in the summary.
	Queue   Queue         `json:"queue"`
	Nodes   int           `json:"nodes"`
	Pods    int           `json:"pods"`
	Assumed int           `json:"assumed"`
	Rates   records.Rates `json:"rates"`
}

// APIServer is the version of the API server, and whether Kubernetes supports this
// scheduler beside it.
type APIServer struct {
	Version   string `json:"version"`
	Supported bool   `json:"supported"`
}

// Configuration is what is in force, and what was refused since.
type Configuration struct {
	Since      time.Time `json:"since"`
	Profiles   []string  `json:"profiles"` // names of schedulers
	Extenders  int       `json:"extenders,omitempty"`
	QPS        float32   `json:"qps"` // requests to the API server a second
	Refused    *Refusal  `json:"refused,omitempty"`
	Reloadable bool      `json:"reloadable"` // a change of the file is taken over without a restart
}

// Refusal is a configuration that was not taken over.
type Refusal struct {
	Time time.Time `json:"time"`
	// Reason is for whoever may get ReasonPath.
	Reason string `json:"reason,omitempty"`
}

// ReasonPath is the path whose readers are told why a configuration was refused.
const ReasonPath = "/readyz/configuration"

// Watch is how it stands with the watch of a kind.
type Watch struct {
	Resource string `json:"resource"`
	// Synced is set if all objects were posted to the scheduling loop once.
	Synced bool `json:"synced"`
	// Heard is when the watch brought something last; nil: never.
	Heard *time.Time `json:"heard,omitempty"`
	// Problem says why the objects cannot be listed.
	Problem string `json:"problem,omitempty"`
}

// ShadowStatus is what a shadow found.
type ShadowStatus struct {
	Choices []Choices `json:"choices"`
	// Placeable are pods that wait and that Berth would place.
	Placeable int `json:"placeable"`
}

// ShadowAnswer is the answer of shadow: where the choices of the live scheduler differ.
type ShadowAnswer struct {
	Head
	Time time.Time `json:"time"`
	ShadowStatus
	// Differences are the last ones, the newest first.
	Differences []shadow.Record `json:"differences,omitempty"`
}

func (h *handler) shadow(r *http.Request) (any, error) {
	if p := paramsOf(r); p.err != nil {
		return nil, p.err
	}
	if !h.Shadow {
		return nil, problem(http.StatusNotFound, NotFound, "this daemon is no shadow: it compares its choices with nobody's")
	}
	s := h.Status(r.Context())
	if s.Shadow == nil {
		return nil, problem(http.StatusServiceUnavailable, Failed, "the scheduling loop does not answer")
	}
	a := &ShadowAnswer{Head: head("Shadow"), Time: h.Now().UTC(), ShadowStatus: *s.Shadow}
	err := h.look(r.Context(), func(*machine.Machine) { a.Differences = h.Differences() })
	return a, err
}

// Choices count choices of the live scheduler that are alike.
type Choices struct {
	Result  string `json:"result"`
	Plugin  string `json:"plugin,omitempty"`
	Profile string `json:"profile"`
	Pods    int    `json:"pods"`
}

func (h *handler) status(r *http.Request) (any, error) {
	if p := paramsOf(r); p.err != nil {
		return nil, p.err
	}
	s := h.Status(r.Context())
	s.Head, s.Time = head("Status"), h.Now().UTC()
	h.hideReason(r.Context(), s.Configuration.Refused)
	err := h.look(r.Context(), func(m *machine.Machine) {
		t := m.Table()
		s.Queue, s.Nodes, s.Pods, s.Assumed = Queue(m.Queue().Counts()), t.Live(), t.PlacedPods(), m.Assumed()
	})
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	if err != nil {
		s.Stuck = err.Error()
	}
	s.Rates = h.Recorder.Rates(s.Time, rateTime)
	return s, nil
}

// hideReason takes the reason out of a refusal for whoever may not read it.
func (h *handler) hideReason(ctx context.Context, refused *Refusal) {
	if refused != nil && !access.From(ctx).MayGetPath(ctx, ReasonPath) {
		refused.Reason = ""
	}
}
