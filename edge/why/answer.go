package why

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/fix"
)

// PodState says in one word how it stands with a pod.
type PodState string

const (
	// Placed: it has a node.
	Placed PodState = "Placed"
	// WouldBePlaced: a feasible node is there now.
	WouldBePlaced PodState = "WouldBePlaced"
	// Preempting: victims are leaving, or would be evicted now.
	Preempting PodState = "Preempting"
	// InProgress: binding, or waiting in Permit or for writes.
	InProgress PodState = "InProgress"
	// Waiting: it fits once others go, end or nodes come.
	Waiting PodState = "Waiting"
	// Failed: the attempt ends in an error, or there is none.
	Failed PodState = "Error"
	// Misconfigured: no change of load lets it fit anywhere.
	Misconfigured PodState = "Misconfigured"
	// Gated: a PreEnqueue plugin holds it.
	Gated PodState = "Gated"
)

// Answer is why a pod waits or is where it is. Its JSON is a contract.
type Answer struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Pod        string   `json:"pod"`
	Profile    string   `json:"profile"`
	Verdict    PodState `json:"verdict"`
	// Stalled says why nobody schedules, of a pod that would be placed. Who reads the leases of
	// schedulers sets it.
	Stalled string `json:"stalled,omitempty"`
	// Sentence is the verdict in words. Explain sets it.
	Sentence string `json:"sentence,omitempty"`
	// PodGroup is the group that the pod is placed with. The verdict is of the pod alone.
	PodGroup string `json:"podGroup,omitempty"`
	// GroupCause is what the pod waits for together with its pod group; nil if that is not known.
	GroupCause *Cause `json:"groupCause,omitempty"`
	Message    string `json:"message"`
	// Observed is what the cluster itself said last, nil where nothing is known.
	Observed *Observed `json:"observed"`
	// Refusal is set by a daemon, of a pod whose binding was refused at last.
	Refusal *Refusal `json:"refusal,omitempty"`
	Node    string   `json:"node"`
	// NotRunning is what keeps a placed pod from running, or why it failed.
	NotRunning    string      `json:"notRunning,omitempty"`
	NodesTotal    int         `json:"nodesTotal"`
	NodesFeasible int         `json:"nodesFeasible"`
	Groups        []NodeGroup `json:"groups"`
	// Rollout is what the last rollout of the pod's Deployment changed that blocks it.
	Rollout *Rollout `json:"rollout,omitempty"`
	// Holders are the workloads that hold most of what the pod lacks where it comes nearest.
	Holders []Holder `json:"holders,omitempty"`
	// Leaving are pods that are being deleted, which the pod waits for.
	Leaving []Leaving `json:"leaving,omitempty"`
	Fixes   []fix.Fix `json:"fixes"`
	// Cut says why the search for fixes ended early, in a sentence.
	Cut    string  `json:"cut,omitempty"`
	Events []Event `json:"events"`
	// Queue is from the daemon; nil from files, from the API server and from a shadow.
	Queue *Queue `json:"queue"`
	// Shadow is from a daemon that schedules nothing, about a pod that waits.
	Shadow *Shadow `json:"shadow,omitempty"`
	Scores []Node  `json:"scores"`
	// Held says since when the pod is held by what.
	Held []Held `json:"since,omitempty"`
	// Victims are the pods that leave for this one (Preempting).
	Victims []string `json:"victims,omitempty"`
	// Against are the budgets whose disruptions the eviction of the victims exceeds.
	Against []string `json:"against,omitempty"`
	// First are the pods that come before this one in the queue and take the room that it
	// would get now (WouldBePlaced, Preempting).
	First []string `json:"first,omitempty"`
	// EvictedBy are the pods for which this one is evicted, and Evicted says why
	// it and not another.
	EvictedBy []string `json:"evictedBy,omitempty"`
	Evicted   string   `json:"evicted,omitempty"`

	facts    *facts           // for the text
	exceeded []*object.Budget // those of Against
	next     bool             // nobody was asked to leave for it yet (Preempting)
	outrun   bool             // the pod would fit if others did not take their turn before it
}

// Refusal is how often the binding of a pod was refused, attempt after attempt.
type Refusal struct {
	Times int `json:"times"`
	// More is set if the records do not reach back to the first time.
	More    bool      `json:"more,omitempty"`
	Since   time.Time `json:"since"`
	Last    time.Time `json:"last"`
	Message string    `json:"message"` // of the last time
}

// NodeGroup is nodes that the same blockers reject.
type NodeGroup struct {
	Nodes    int       `json:"nodes"`
	Examples []string  `json:"examples"`
	Blockers []Blocker `json:"blockers"`

	names []string // of all its nodes
}

// Blocker is why a plugin rejects a node.
type Blocker struct {
	Plugin  string   `json:"plugin"`
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
	// TopologyKeys are those of the spread constraints, or of the terms of anti-affinity, that
	// block, where the pod has several.
	TopologyKeys []string `json:"topologyKeys,omitempty"`

	// Text says with numbers and names what the blocker means on the nodes of its group.
	// Answer.Explain sets it.
	Text string `json:"text,omitempty"`

	insufficient []v1.ResourceName // sorted
	text         string            // of detail, once it was asked for
}

// Event is something that would requeue the pod.
type Event struct {
	Resource string `json:"resource"`
	Action   string `json:"action"`
	Plugin   string `json:"plugin"`
	Text     string `json:"text"`

	own bool // it is of the pod itself
}

// Node is a feasible node and its score.
type Node struct {
	Node   string  `json:"node"`
	Score  int64   `json:"score"`
	Margin int64   `json:"margin"` // to the best
	Scores []Score `json:"scores"`
}

// Score is a plugin's part, normalized and before the weight.
type Score struct {
	Plugin string `json:"plugin"`
	Score  int64  `json:"score"`
	Weight int64  `json:"weight"`
}
