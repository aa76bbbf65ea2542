package oracle

import "github.com/berth-scheduler/berth/core/framework"

// Result says how an attempt ended.
type Result string

// The results of an attempt.
const (
	Scheduled     Result = "Scheduled"
	Unschedulable Result = "Unschedulable"
	Preempting    Result = "Preempting"
	Gated         Result = "Gated"
	Failed        Result = "Error"
)

// Record is what one attempt for one pod came to.
type Record struct {
	Pod    string `json:"pod"` // namespace/name
	Result Result `json:"result"`
	// Message is what the PodScheduled condition says; empty when Scheduled.
	Message string `json:"message,omitempty"`
	// Plugins names those that rejected the pod, sorted.
	Plugins []string `json:"plugins,omitempty"`
	// Nominated is the node to preempt on, Victims (namespace/name, sorted) who
	// has to go there.
	Nominated string   `json:"nominated,omitempty"`
	Victims   []string `json:"victims,omitempty"`
	// Plans is what could be done instead of that and would be as good by all
	// of kube-scheduler's criteria, its own choice included.
	Plans []Plan `json:"plans,omitempty"`
	// Best is the nodes that share the highest total, sorted.
	Best []string `json:"best,omitempty"`
	// Node is the one of Best that was chosen.
	Node string `json:"node,omitempty"`
	// Writes is what Berth wants written before the pod is bound.
	Writes []framework.Write `json:"-"`
	// Nodes is each node of the cluster once, by name; empty when Gated, and
	// only the nominated node where the pod went there.
	Nodes []Node `json:"nodes,omitempty"`
}

// Plan is a preemption: on which node, and who has to go.
type Plan struct {
	Node    string   `json:"node"`
	Victims []string `json:"victims"`
}

// Node is the answer for one node: why not, or how good.
type Node struct {
	Name     string `json:"name"`
	Feasible bool   `json:"feasible"`

	// Plugin is the first that rejects the node, Code its status code. Where
	// PreFilter narrowed the nodes, it is the plugins that did so, joined by commas.
	Plugin  string   `json:"plugin,omitempty"`
	Code    string   `json:"code,omitempty"`
	Reasons []string `json:"reasons,omitempty"`

	// Scores and Total are empty where a single node is feasible.
	Scores []Score `json:"scores,omitempty"`
	Total  int64   `json:"total,omitempty"`
}

// Score is one plugin's normalised score (0..100) and its weight.
type Score struct {
	Plugin string `json:"plugin"`
	Score  int64  `json:"score"`
	Weight int64  `json:"weight"`
}
