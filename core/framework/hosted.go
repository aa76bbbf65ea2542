package framework

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// HostedPlugin is what a plugin has besides, or instead, that is written against
// another contract and that a Host runs. Its Locality is Anything: it may read
// what it likes. So it is asked in each decision, on one node after the other.
type HostedPlugin struct {
	// Host runs the plugin. The hosted plugins of a profile have one Host.
	Host Host
	// PreScoreRows is PreScore, told of the feasible rows.
	PreScoreRows func(t *table.Table, p *object.Pod, feasible []table.Row) PreScoreResult
	// ScoreRows stands in for Score and NormalizeScore: it writes the final score
	// of each feasible row, 0..100. A status is a failure.
	ScoreRows func(in *Input, feasible []table.Row, out []int64) *decision.Status
	// RawScoreRows and NormalizeRows are the two halves of ScoreRows: the scores as they
	// are before they are normalised, of whichever rows, and their normalisation, which is
	// told of all feasible rows; nil: there is none.
	RawScoreRows  func(in *Input, rows []table.Row, out []int64) *decision.Status
	NormalizeRows func(in *Input, feasible []table.Row, scores []int64) *decision.Status
	// Bounded: what ScoreRows says of a row does not depend on the others. Then it may
	// be asked about some of the feasible rows alone.
	Bounded bool
	// Blocking tells at which of the points that may block the plugin has
	// something to do. The machine has the Host run it there, outside.
	Blocking Blocking
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
	// Sign returns what the hosted plugins make of the pod: of two pods with the same signature
	// they say the same, as long as nothing changes but that such pods are placed. False
	// where one of them does not sign it. Begin has been called.
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
