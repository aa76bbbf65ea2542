package engine_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// answer is all that a decision says.
type answer struct {
	rejected, node string
	score          int64
	feasible, ties int
	tallies        []decision.Tally
	by             []string
	nodes          []decision.Node
	codes          []decision.Code
	refits         []decision.Blocker
}

// best are the nodes with the highest total.
func (a *answer) best() (names []string) {
	for _, n := range a.nodes {
		if n.Feasible && n.Total == a.score {
			names = append(names, n.Name)
		}
	}
	return names
}

// ask has the engine decide, and, where it found no node, look at some of them
// with pods taken away, as preemption does. The script decides which.
func (w *soak) ask(e *engine.Engine, by *profile.Profile, p *object.Pod, inFull bool, script uint64) answer {
	var nominated engine.Nominator
	if script%4 != 0 {
		nominated = w.nominated
	}
	o := w.decideBy(e, by, p, nominated, rand.New(rand.NewPCG(script, 1)))
	a := answer{score: o.Score, feasible: o.Feasible, ties: o.Ties}
	if o.Rejected != nil {
		a.rejected = fmt.Sprintf("%s by %s: %v %v", o.Rejected.Code, o.Rejected.Plugin, o.Rejected.Reasons, o.Rejected.Err)
	}
	if inFull {
		a.nodes = o.Nodes()
	}
	if o.Row >= 0 {
		a.node = w.Name(o.Row)
		return a
	}
	a.tallies, a.by = o.Tallies(), o.RejectedBy()
	var unschedulable []table.Row
	for r := range table.Row(w.Rows()) {
		if w.Node(r) == nil {
			continue
		}
		code := o.Code(r)
		if a.codes = append(a.codes, code); code == decision.Unschedulable {
			unschedulable = append(unschedulable, r)
		}
	}
	if listed := o.AppendUnschedulable(nil); a.rejected == "" && !slices.Equal(listed, unschedulable) {
		panic(fmt.Sprintf("rows %v are listed as unschedulable, asked one by one %v", listed, unschedulable))
	}
	if o.Rejected == nil && len(w.placed) > 0 {
		a.refits = w.refit(o, p, nominated, rand.New(rand.NewPCG(script, 0)))
	}
	return a
}

// decideBy has the engine decide, now and then with what extenders say.
func (w *soak) decideBy(e *engine.Engine, by *profile.Profile, p *object.Pod, nominated engine.Nominator, r *rand.Rand) *engine.Outcome {
	if r.IntN(8) > 0 {
		return e.Decide(w.request(e, by, p), nominated)
	}
	said := &engine.ExtenderResults{Refused: map[string]decision.Blocker{}, Scores: map[string][]decision.Score{}}
	for _, name := range w.names {
		switch r.IntN(4) {
		case 0:
			said.Refused[name] = decision.Blocker{Code: decision.Unschedulable, Reasons: []string{"extended"}}
		case 1:
			said.Scores[name] = []decision.Score{{Plugin: engine.Extender, Score: int64(r.IntN(11)), Weight: 10}}
			fallthrough
		default:
			said.Passed = append(said.Passed, name)
		}
	}
	if r.IntN(3) == 0 {
		said.Passed = nil // all pass
		clear(said.Refused)
	}
	return e.DecideWithExtenders(w.request(e, by, p), nominated, said)
}

// request is the one for the pod that the engine was given before.
func (w *soak) request(e *engine.Engine, by *profile.Profile, p *object.Pod) *engine.Request {
	of := asked{e, by, p}
	if w.requests[of] == nil {
		w.requests[of] = engine.For(by, p)
	}
	if e.IsStale(w.requests[of]) {
		panic(fmt.Sprintf("pod %s is of another class now, and its request remembers the old one", p.Key()))
	}
	return w.requests[of]
}

type asked struct {
	engine  *engine.Engine
	profile *profile.Profile
	pod     *object.Pod
}

func (w *soak) refit(o *engine.Outcome, p *object.Pod, nominated engine.Nominator, r *rand.Rand) (found []decision.Blocker) {
	for range 4 {
		w.refitWithoutLower(o, p, nominated, r)
	}
	mark := w.Checkpoint()
	defer w.Undo(mark)
	for range 1 + r.IntN(6) {
		p := pickOne(r, w.placed...)
		w.RemovePod(p.UID)
		row, ok := w.Find(p.NodeName)
		if !ok {
			continue
		}
		b := o.Refit(row, nominated)
		if r.IntN(2) == 0 {
			w.AddPod(p, p.NodeName)
		}
		if b == nil {
			b = &decision.Blocker{Plugin: "none"}
		}
		found = append(found, *b)
	}
	return found
}

// refitWithoutLower compares what is said of a row without its pods of lower priority with
// what it is once they are removed.
func (w *soak) refitWithoutLower(o *engine.Outcome, p *object.Pod, nominated engine.Nominator, r *rand.Rand) {
	placed := w.Pod(pickOne(r, w.placed...).UID) // its node may be gone
	if placed == nil {
		return
	}
	row := placed.Row
	var gone, kept []*object.Pod
	some := r.IntN(2) == 0
	for pl := range w.Lower(row, p.Priority) {
		if some && r.IntN(2) == 0 {
			kept = append(kept, pl.Pod)
		} else {
			gone = append(gone, pl.Pod)
		}
	}
	said, known := o.RefitWithoutLower(row, kept, nominated)
	mark := w.Checkpoint()
	defer w.Undo(mark)
	for _, p := range gone {
		w.RemovePod(p.UID)
	}
	if b := o.Refit(row, nominated); known && !reflect.DeepEqual(said, b) {
		panic(fmt.Sprintf("node %s without %d of its pods: said %v, by a try %v", w.Name(row), len(gone), said, b))
	}
}
