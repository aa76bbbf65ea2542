package engine

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// noHost is a host whose plugins need none.
type noHost struct{}

func (noHost) Begin(*table.Table, *object.Pod) {}
func (noHost) Attempt(types.UID) any           { return nil }
func (noHost) Settled(*object.Pod)             {}
func (noHost) End(types.UID)                   {}

// host makes the rule's plugin a hosted one.
func (ru *rule) host(pl *framework.Plugin) {
	pl.Host, pl.Locality, pl.Sign, pl.Epoch = noHost{}, framework.Anything, nil, nil
	if ru.score == nil {
		return
	}
	score, normalize := pl.Score, pl.NormalizeScore
	pl.Score, pl.NormalizeScore = nil, nil
	pl.ScoreRows = func(in *framework.Input, rows []table.Row, out []int64) *decision.Status {
		score(in, rows, out)
		if normalize == nil {
			return nil
		}
		e := noExtremes
		for _, raw := range out {
			e.add(raw)
		}
		for i, raw := range out {
			if out[i] = 0; raw != framework.NoScore {
				out[i] = normalize(raw, e.low, e.high)
			}
		}
		return nil
	}
}

// hostable tells whether the rule may be hosted: what it reads is a row.
func (ru *rule) hostable() bool {
	return ru.rejectZone == nil && ru.scoreZone == nil && ru.preScore == nil
}

// settleHosted leaves out of the answer what is not known where hosted filters were
// asked about some nodes alone, and puts scores in the profile's order.
func settleHosted(got, want answer) answer {
	if got.node != "" && got.node == want.node {
		if got.feasible < want.feasible || got.ties < want.ties && want.feasible > 1 {
			return got // more is known to be feasible
		}
		got.feasible, got.ties = want.feasible, want.ties
		if want.feasible == 1 {
			got.score = want.score
		}
	}
	if got.rejected != "" && got.rejected == want.rejected {
		got.feasible = want.feasible
	}
	for i := range got.nodes {
		if i >= len(want.nodes) {
			break
		}
		byPlugin := func(a, b decision.Score) int { return cmp.Compare(a.Plugin, b.Plugin) }
		slices.SortFunc(got.nodes[i].Scores, byPlugin)
		slices.SortFunc(want.nodes[i].Scores, byPlugin)
	}
	return got
}

// Whichever plugins are hosted, and asked about as few nodes as settle the decision,
// the choice is one of those that the full evaluation finds best.
func TestHostedDecideIsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for _, ru := range w.rules {
			ru.hosted = ru.hostable() && w.rand.IntN(3) == 0
		}
		w.profile = buildProfile(w.rules)
		t.Repeat(map[string]func(*rapid.T){
			"decide": w.decide, "decide more": w.decide, "decide still more": w.decide,
			"set node": w.setNode, "remove node": w.removeNode,
			"place": w.place, "place more": w.place, "remove": w.remove, "remove more": w.remove, "storm": w.storm,
			"flip": w.flip, "nominate": w.nominate, "ahead": w.ahead, "new pod": w.newPod, "check": w.check,
		})
	})
}

// A hosted filter is asked about a few of the best nodes, not about all.
func TestHostedFilterIsAskedBestFirst(t *testing.T) {
	asked := 0
	pick := &rule{name: "pick", hosted: true, explain: always(decision.Unschedulable, "no"), reject: func(_ *object.Pod, at site) framework.Verdict {
		asked++
		return when(strings.HasSuffix(at.node.Name, "0"))
	}}
	rank := &rule{name: "rank", locality: framework.NodeOnly, weight: 1, normalize: func(raw, low, high int64) int64 { return 100 * (raw - low) / max(1, high-low) },
		score: func(_ *object.Pod, at site) int64 { return number(at.node.Labels, "rank") }}
	p := buildProfile([]*rule{pick, rank})
	tb := table.New()
	for i := range 3000 {
		name := "n" + strings.Repeat("x", i/1000) + string(rune('a'+i/100%10)) + string(rune('a'+i/10%10)) + string(rune('0'+i%10))
		tb.SetNode(newNode(name, map[string]string{"rank": string(rune('0' + i%4))}, 1000, 1000))
	}
	e := New(tb, seed, 1)
	for range 3 {
		asked = 0
		o := e.Decide(For(p, newPod("p", nil, 0, 0)), nil)
		if o.Row < 0 || o.Score != 100 || asked > 20 {
			t.Errorf("row %d, score %d, %d questions", o.Row, o.Score, asked)
		}
	}
}
