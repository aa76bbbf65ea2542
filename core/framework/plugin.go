package framework

import (
	"errors"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
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
	// Less reports whether a comes before b in the active queue (QueueSortPlugin).
	Less func(a, b *QueuedPodInfo) bool

	// PreFilter prepares Filter (PreFilterPlugin). Its result is kept for all pods with one
	// signature, so that it does not run for each pod.
	PreFilter func(t *table.Table, p *object.Pod) PreFilterResult
	// RejectPod returns why the pod cannot be placed anywhere now (Code Unschedulable), nil if
	// it may be. depends reports whether pods that come or go may change the answer. nominated
	// are the pods that are nominated to nodes, the pod itself included.
	// RejectPod runs after PreFilter, which must be set, in each decision, so that it may read
	// sums over all pods; a result of PreFilter is kept for all pods with the same signature.
	RejectPod func(t *table.Table, p *object.Pod, nominated quota.Nominated) (why *decision.Status, depends bool)
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
	// Permit may approve the pod on the node, which is the zero result, hold it (Code
	// Wait), or reject it (PermitPlugin).
	Permit func(t *table.Table, p *object.Pod, node string) PermitResult
	PreBindPlugin
	// Bind returns true if the pod is to be bound through the API's binding subresource, or
	// false to leave binding to the next plugin (BindPlugin).
	Bind func(p *object.Pod, node string) bool
	// PostBind is called after the pod was bound (PostBindPlugin).
	PostBind func(p *object.Pod, node string)

	// PodGroup holds the extension points for pod groups, nil for none.
	PodGroup *PodGroupPlugin
	// Hosted holds what a Host adds to a plugin that is written against upstream's
	// framework; nil for a native plugin.
	Hosted *HostedPlugin
}

// Reads lists the kinds of objects that a plugin looks up, and what holds while these
// cannot be listed.
type Reads struct {
	Kinds []object.Kind
	// Optional means that, while a kind cannot be listed, the plugin decides as if there were no
	// such objects, which places no pod wrongly. Otherwise only pods that PreFilter skips are
	// placed meanwhile.
	Optional bool
	// Groups is set if labels put pods of its profile into groups, and says how.
	Groups *GroupRules
	// Quotas is set if the plugin bounds pods by ElasticQuotas. All preemption of its profile
	// follows them then.
	Quotas *QuotaRules
}

// GroupRules are how labels put the pods of a profile into groups: the label of a PodGroup of
// scheduler-plugins, else those of groups without an object. The name of a group is an
// object.GroupName.
type GroupRules struct {
	// Labels are the prefixes of the labels PREFIX/name, which put pods into groups without an
	// object. The first that a pod has counts.
	Labels []string
	// LeaveStatus is set if others write the status of the PodGroups, so that Berth must not.
	LeaveStatus bool
}

// Name returns the name of the group in which the labels put a pod, "" for none.
func (r *GroupRules) Name(labels map[string]string) string {
	if name := labels[object.PodGroupLabel]; name != "" {
		return object.GroupName(object.SchedulerPlugins, name)
	}
	for _, source := range r.Labels {
		if name := labels[object.NameLabel(source)]; name != "" {
			return object.GroupName(source, name)
		}
	}
	return ""
}

// QuotaRules are how a profile counts ElasticQuotas.
type QuotaRules struct {
	// UnlistedZero makes what a min or max does not name count as 0 (quota.Ask).
	UnlistedZero bool
}

// Remedy is what a PostFilter plugin may do for a pod that fits no node.
type Remedy uint8

const (
	NoRemedy    Remedy = iota // nothing, but return the reason
	Preemption                // name victims of lower priority
	OtherRemedy               // anything else
)

// Remedy returns what the plugin's PostFilter may do for the pod now; OtherRemedy if the
// plugin does not say.
func (p *Plugin) Remedy(t *table.Table, pod *object.Pod) Remedy {
	if p.PostFilterMay == nil {
		return OtherRemedy
	}
	return p.PostFilterMay(t, pod)
}

// SignPlugin declares for which other pods the plugin's answers for a pod hold, and how
// long. It is like upstream's SignPlugin, with differences: Sign may read other objects
// than the pod, and cannot refuse to sign. The signature of a pod covers all plugins of the
// profile. Answers are kept for any number of pods, for as long as Locality and Epoch
// allow.
type SignPlugin struct {
	// Sign appends to the key all that PreFilter, Filter, PreScore and Score read of the
	// pod, and of other objects on its behalf (the Services that select it, say): equal
	// bytes for pods that they cannot tell apart. nil means that they read nothing of the
	// pod.
	Sign func(key []byte, t *table.Table, p *object.Pod) []byte
	// SignRevision is set if Sign reads other objects than the pod. It returns a number
	// that grows whenever Sign may append something else for the pod. If known is false,
	// Sign is called at every attempt. Changes of these objects are events, which
	// EventsToRegister lists where they may help, except for the pod's own claims.
	SignRevision func(t *table.Table, p *object.Pod) (revision uint64, known bool)
	// Locality is that of Filter and Score.
	Locality Locality
	// Epoch, when set, returns a number that changes whenever answers may have changed on
	// rows that did not change themselves. Answers kept from another epoch are dropped.
	Epoch func(t *table.Table) uint64
}

// Locality is what a plugin's answer (verdict or score) for one row depends on. It decides
// which changes of the cluster make a kept answer stale, and so how long the engine may
// reuse it.
type Locality uint8

const (
	// NodeOnly: the node object of the row alone. Answers are shared by all classes of
	// pods, unless the plugin is Costly or can fail.
	NodeOnly Locality = iota
	// NodeAndPods: the node and the pods placed on it.
	NodeAndPods
	// Domains: the pods of whole topology domains. Such plugins answer by
	// cells (CellFilter, CellScore).
	Domains
	// Anything: data that the table may not hold. No answer is kept: the plugin is asked
	// anew in each decision.
	Anything
)

// PreFilterResult is what PreFilter returns.
type PreFilterResult struct {
	// State is passed to Filter in Input.State. It may be a Releaser.
	State any
	// Rules, when set, state Filter's rule as data.
	Rules
	// Skip means that Filter is not called for this pod: it rejects no node.
	Skip bool
	// Alone means that Filter reuses what it learnt about other rows, so that it must not be
	// called concurrently for one class.
	Alone bool
	// NodeNames, when not nil, names the only nodes that can be feasible.
	NodeNames []string
	// Status, when not nil, rejects the pod as a whole (Unschedulable,
	// UnschedulableAndUnresolvable) or reports a failure (Error).
	Status *decision.Status
}

// Rules state the rule of a filter as data; at most one field is set. The engine applies it
// without calling Filter where that is faster, as in a search for victims.
type Rules struct {
	// Sums are all that Filter compares: its verdicts are those of sums.Verdicts.
	Sums []sums.Sum
	// Conflicts reports whether the pod cannot be on a node with the other. Filter writes
	// Conflict if there is one that it cannot be with, else Fits.
	Conflicts func(other *object.Pod) bool
}

// PreScoreResult is what PreScore returns.
type PreScoreResult struct {
	// State is passed to Score in Input.State. It may be a Releaser.
	State any
	// Headroom, when set, states as data what Score computes. The engine then computes it
	// without calling Score where that is faster. NormalizeScore must be nil.
	Headroom headroom.Score
	// Skip means that Score is not called for this pod: it gives no node a score.
	Skip bool
	// Status, when not nil, reports a failure.
	Status *decision.Status
}

// Releaser is a State whose memory can be reused. Release is called when nothing reads the
// State any more. It is not called for every State, and never for a plugin whose Locality
// is NodeOnly.
type Releaser interface{ Release() }

// Input is what Filter and Score read. They may not change any of it.
type Input struct {
	Table *table.Table
	// Pod is the pod at hand, or another with the same signature: Filter and Score may read
	// nothing of the pod that Sign leaves out.
	Pod *object.Pod
	// State is what the plugin's own PreFilter (for Filter) or PreScore (for
	// Score) prepared.
	State any
	// Rules are those that the plugin's PreFilter returned.
	Rules
}

// Verdict is a filter's answer for one row: Fits accepts the node; any other value is the
// plugin's own code for the reason, which Explain turns into words. Rows with equal
// verdicts have equal explanations.
type Verdict uint64

// Fits is the verdict of a filter that accepts the node.
const Fits Verdict = 0

// Conflict is the verdict of a filter with Rules.Conflicts that rejects the node.
const Conflict Verdict = 1

// Nobody is the lowest priority. Passed as the parameter below, it means that no pod leaves, since
// no pod has a lower one.
const Nobody int32 = math.MinInt32

// FilterPlugin rejects nodes, as upstream's FilterPlugin does. Filter answers for many rows in one
// call, with a number for each. Explain puts such a number into words. A plugin sets Explain, and
// either Filter or CellFilter.
type FilterPlugin struct {
	// Filter writes the verdict of rows[i] to out[i], which is as long.
	// Rows may come in any order, and some may be without a node; what is
	// written for those is ignored.
	Filter func(in *Input, rows []table.Row, out []Verdict)
	// CellFilter stands in for Filter where Locality is Domains.
	CellFilter *CellFilter
	// ErrorsFrom, when not 0, is the lowest verdict that is an error and not a rejection.
	// It fails the attempt, unless an earlier filter rejects the node.
	ErrorsFrom Verdict
	// Explain returns the code and reasons of a verdict other than Fits that Filter wrote
	// for the row; the framework adds the plugin's name. The code is Unschedulable or
	// UnschedulableAndUnresolvable, and Error for a verdict from ErrorsFrom on.
	Explain func(in *Input, row table.Row, v Verdict) decision.Blocker
	// Costly is set if a verdict, or a score, takes long to compute. The plugin is then
	// asked only about rows that no earlier filter rejects. Filter and Score may keep what
	// they compute: they are called concurrently for different rows, and never for two
	// classes at once.
	Costly bool
}

// ScorePlugin ranks nodes, as upstream's ScorePlugin and its ScoreExtensions
// do. A plugin sets Score or CellScore.
type ScorePlugin struct {
	// Score writes the raw score of rows[i] to out[i]. Rows may come in any order, and some
	// may be infeasible or without a node; what is written for those is ignored. It may be
	// called concurrently on disjoint rows.
	Score func(in *Input, rows []table.Row, out []int64)
	// CellScore stands in for Score where Locality is Domains.
	CellScore *CellScore
	// NormalizeScore, when set, returns the score, 0 to 100, for a raw score; min and max
	// are the extremes of the raw scores over the feasible nodes. nil: raw scores are
	// final.
	NormalizeScore func(raw, min, max int64) int64
}

// ReservePlugin keeps a plugin's own state of pods that are assumed on a node, as
// upstream's ReservePlugin does.
type ReservePlugin struct {
	// Reserve is called once the pod was assumed on the chosen node. A status ends the attempt:
	// the pod leaves the node again, after Unreserve.
	Reserve func(t *table.Table, p *object.Pod, node string) *decision.Status
	// Unreserve undoes Reserve. It is called in reverse order of the plugins,
	// also for plugins whose Reserve was not reached.
	Unreserve func(t *table.Table, p *object.Pod, node string)
	// RevertWrites returns the writes that undo what was written to the API for a pod that
	// is not bound after all. It is called before Unreserve, and not for pods that are
	// deleted.
	RevertWrites func(t *table.Table, p *object.Pod, node string) []Write
	// Keeper saves for snapshots what the plugin keeps of pods beside the table; nil if that
	// is nothing.
	Keeper Keeper
}

// Keeper saves and restores what a plugin keeps of pods between Reserve and the end of
// their binding, for snapshots.
type Keeper interface {
	// Kept returns what the plugin keeps of the pod, nil for nothing.
	Kept(p *object.Pod) *Kept
	// Keep restores what is kept of the pod in another instance of the plugin, with an
	// equal table.
	Keep(t *table.Table, p *object.Pod, k *Kept)
}

// Kept is what a plugin keeps of a pod between Reserve and the end of its binding.
type Kept struct {
	Objects []KeptObject `json:",omitempty"` // in the states that the plugin keeps of them
	Name    string       `json:",omitempty"` // of an object that the scheduler creates
	Done    bool         `json:",omitempty"` // the plugin's write for the pod was sent, or is not needed
}

// KeptObject is an object in the state that a plugin keeps of it; VolumeBinding keeps the state
// that the object is to have once it is bound. Changed is set if the state has to be written;
// Driver is the CSI driver that is to provision a volume, "" for other objects.
type KeptObject struct {
	Object  object.Object `json:"-"`
	Changed bool          `json:",omitempty"`
	Driver  string        `json:",omitempty"`
}

// Notice is an API event of type Normal about a pod, to be published, such as that its
// binding waits for its devices.
type Notice struct {
	Reason, Action, Note string
	// WaitedDevices are the devices allocated to the pod for which it may have to wait.
	WaitedDevices []WaitedDevice
}

// WaitedDevice is an allocated device of a pod that waits, before it is bound, for its
// devices to be ready.
type WaitedDevice struct {
	Driver      string
	Conditional bool // it has binding conditions that are to become true
}

// Errors of an attempt that waited for devices in vain.
var (
	ErrDeviceBindingFailed  = errors.New("device binding failed")
	ErrDeviceBindingTimeout = errors.New("device binding timeout")
)

// PermitResult is what Permit returns.
type PermitResult struct {
	// Status is nil to approve the pod; Code Wait holds it; other codes reject it.
	Status *decision.Status
	// Timeout bounds a Wait, itself bounded by 15 minutes; after it the pod
	// is rejected.
	Timeout time.Duration
	// Allow and Reject are pods, waiting for this plugin, that are to be approved or
	// rejected now.
	Allow, Reject []types.UID
}

// PreBindPlugin prepares the binding in the API, as upstream's PreBindPlugin does. It
// neither writes itself nor blocks: it returns the writes, and is asked later whether they
// have had their effect.
type PreBindPlugin struct {
	// PreBind returns what must be written before the pod may be bound. A status rejects the pod.
	PreBind func(t *table.Table, p *object.Pod, node string) ([]Write, *decision.Status)
	// WaitNotice, when set, is called when all writes are done. It returns the event that
	// names what the pod may have to wait for now; nil for none.
	WaitNotice func(t *table.Table, p *object.Pod, node string) *Notice
	// WritesDone is called when all writes are done, and again whenever an object or the
	// pod's node changes, until it returns nil, which lets the binding go on, or a status
	// that rejects the pod; Code Wait means not yet. A nil function waits for nothing.
	WritesDone func(t *table.Table, p *object.Pod, node string) *decision.Status
	// WritesTimeout bounds how long WritesDone may answer Wait.
	WritesTimeout Timeout
}

// Timeout is the longest time that something may take, and the error of the attempt if it
// takes longer.
type Timeout struct {
	After time.Duration
	Err   error
}
