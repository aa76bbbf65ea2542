package records

import (
	"strconv"
	"strings"
	"time"
)

// Type says what a record tells of.
type Type string

const (
	// Attempt: the scheduler tried to place the pod.
	Attempt Type = "Attempt"
	// Moved: the pod came to another place in the queue, or left it unbound.
	Moved Type = "Moved"
	// Bound: the pod's binding is confirmed.
	Bound Type = "Bound"
	// BindingUnknown: the reply to the pod's binding was lost. The pod is read.
	BindingUnknown Type = "BindingUnknown"
	// Evicted: the pod's eviction was asked for, to make room for another pod.
	Evicted Type = "Evicted"
)

// Record is one thing that happened to a pod. Its JSON is described in
// docs/records.md.
type Record struct {
	Time time.Time `json:"time"`
	Type Type      `json:"type"`
	Pod  string    `json:"pod"` // namespace/name
	UID  string    `json:"uid"`
	// Queued is since when the pod was in the queue when it was taken out of it for an
	// attempt: it came then, or came back from the attempt before.
	Queued *time.Time `json:"queued,omitempty"`

	// Of Moved: the places, the event that moved the pod, when it is tried again or
	// looked at again at the latest, and which plugin gates it.
	From   string     `json:"from,omitempty"`
	To     string     `json:"to,omitempty"`
	Event  string     `json:"event,omitempty"`
	Until  *time.Time `json:"until,omitempty"`
	Plugin string     `json:"plugin,omitempty"`

	// Of Attempt.
	Attempt       int       `json:"attempt,omitempty"`
	Result        string    `json:"result,omitempty"`
	Profile       string    `json:"profile,omitempty"`
	Score         int64     `json:"score,omitempty"`
	Ties          int       `json:"ties,omitempty"`
	NodesTotal    int       `json:"nodesTotal,omitempty"`
	NodesFeasible int       `json:"nodesFeasible,omitempty"`
	Blockers      []Blocker `json:"blockers,omitempty"`
	RejectedBy    []string  `json:"rejectedBy,omitempty"`
	PendingBy     []string  `json:"pendingBy,omitempty"`
	NominatedNode string    `json:"nominatedNode,omitempty"`
	Victims       []string  `json:"victims,omitempty"`
	// Cut: the record is longer than a record may be. Lists of it were cut.
	Cut bool `json:"cut,omitempty"`

	// Node is where an attempt placed the pod, or where an evicted pod runs.
	Node string `json:"node,omitempty"`
	// For is the pod for which this one is evicted.
	For string `json:"for,omitempty"`
	// Message is kube-scheduler's message about the attempt, what the gating plugin
	// says, or why a reply was lost.
	Message string `json:"message,omitempty"`
}

// Blocker is why nodes were rejected, and how many for which it came first.
type Blocker struct {
	Plugin  string   `json:"plugin"`
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
	Nodes   int      `json:"nodes"`
}

// Text is the record in words, without its time and pod.
func (r *Record) Text() string {
	switch r.Type {
	case Attempt:
		return r.attemptText()
	case Moved:
		return r.movedText()
	case Bound:
		return "bound"
	case BindingUnknown:
		return "reply to the binding lost, reading the pod: " + r.Message
	case Evicted:
		return "evicted from " + r.Node + " for " + r.For
	}
	return string(r.Type)
}

func (r *Record) attemptText() string {
	text := "attempt"
	if r.Attempt > 0 {
		text += " " + strconv.Itoa(r.Attempt)
	}
	if r.Queued != nil {
		text += ", queued for " + r.Time.Sub(*r.Queued).Round(time.Millisecond).String()
	}
	switch r.Result {
	case "Scheduled", "Waiting":
		text += ": " + r.Node + ", "
		if r.NodesFeasible == 1 { // it is not scored
			text += "the only feasible"
		} else {
			text += "score " + strconv.FormatInt(r.Score, 10) + ", best of " + strconv.Itoa(r.NodesFeasible) + " feasible"
		}
		text += " of " + strconv.Itoa(r.NodesTotal) + " nodes"
		if r.Result == "Waiting" {
			text += "; a Permit plugin holds it"
		}
		return text
	case "Preempting":
		return text + ": nominated to " + r.NominatedNode + ", evicting " + strings.Join(r.Victims, ", ")
	case "Gated":
		return "gated: " + r.Message
	}
	return text + ": " + r.Message
}

func (r *Record) movedText() string {
	until := ""
	if r.Until != nil {
		until = ", until " + r.Until.Format(time.TimeOnly) + " at the latest"
	}
	by := ""
	if r.Event != "" {
		by = " by " + r.Event
	}
	switch {
	case r.From == "nowhere" && r.Plugin != "":
		return "entered the queue, gated by " + r.Plugin + until
	case r.To == "in flight":
		return "taken for an attempt"
	case r.To == "nowhere":
		return "left the queue"
	case r.Plugin != "":
		return "gated by " + r.Plugin + by + until
	case r.From == "unschedulable", r.From == "gated":
		return "requeued" + by + ": " + r.To + until
	}
	return r.To + by + until
}
