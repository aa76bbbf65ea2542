package api

import (
	"net/http"
	"slices"
	"time"
)

// Capabilities is the answer of capabilities: what this process can answer. One that does not lead
// answers, too.
type Capabilities struct {
	Head
	Time time.Time `json:"time"`
	Build
	Identity string `json:"identity"`
	Leads    bool   `json:"leads"`
	Leader   string `json:"leader,omitempty"`
	Synced   bool   `json:"synced"`
	// Paths are those that are answered where this process leads.
	Paths  []string `json:"paths"`
	Shadow bool     `json:"shadow,omitempty"`
	Hosted []string `json:"hosted,omitempty"` // plugins written against kube-scheduler's framework
	// RecordsSince is the time of the oldest record, HistorySince that of the oldest sample; nil:
	// there is none.
	RecordsSince *time.Time `json:"recordsSince,omitempty"`
	HistorySince *time.Time `json:"historySince,omitempty"`
}

// Build is what the process was built and started with.
type Build struct {
	Version    string `json:"version"`    // of Berth
	Kubernetes string `json:"kubernetes"` // the version of kube-scheduler that it behaves as
	// Gates are the feature gates whose values are not their defaults.
	Gates map[string]bool `json:"gates"`
}

func (h *handler) capabilities(r *http.Request) (any, error) {
	if p := paramsOf(r); p.err != nil {
		return nil, p.err
	}
	s := h.Status(r.Context())
	c := Capabilities{Head: head("Capabilities"), Time: h.Now().UTC(), Build: h.Build, Identity: s.Identity, Leads: s.Leads, Leader: s.Leader, Synced: s.Synced,
		Shadow: h.Shadow, Hosted: s.Hosted, RecordsSince: h.Recorder.Size().Oldest}
	c.Paths = slices.DeleteFunc(slices.Clone(h.paths), func(path string) bool {
		return !h.Shadow && path == "shadow" || h.Hosted && (path == "why" || path == "why/all" || path == "blockers") // no copy of hosted plugins can be made
	})
	if samples := h.History.Since(time.Time{}); len(samples) > 0 {
		c.HistorySince = &samples[0].Time
	}
	return c, nil
}
