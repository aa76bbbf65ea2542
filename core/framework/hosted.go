package framework

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// HostedPlugin holds what a plugin has that is written against upstream's framework (or
// another contract) and that a Host runs. Its Locality is Anything: it may read what it
// likes, so it is asked anew in each decision. It leaves PreScore, Score and NormalizeScore
// of Plugin nil.
type HostedPlugin struct {
	// Host runs the plugin. The hosted plugins of a profile have one Host.
	Host Host
	// PreScoreRows, when set, runs PreScore with the feasible rows.
	PreScoreRows func(t *table.Table, p *object.Pod, feasible []table.Row) PreScoreResult
	// ScoreRows, when set, does the work of Score and NormalizeScore: it writes the final
	// score of feasible[i], 0 to 100, to out[i]. A status other than nil or Success is a
	// failure.
	ScoreRows func(in *Input, feasible []table.Row, out []int64) *decision.Status
	// RawScoreRows and NormalizeRows are the two halves of ScoreRows. RawScoreRows scores
	// any rows. NormalizeRows normalises the scores of all feasible rows; nil if the
	// plugin does not normalise.
	RawScoreRows  func(in *Input, rows []table.Row, out []int64) *decision.Status
	NormalizeRows func(in *Input, feasible []table.Row, scores []int64) *decision.Status
	// Bounded is set if the score that ScoreRows gives a row does not depend on the other
	// rows. It may then be called for some of the feasible rows.
	Bounded bool
	// Blocking names the extension points at which the plugin may block. The Host runs it
	// there, outside of the machine's loop.
	Blocking Blocking
}

// PreScoresRows reports whether the plugin is hosted and implements PreScore.
func (p *Plugin) PreScoresRows() bool { return p.Hosted != nil && p.Hosted.PreScoreRows != nil }

// ScoresRows reports whether the plugin is hosted and implements Score.
func (p *Plugin) ScoresRows() bool { return p.Hosted != nil && p.Hosted.ScoreRows != nil }

// Blocking returns the extension points at which the plugin may block; none for a plugin
// that is not hosted.
func (p *Plugin) Blocking() Blocking {
	if p.Hosted == nil {
		return Blocking{}
	}
	return p.Hosted.Blocking
}

// Blocking is a set of extension points at which plugins may block.
type Blocking struct{ PreBind, Bind, PostBind bool }

// Host runs the hosted plugins of a profile. Only the owner of the machine calls it.
type Host interface {
	// Begin is called at the start of each scheduling attempt of a pod, before any plugin
	// is asked.
	Begin(t *table.Table, p *object.Pod)
	// Show is called when the scheduling of a pod group has placed a pod for a trial, or
	// has removed it again, so that plugins see the nodes in that state.
	Show(t *table.Table)
	// Sign returns the hosted plugins' common signature of the pod, after Begin. They
	// answer the same for two pods with one signature, as long as only such pods are placed
	// and nothing else changes. signed is false if one of the plugins does not sign the
	// pod.
	Sign(p *object.Pod) (signature string, signed bool)
	// Attempt returns the host's own record of the pod's attempt (its cycle state), for the
	// extension points at which plugins may block.
	Attempt(uid types.UID) any
	// ActivatePods is called when the pod was assumed and no plugin rejected it, and again
	// when it is bound, for plugins that ask for pods to be activated then.
	ActivatePods(p *object.Pod)
	// End is called when the pod's attempt is over, bound or not.
	End(uid types.UID)
}
