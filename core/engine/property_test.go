package engine

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

const seed = 42

// world is a table that changes, and engines that keep views of it.
type world struct {
	*table.Table
	switches  switchboard
	rules     []*rule
	profile   *profile.Profile
	kept      *Engine // keeps all views
	tight     *Engine // keeps few
	pool      []*object.Pod
	nominated podsByNode
	rand      *rand.Rand
	serial    int
	requests  map[asked]*Request
}

func newWorld(t *rapid.T) *world {
	w := &world{Table: table.New(), switches: switchboard{closed: map[string]bool{}}, nominated: podsByNode{}, requests: map[asked]*Request{}}
	w.rand = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	w.rules = rules(&w.switches)
	// Some of the plugins, at random, so that filters and scores come in all
	// combinations.
	w.rules = slices.DeleteFunc(w.rules, func(*rule) bool { return w.rand.IntN(5) == 0 })
	w.profile = buildProfile(w.rules)
	w.kept, w.tight = New(w.Table, seed, 1), New(w.Table, seed, 2)
	for range w.rand.IntN(60) {
		w.SetNode(w.node(50))
	}
	w.tight.cache.budget = 2 * (fixedRows + w.Rows())
	for range 1 + w.rand.IntN(6) {
		w.pool = append(w.pool, w.pod("d"))
	}
	return w
}

func pickOne[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func (w *world) name() string { return fmt.Sprint("node-", w.rand.IntN(70)) }

// node draws one; one in so many has a label that some pods' score cannot take.
func (w *world) node(odd int) *object.Node {
	score := pickOne(w.rand, "0", "10", "10", "50")
	if w.rand.IntN(odd) == 0 {
		score = "51"
	}
	return newNode(w.name(), map[string]string{
		"zone":  pickOne(w.rand, zones...),
		"rank":  pickOne(w.rand, "0", "0", "1", "5", "10", "40", "-3"),
		"score": score,
	}, pickOne[int64](w.rand, 0, 1000, 2000, 4000), pickOne[int64](w.rand, 500, 1000, 4000))
}

// pod draws one; most labels are not there, so that most nodes are feasible.
func (w *world) pod(prefix string) *object.Pod {
	labels := map[string]string{"app": pickOne(w.rand, "x", "y", "z")}
	rare := func(label string, values ...string) {
		if w.rand.IntN(6) == 0 {
			labels[label] = pickOne(w.rand, values...)
		}
	}
	some := strings.Join([]string{w.name(), w.name(), w.name()}, ",")
	more := strings.Join([]string{some, w.name(), w.name(), w.name()}, ",")
	rare("zone", "a", "b", "nowhere")
	rare("pin", "skip", "unschedulable", "unresolvable", "error", "none", some, more)
	rare("set", "skip", "unschedulable", "error", some, more)
	rare("alone", "yes")
	rare("spread", "yes")
	rare("picky", "yes")
	rare("friend", "x", "y")
	rare("unranked", "yes")
	rare("shy", "skip", "skip", "error")
	rare("wild", "yes")
	rare("stretch", "yes")
	w.serial++
	p := newPod(fmt.Sprint(prefix, w.serial), labels, pickOne[int64](w.rand, 0, 100, 100, 1000, 3000), pickOne[int64](w.rand, 0, 100, 1000))
	p.Priority = int32(w.rand.IntN(3))
	if w.rand.IntN(6) == 0 {
		p.NominatedNode = w.name()
	}
	return p
}

func (w *world) setNode(*rapid.T)    { w.SetNode(w.node(5)) }
func (w *world) removeNode(*rapid.T) { w.RemoveNode(w.name()) }

func (w *world) place(*rapid.T) {
	p := w.pod("p")
	if w.rand.IntN(40) == 0 {
		p.Demand.Usage.Scalars = []resource.Scalar{{Name: "example.com/new", Value: 1}}
	}
	w.AddPod(p, w.name())
}

func (w *world) remove(*rapid.T) {
	w.RemovePod(types.UID(fmt.Sprint("p", w.rand.IntN(w.serial+1))))
}

// storm changes more rows than are worth a replay.
func (w *world) storm(t *rapid.T) {
	for range w.Rows()/8 + 2 {
		w.place(t)
	}
}

func (w *world) flip(*rapid.T) {
	zone := pickOne(w.rand, zones...)
	w.switches.closed[zone] = !w.switches.closed[zone]
	w.switches.epoch++
}

func (w *world) nominate(*rapid.T) {
	node, p := w.name(), w.pod("n")
	if w.rand.IntN(3) == 0 { // itself one of those that are decided on
		if p = pickOne(w.rand, w.pool...); w.nominated.NominatedNode(p.UID) != "" {
			return // a pod is nominated once
		}
	}
	if w.nominated[node] = append(w.nominated[node], p); len(w.nominated[node]) > 2 {
		delete(w.nominated, node)
	}
}

func (w *world) newPod(*rapid.T) { w.pool[w.rand.IntN(len(w.pool))] = w.pod("d") }

// decide asks every engine, a new one and the naive evaluation about a pod.
func (w *world) decide(t *rapid.T) {
	p := pickOne(w.rand, w.pool...)
	n := &naive{table: w.Table, rules: w.rules, pod: p}
	want := n.decide(w.nominated)
	ask := func(what string, e *Engine) {
		var nominated Nominator
		if len(w.nominated) > 0 || w.rand.IntN(2) == 0 {
			nominated = w.nominated
		}
		got := answerOf(w.Table, e.Decide(w.request(e, p), nominated))
		if slices.Contains(want.best, got.node) {
			if want.node = got.node; w.profile.Host == nil {
				want.best = nil // every engine is to choose the same
			}
		}
		if w.profile.Host != nil {
			got = settleHosted(got, want)
			if got.node != "" && w.invalidHostedScore(want.rejected) {
				return // on a row that was not asked about
			}
		}
		if diff := differ(got, want); diff != "" {
			t.Fatalf("%s, pod %s %v nominated to %q, priority %d: %s", what, p.UID, p.Labels, p.NominatedNode, p.Priority, diff)
		}
	}
	ask("kept", w.kept)
	ask("tight", w.tight)
	ask("new", New(w.Table, seed, 1))
	ask("plain", NewPlain(w.Table, seed))
	ask("kept, again", w.kept)
}

// request is the one for the pod that the engine was given before.
func (w *world) request(e *Engine, p *object.Pod) *Request {
	of := asked{e, p}
	if w.requests[of] == nil {
		w.requests[of] = For(w.profile, p)
	}
	return w.requests[of]
}

type asked struct {
	engine *Engine
	pod    *object.Pod
}

// differ names the first difference. Of several scores that are out of range
// any may be the one that is named.
func differ(got, want answer) string {
	const invalid = "returns an invalid score"
	if strings.Contains(got.rejected, invalid) && strings.Contains(want.rejected, invalid) {
		got.rejected = want.rejected
	}
	switch {
	case got.rejected != want.rejected:
		return fmt.Sprintf("rejected %q, want %q", got.rejected, want.rejected)
	case got.node != want.node || got.score != want.score || got.ties != want.ties || got.feasible != want.feasible:
		return fmt.Sprintf("chose %q of %d, score %d, %d ties; want %q of %d, %d, %d", got.node, got.feasible, got.score, got.ties, want.node, want.feasible, want.score, want.ties)
	case got.tallies != want.tallies:
		return fmt.Sprintf("tallies\n%s, want\n%s", got.tallies, want.tallies)
	case got.by != want.by:
		return fmt.Sprintf("rejected by %s, want %s", got.by, want.by)
	case len(got.nodes) != len(want.nodes):
		return fmt.Sprintf("%d nodes, want %d", len(got.nodes), len(want.nodes))
	}
	for i, node := range want.nodes {
		g := got.nodes[i]
		if len(node.Scores) == 0 || want.rejected != "" {
			g.Scores, g.Total, node.Scores, node.Total = nil, 0, nil, 0
		}
		if !reflect.DeepEqual(g, node) {
			return fmt.Sprintf("node\n%+v, want\n%+v", g, node)
		}
		if got.codes[node.Name] != want.codes[node.Name] {
			return fmt.Sprintf("%s has code %s, want %s", node.Name, got.codes[node.Name], want.codes[node.Name])
		}
	}
	return ""
}

func (w *world) check(t *rapid.T) {
	for _, e := range []*Engine{w.kept, w.tight} {
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever happened to the table, views that were kept answer as a new engine
// does, and as one that asks every plugin about every node.
func TestDecideIsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"decide": w.decide, "decide more": w.decide, "decide still more": w.decide,
			"set node": w.setNode, "remove node": w.removeNode,
			"place": w.place, "place more": w.place, "remove": w.remove, "remove more": w.remove, "storm": w.storm,
			"flip": w.flip, "nominate": w.nominate, "new pod": w.newPod, "check": w.check,
		})
	})
}
