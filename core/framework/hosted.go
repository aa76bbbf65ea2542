package framework

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// HostedPlugin holds what a plugin has that is written against another contract and that
// a Host runs. Its Locality is Anything: it may read what it likes. So it is asked in each
// decision, on one node after the other. It leaves PreScore, Score and NormalizeScore nil.
type HostedPlugin struct {
	// Host runs the plugin. The hosted plugins of a profile have one Host.
	Host Host
	// PreScoreRows runs PreScore with the feasible rows.
	PreScoreRows func(t *table.Table, p *object.Pod, feasible []table.Row) PreScoreResult
	// ScoreRows stands in for Score and NormalizeScore: it writes the final score
	// of each feasible row, 0..100. A status is a failure.
	ScoreRows func(in *Input, feasible []table.Row, out []int64) *decision.Status
	// RawScoreRows and NormalizeRows are the two halves of ScoreRows. RawScoreRows scores
	// any rows. NormalizeRows normalises the scores of all feasible rows; nil if the
	// plugin does not normalise.
	RawScoreRows  func(in *Input, rows []table.Row, out []int64) *decision.Status
	NormalizeRows func(in *Input, feasible []table.Row, scores []int64) *decision.Status
	// Bounded is set if the score that ScoreRows gives a row does not depend on the other
	// rows. It may then be called for some of the feasible rows.
	Bounded bool
	// Blocking names the points at which the plugin may block. The Host runs it there,
	// outside of the machine.
	Blocking Blocking
}

// PreScoresRows reports whether the plugin is hosted and runs PreScore with rows.
func (p *Plugin) PreScoresRows() bool { return p.Hosted != nil && p.Hosted.PreScoreRows != nil }

// ScoresRows reports whether the plugin is hosted and scores.
func (p *Plugin) ScoresRows() bool { return p.Hosted != nil && p.Hosted.ScoreRows != nil }

// Blocking returns the points at which the plugin may block.
func (p *Plugin) Blocking() Blocking {
	if p.Hosted == nil {
		return Blocking{}
	}
	return p.Hosted.Blocking
}

// Blocking is a set of extension points at which plugins may block.
type Blocking struct{ PreBind, Bind, PostBind bool }

// Host runs plugins that are written against another contract. The owner of the
// machine calls it.
type Host interface {
	// Begin is called before the first plugin is asked in an attempt.
	Begin(t *table.Table, p *object.Pod)
	// Show is called when the cycle of a pod group has placed a pod for a try, or has taken
	// it away again: plugins see the nodes so.
	Show(t *table.Table)
	// Sign returns the hosted plugins' signature of the pod. They answer the same for two
	// pods with one signature, as long as such pods are placed and nothing else changes.
	// signed is false if one of them does not sign the pod. Begin has been called.
	Sign(p *object.Pod) (signature string, signed bool)
	// Attempt returns what the host knows of the pod's attempt, for points at which
	// plugins may block.
	Attempt(uid types.UID) any
	// ActivatePods is called when no plugin has rejected the pod and it is assumed, and
	// when it is bound.
	ActivatePods(p *object.Pod)
	// End is called when the attempt is over.
	End(uid types.UID)
}
