package framework

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Locality says what a plugin's answer for one row depends on. It decides
// which changes make a kept answer stale.
type Locality uint8

const (
	// NodeOnly: the node object of the row.
	NodeOnly Locality = iota
	// NodeAndPods: the node and the pods placed on it.
	NodeAndPods
	// Domains: the pods of whole topology domains. Such plugins answer by
	// cells (CellFilter, CellScore).
	Domains
)

// Verdict is a Filter's answer for one row: 0 lets the pod through; any other
// value is the plugin's own code for why not, which Explain turns into words.
// Rows with equal verdicts have equal explanations.
type Verdict uint64

// Fits is the verdict of a filter that does not object.
const Fits Verdict = 0

// Input is what a kernel reads. Kernels may not change any of it.
type Input struct {
	Table *table.Table
	// Pod is the pod at hand, or another that agrees with it in the plugin's
	// Part: a kernel may read nothing of the pod that Part leaves out.
	Pod *object.Pod
	// State is what the plugin's own PreFilter (for Filter) or PreScore (for
	// Score) prepared.
	State any
}

// Prepared is what PreFilter and PreScore return: work done once for all
// nodes, and for all pods with the same Part.
type PreFilterResult struct {
	State any
	// Skip: the plugin's Filter (Score) has nothing to say about this pod.
	Skip bool
	// Nodes, when not nil, names the only nodes that can be feasible
	// (PreFilter only).
	NodeNames []string
	// Status, when not nil, rejects the pod as a whole (Unschedulable,
	// Unresolvable) or reports a failure (Error).
	Status *decision.Status
}

// Plugin is one scheduling plugin: a name, what it declares about itself, and
// a function for each extension point that it implements (nil: not
// implemented). Functions are called by the machine's owner only, one at a
// time, but for the kernels Filter and Score, which are called concurrently
// on disjoint rows.
type Plugin struct {
	Name string

	// Locality of Filter and Score.
	Locality Locality
	// Part appends to the key what of the pod PreFilter, Filter, PreScore and
	// Score read, equal for pods that they cannot tell apart. nil: they read
	// nothing of the pod.
	Part func(key []byte, p *object.Pod) []byte
	// PartIn is Part for a plugin that reads the pod in the light of other
	// objects (the Services that select it, say); Part is then nil.
	PartIn func(key []byte, t *table.Table, p *object.Pod) []byte
	// Epoch, when set, changes whenever answers may have changed on rows that
	// did not change themselves. Kept answers of another epoch are dropped.
	Epoch func(t *table.Table) uint64
	// Reads lists the kinds of objects that the plugin looks up in the table.
	// Only those that a plugin of some profile reads are watched.
	Reads []object.Kind
	// Wakes lists the events that may help a pod that the plugin rejected.
	EventsToRegister []ClusterEventWithHint

	// PreEnqueue returns a status to keep the pod out of the queue, nil to
	// let it in.
	PreEnqueue func(t *table.Table, p *object.Pod) *decision.Status
	// Less orders the active queue (QueueSort).
	Less func(a, b *QueuedPodInfo) bool

	PreFilter func(t *table.Table, p *object.Pod) PreFilterResult
	// Filter writes the verdict of rows[i] to out[i], which is as long.
	// Rows may come in any order, and some may be without a node; what is
	// written for those is ignored.
	Filter func(in *Input, rows []table.Row, out []Verdict)
	// Failure, when not 0, is the lowest verdict that says nothing about the
	// node: deciding failed there, and with it the attempt, unless an earlier
	// filter rejects the node.
	ErrorsFrom Verdict
	// Explain gives code (Unschedulable, Unresolvable, or Error for a Failure)
	// and reasons of a
	// verdict other than Fits that Filter wrote for the row.
	Explain func(in *Input, row table.Row, v Verdict) (decision.Code, []string)
	// CellFilter stands in for Filter where Locality is Domains.
	CellFilter *CellFilter
	// Sums, when not nil, says how much of what Filter compares is short on a
	// row, and what each pod there would give back: preemption rules rows out by
	// it that no pod's going would open.
	AdditiveFilter *AdditiveFilter

	PostFilter func(c *PostFilterCall) PostFilterResult

	PreScore func(t *table.Table, p *object.Pod) PreFilterResult
	// Score writes the raw score of rows[i] to out[i].
	Score func(in *Input, rows []table.Row, out []int64)
	// CellScore stands in for Score where Locality is Domains.
	CellScore *CellScore
	// Normalize maps a raw score to 0..100, given the extremes of the raw
	// scores over the feasible nodes. nil: raw scores are final.
	NormalizeScore func(raw, min, max int64) int64

	// Reserve is told of the choice before the pod is assumed for good; a
	// status rejects it. Unreserve undoes and is called in reverse order,
	// also for plugins whose Reserve was not reached.
	Reserve   func(t *table.Table, p *object.Pod, node string) *decision.Status
	Unreserve func(t *table.Table, p *object.Pod, node string)
	// Retract returns what is to be taken back in the API before Unreserve, where
	// the pod that was reserved for, or that earlier attempts wrote for, is not
	// bound. It is not asked about pods that are gone.
	RevertWrites func(t *table.Table, p *object.Pod, node string) []Write
	// Permit may hold the pod, reject it, or let it go (the zero result).
	Permit func(t *table.Table, p *object.Pod, node string) PermitResult
	// PreBind returns what must be written before the pod may be bound.
	PreBind func(t *table.Table, p *object.Pod, node string) ([]Write, *decision.Status)
	// Settle is asked when all writes are done, and again whenever an object or
	// the pod's node changes, until it lets the pod go (nil) or rejects it; Code
	// Wait is not yet. After Patience the attempt fails, for the reason Late.
	WritesDone         func(t *table.Table, p *object.Pod, node string) *decision.Status
	WritesTimeout      time.Duration
	WritesTimeoutError error
	// Bind claims the binding of the pod (true: it is bound through the API's
	// binding subresource) or leaves it to the next plugin.
	Bind func(p *object.Pod, node string) bool
	// PostBind is told that the pod is bound.
	PostBind func(p *object.Pod, node string)
}

// Sums is the part of a filter that compares sums over the pods on a row. Both
// functions append one amount for each thing that is summed, in the same order
// for all rows and pods.
type AdditiveFilter struct {
	// Lack is how much is short on the row as it stands for the pod to fit; 0
	// or less where it is enough. Never more than is truly short.
	Shortfall func(in *Input, row table.Row, lack []int64) []int64
	// Gives is how much of it another pod takes up, 0 or more.
	Frees func(in *Input, p *object.Pod, gives []int64) []int64
}

// PermitResult is a Permit plugin's answer.
type PermitResult struct {
	// Status: nil lets the pod go; Code Wait holds it; others reject it.
	Status *decision.Status
	// Timeout bounds a Wait, itself bounded by 15 minutes; after it the pod
	// is rejected.
	Timeout time.Duration
	// Allow and Reject end the wait of other pods for this plugin.
	Allow, Reject []types.UID
}
