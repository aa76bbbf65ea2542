package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/classes"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// A run is decisions that follow each other, for pods of one class that the hosted
// plugins sign alike. Where nothing else happens between two of them but that the pod
// of the first is placed, the hosted plugins would answer the same about every other
// node: that is what kube-scheduler takes a signature to promise when it keeps an order of
// nodes (framework/runtime/batch.go). So a run has a view in which the answers of the
// hosted plugins are kept like those of the others. It ends with whatever else happens.
//
// kube-scheduler asks the filters about the node that it is about to take, also where it kept
// that node's place in the order. So a kept answer alone never lets a node pass, and a
// pod is never rejected by kept answers.

// runLasts is how long the answers of hosted plugins may be reused, as in kube-scheduler:
// plugins may read what Berth does not see change.
const runLasts = 500 * time.Millisecond

// run is a series of decisions about pods of one class with one signature by the hosted
// plugins, and what is kept from the last decision for the next.
type run struct {
	profile   *profile.Profile
	class     string    // signature of the class
	signature string    // of the pods, by the hosted plugins
	began     time.Time // when the run began

	decision   uint64       // number of the run's last decision
	around     surroundings // at the end of that decision
	podChanges uint64       // the table's PodChangeCount at its end
	chosen     types.UID    // UID of its pod
	row        table.Row    // the row chosen for that pod

	questions int         // rows that hosted plugins were asked about in the run
	view      *signedView // nil: too few questions so far to ask about all rows
}

// surroundings are revision numbers of all that hosted plugins may read but the pods of
// nodes. Two that are equal mean that nothing of it changed in between.
type surroundings struct{ told, updates, nodes, columns, objects, namespaces, owners, epochs uint64 }

// runs counts decisions and questions to hosted plugins, and keeps the run of the last
// decision.
type runs struct {
	last      *run   // nil: the last decision belongs to none
	decisions uint64 // so far
	questions int    // to hosted plugins about a row, for the decision at hand
	told      uint64 // calls of Told
}

// next begins a decision: it counts it, and sets the number of questions to hosted plugins
// to 0. The run of the last decision is kept until record.
func (l *runs) next() {
	l.decisions++
	l.questions = 0
}

// Told records a change that no table shows but that hosted plugins may see. It ends the
// present run: kept answers of hosted plugins are not used again.
func (e *Engine) Told() { e.runs.told++ }

// surroundings returns the present revisions of the nodes and objects that hosted plugins
// may read, and of what the class of k depends on.
func (e *Engine) surroundings(k *classes.Keys) surroundings {
	t := e.table
	w := surroundings{told: e.runs.told, updates: t.Shown().Updates(), nodes: t.NodeRevision(), columns: t.ColumnRevision(),
		namespaces: t.Namespaces().Revision(), owners: t.SelectorOwners().Revision(), epochs: k.Epoch(t)}
	for kind := range object.Kinds {
		w.objects += t.Objects().Revision(kind)
	}
	return w
}

// runOf returns the run that the decision continues, or a new run. It returns nil if the
// pod has no signature, hosted plugins are not asked about nodes, or nominations, extenders
// or a narrowing make the decision depend on more.
func (d *decider) runOf(r *Request) *run {
	host, v, e := r.Profile.Host, d.view, d.engine
	if host == nil || len(v.hostedFilters) == 0 && !d.hasHostedScores() {
		return nil
	}
	signature, signed := host.Sign(r.Pod)
	if !signed || d.narrowed != nil || d.extenders != nil || v.failed != nil || d.anyNominated() {
		return nil
	}
	if x := e.runs.last; x != nil && x.profile == r.Profile && x.signature == signature && x.class == v.class.Signature && x.goesOn(e, v.keys) {
		return x
	}
	return &run{profile: r.Profile, class: v.class.Signature, signature: signature, began: e.table.Now()}
}

// anyNominated reports whether any pod is nominated to any node.
func (x *feasibility) anyNominated() bool {
	n := x.nominated.Nominator
	return n != nil && len(n.NominatedNodes()) > 0
}

// goesOn reports whether the decision under way follows the run's last one, at most runLasts after
// the run began, and nothing changed in between except that the pod was placed on its row.
func (x *run) goesOn(e *Engine, k *classes.Keys) bool {
	if x.decision+1 != e.runs.decisions || e.table.Now().Sub(x.began) > runLasts || x.around != e.surroundings(k) {
		return false
	}
	came, others := 0, 0
	known := e.table.PodChangesAfter(x.podChanges, func(p table.PodChange) {
		switch {
		case p.Try:
		case p.Came && p.Pod.UID == x.chosen && p.Row == x.row:
			came++
		default:
			others++
		}
	})
	return known && came == 1 && others == 0
}

// record ends the decision d. It keeps the run x with the chosen row, so that the next pod with the
// same signature can reuse the answers of hosted plugins. If x is nil, no node was chosen, or the
// pod was rejected, there is no run to continue.
func (l *runs) record(x *run, d *decider) {
	if l.last = nil; x == nil || d.Row < 0 || d.Rejected != nil {
		return
	}
	x.questions += l.questions
	x.decision, x.around, x.podChanges = l.decisions, d.engine.surroundings(d.view.keys), d.engine.table.PodChangeCount()
	x.chosen, x.row = d.pod.UID, d.Row
	l.last = x
}

// decide decides with the run's view, which it makes once hosted plugins were asked about as many
// rows in the run as the table has. It returns the decider that holds the choice; nil if x is nil
// or there is no view yet. It also returns nil, and the run begins anew, if the view does not
// settle the decision or cannot be made.
func (x *run) decide(d *decider) *decider {
	if x == nil || x.view == nil && x.questions < d.engine.table.Rows() {
		return nil
	}
	if x.view == nil {
		x.view = newSignedView(d)
	}
	if x.view != nil {
		if by := x.view.decide(d); by != nil {
			return by
		}
	}
	*x = run{profile: x.profile, class: x.class, signature: x.signature, began: d.engine.table.Now()}
	return nil
}
