package framework

import (
	"errors"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// Plugin is one scheduling plugin: a name, what it declares about itself, and
// a function for each extension point that it implements (nil: not
// implemented). The extension points that take more than one function are
// embedded structs, which bear the name of the upstream interface that they
// mirror (k8s.io/kube-scheduler/framework).
//
// The owner of the machine calls the functions, one at a time. The kernels
// Filter and Score are the exception: they are called concurrently on disjoint
// rows.
type Plugin struct {
	Name string

	// Reads lists the kinds of objects that the plugin looks up in the table.
	// Only kinds that a plugin of some profile reads are watched.
	Reads Reads
	// EventsToRegister lists the events that may help a pod that the plugin
	// rejected (EnqueueExtensions).
	EventsToRegister []ClusterEventWithHint
	SignPlugin

	// PreEnqueue returns a status to keep the pod out of the queue, nil to
	// let it in (PreEnqueuePlugin).
	PreEnqueue func(t *table.Table, p *object.Pod) *decision.Status
	// Less orders the active queue (QueueSortPlugin).
	Less func(a, b *QueuedPodInfo) bool

	// PreFilter prepares Filter (PreFilterPlugin). It runs once for all pods
	// with one signature, not once a pod.
	PreFilter func(t *table.Table, p *object.Pod) PreFilterResult
	FilterPlugin
	// PostFilter runs for a pod that fits no node (PostFilterPlugin).
	PostFilter func(c *PostFilterCall) PostFilterResult
	// PostFilterMay, when set, returns what PostFilter may do for the pod now. nil: anything.
	PostFilterMay func(t *table.Table, p *object.Pod) Remedy

	// PreScore prepares Score (PreScorePlugin), once for all pods with one
	// signature.
	PreScore func(t *table.Table, p *object.Pod) PreScoreResult
	ScorePlugin

	ReservePlugin
	// Permit may let the pod go, which is the zero result, hold it, or reject it
	// (PermitPlugin).
	Permit func(t *table.Table, p *object.Pod, node string) PermitResult
	PreBindPlugin
	// Bind claims the binding of the pod (true: it is bound through the API's
	// binding subresource) or leaves it to the next plugin (BindPlugin).
	Bind func(p *object.Pod, node string) bool
	// PostBind is called after the pod was bound (PostBindPlugin).
	PostBind func(p *object.Pod, node string)

	// PodGroup holds the extension points for pod groups, nil for none.
	PodGroup *PodGroupPlugin
	// Hosted is set for a plugin that is written against another contract.
	Hosted *HostedPlugin
}

// Reads lists kinds of objects, and says what happens while they cannot be listed.
type Reads struct {
	Kinds []object.Kind
	// Optional: the plugin decides as if there were no such objects, which places no pod
	// wrongly. Else only pods that PreFilter skips are placed.
	Optional bool
}

// Remedy is what PostFilter may do for a pod.
type Remedy uint8

const (
	NoRemedy    Remedy = iota // return the reason for none
	Preemption                // name victims of lower priority
	OtherRemedy               // anything else
)

// Remedy returns what the plugin's PostFilter may do for the pod now.
func (p *Plugin) Remedy(t *table.Table, pod *object.Pod) Remedy {
	if p.PostFilterMay == nil {
		return OtherRemedy
	}
	return p.PostFilterMay(t, pod)
}

// SignPlugin says for which other pods the plugin's answers for a pod hold, and
// how long. It mirrors upstream's SignPlugin, and is wider: Sign may read other
// objects than the pod. It cannot refuse to sign. The signature of a pod covers
// all plugins of the profile. Answers are kept for any number of pods, for as
// long as Locality and Epoch say that they hold.
type SignPlugin struct {
	// Sign appends to the key all that PreFilter, Filter, PreScore and Score read of the
	// pod, and of other objects on its behalf (the Services that select it, say): equal
	// bytes for pods that they cannot tell apart. nil means that they read nothing of the
	// pod.
	Sign func(key []byte, t *table.Table, p *object.Pod) []byte
	// SignRevision is set where Sign reads other objects than the pod: the number grows
	// whenever Sign may say something else of the pod. Where that is not known of the pod,
	// Sign is called at every attempt. These objects change with events, which
	// EventsToRegister lists where they may help, but for the pod's own claims.
	SignRevision func(t *table.Table, p *object.Pod) (revision uint64, known bool)
	// Locality of Filter and Score.
	Locality Locality
	// Epoch, when set, changes whenever answers may have changed on rows that
	// did not change themselves. Kept answers of another epoch are dropped.
	Epoch func(t *table.Table) uint64
}

// Locality says what a plugin's answer for one row depends on. It decides
// which changes make a kept answer stale.
type Locality uint8

const (
	// NodeOnly: the node object of the row. Answers are kept for all classes, unless the
	// plugin is Costly or can fail.
	NodeOnly Locality = iota
	// NodeAndPods: the node and the pods placed on it.
	NodeAndPods
	// Domains: the pods of whole topology domains. Such plugins answer by
	// cells (CellFilter, CellScore).
	Domains
	// Anything: things that the table may not hold. Nothing is kept of the
	// answers: the plugin is asked afresh in each decision.
	Anything
)

// PreFilterResult is what PreFilter returns.
type PreFilterResult struct {
	// State is handed to Filter. It may be a Releaser.
	State any
	// Rules, when set, say as data what Filter does.
	Rules
	// Skip: the plugin's Filter has nothing to say about this pod.
	Skip bool
	// NodeNames, when not nil, names the only nodes that can be feasible.
	NodeNames []string
	// Status, when not nil, rejects the pod as a whole (Unschedulable,
	// UnschedulableAndUnresolvable) or reports a failure (Error).
	Status *decision.Status
}

// Rules are the rule of a filter as data, at most one of them. The engine follows it without
// Filter where that is faster, as in a search for victims.
type Rules struct {
	// Sums are all that Filter compares: it writes what sums.Verdicts writes.
	Sums []sums.Sum
	// Conflicts reports whether the pod cannot be on a node with the other. Filter writes
	// Conflict if there is one that it cannot be with, else Fits.
	Conflicts func(other *object.Pod) bool
}

// PreScoreResult is what PreScore returns.
type PreScoreResult struct {
	// State is handed to Score. It may be a Releaser.
	State any
	// Headroom, when set, is what Score computes. The engine then computes it without
	// Score where that is faster. NormalizeScore is nil.
	Headroom headroom.Score
	// Skip: the plugin's Score has nothing to say about this pod.
	Skip bool
	// Status, when not nil, reports a failure.
	Status *decision.Status
}

// Releaser is a State that takes its buffers back for reuse. Release is called when nobody
// looks at the State any more. It is not called for every State, and for none of a plugin
// whose Locality is NodeOnly.
type Releaser interface{ Release() }

// Input is what a kernel reads. Kernels may not change any of it.
type Input struct {
	Table *table.Table
	// Pod is the pod at hand, or another with the same signature: a kernel may
	// read nothing of the pod that Sign leaves out.
	Pod *object.Pod
	// State is what the plugin's own PreFilter (for Filter) or PreScore (for
	// Score) prepared.
	State any
	// Rules are those that the plugin's PreFilter returned.
	Rules
}

// Verdict is a Filter's answer for one row: 0 lets the pod through; any other
// value is the plugin's own code for why not, which Explain turns into words.
// Rows with equal verdicts have equal explanations.
type Verdict uint64

// Fits is the verdict of a filter that does not object.
const Fits Verdict = 0

// Conflict is the verdict of a filter whose rule is Conflicts.
const Conflict Verdict = 1

// Nobody has a priority below this.
const Nobody int32 = math.MinInt32

// FilterPlugin rejects nodes, as upstream's FilterPlugin does: many rows a
// call, and without words until somebody asks for them. A plugin sets Filter or
// CellFilter, and Explain.
type FilterPlugin struct {
	// Filter writes the verdict of rows[i] to out[i], which is as long.
	// Rows may come in any order, and some may be without a node; what is
	// written for those is ignored.
	Filter func(in *Input, rows []table.Row, out []Verdict)
	// CellFilter stands in for Filter where Locality is Domains.
	CellFilter *CellFilter
	// ErrorsFrom, when not 0, is the lowest verdict that says nothing about the
	// node: deciding failed there, and with it the attempt, unless an earlier
	// filter rejects the node.
	ErrorsFrom Verdict
	// Explain says what a verdict other than Fits means that Filter wrote for the
	// row; the framework adds the plugin's name. The code is Unschedulable or
	// UnschedulableAndUnresolvable, and Error for a verdict from ErrorsFrom on.
	Explain func(in *Input, row table.Row, v Verdict) decision.Blocker
	// Costly: a verdict takes long to find out, and so does a score. Then neither is
	// asked for ahead of the pod's turn, nor where an earlier filter rejects the row.
	// Filter and Score may keep what they find out: they are called for different
	// rows at a time, and never for two classes at once.
	Costly bool
	// Alone, when set, reports whether Filter keeps what it learns about other rows, and
	// so must not be called concurrently for one class.
	Alone func(in *Input) bool
}

// ScorePlugin ranks nodes, as upstream's ScorePlugin and its ScoreExtensions
// do. A plugin sets Score or CellScore.
type ScorePlugin struct {
	// Score writes the raw score of rows[i] to out[i].
	Score func(in *Input, rows []table.Row, out []int64)
	// CellScore stands in for Score where Locality is Domains.
	CellScore *CellScore
	// NormalizeScore maps a raw score to 0..100, given the extremes of the raw
	// scores over the feasible nodes. nil: raw scores are final.
	NormalizeScore func(raw, min, max int64) int64
}

// ReservePlugin keeps a plugin's own state of pods that are assumed on a node,
// as upstream's ReservePlugin does.
type ReservePlugin struct {
	// Reserve is called with the chosen node before the pod is assumed for good; a status
	// rejects the node.
	Reserve func(t *table.Table, p *object.Pod, node string) *decision.Status
	// Unreserve undoes Reserve. It is called in reverse order of the plugins,
	// also for plugins whose Reserve was not reached.
	Unreserve func(t *table.Table, p *object.Pod, node string)
	// RevertWrites returns the writes that undo, before Unreserve, what was written to
	// the API for a pod that is not bound after all. It is not called for pods that are
	// deleted.
	RevertWrites func(t *table.Table, p *object.Pod, node string) []Write
	// Keeper is set for a plugin that keeps more of the pod than is assumed in the table.
	Keeper Keeper
}

// Keeper hands over what a plugin keeps of pods from Reserve to the end of their binding.
type Keeper interface {
	// Kept returns what is kept of the pod, nil for nothing.
	Kept(p *object.Pod) *Kept
	// Keep restores it in another plugin with an equal table.
	Keep(t *table.Table, p *object.Pod, k *Kept)
}

// Kept is what a plugin keeps of a pod from Reserve to the end of its binding.
type Kept struct {
	Objects []KeptObject `json:",omitempty"`
	Name    string       `json:",omitempty"` // of an object that is made
	Done    bool         `json:",omitempty"` // the plugin's write for the pod was sent, or is not needed
}

// KeptObject is an object as it is to be, or as it was.
type KeptObject struct {
	Object  object.Object `json:"-"`
	Changed bool          `json:",omitempty"`
	Driver  string        `json:",omitempty"`
}

// Notice is an API event of type Normal about a pod.
type Notice struct {
	Reason, Action, Note string
	// WaitedDevices lists the devices of the pod's claims that the pod may have to wait
	// for.
	WaitedDevices []WaitedDevice
}

// WaitedDevice is a device of a pod that waits for its devices.
type WaitedDevice struct {
	Driver      string
	Conditional bool // it has binding conditions
}

// Why a wait for devices failed.
var (
	ErrDeviceBindingFailed  = errors.New("device binding failed")
	ErrDeviceBindingTimeout = errors.New("device binding timeout")
)

// PermitResult is a Permit plugin's answer.
type PermitResult struct {
	// Status is nil to let the pod go; Code Wait holds it; others reject it.
	Status *decision.Status
	// Timeout bounds a Wait, itself bounded by 15 minutes; after it the pod
	// is rejected.
	Timeout time.Duration
	// Allow and Reject end the wait of other pods for this plugin.
	Allow, Reject []types.UID
}

// PreBindPlugin prepares the binding in the API, as upstream's PreBindPlugin
// does. It does not write itself and does not block: it returns what is to be
// written, and is asked later whether the writes have had their effect.
type PreBindPlugin struct {
	// PreBind returns what must be written before the pod may be bound.
	PreBind func(t *table.Table, p *object.Pod, node string) ([]Write, *decision.Status)
	// WaitNotice, called when all writes are done, returns the event that says what the
	// pod may have to wait for now; nil for none.
	WaitNotice func(t *table.Table, p *object.Pod, node string) *Notice
	// WritesDone is called when all writes are carried out, and again whenever an object
	// or the pod's node changes, until it returns nil, which lets the pod go, or a status
	// that rejects it; Code Wait means not yet. A nil function waits for nothing.
	WritesDone func(t *table.Table, p *object.Pod, node string) *decision.Status
	// WritesTimeout bounds how long the plugin is asked.
	WritesTimeout Timeout
}

// Timeout is how long something may take, and the error of an attempt for which it takes
// longer.
type Timeout struct {
	After time.Duration
	Err   error
}
