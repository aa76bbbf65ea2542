package engine

import (
	"cmp"
	"fmt"
	"math/rand/v2"
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
func (noHost) Show(*table.Table)               {}
func (noHost) Sign(*object.Pod) (string, bool) { return "", false }
func (noHost) Attempt(types.UID) any           { return nil }
func (noHost) ActivatePods(*object.Pod)        {}
func (noHost) End(types.UID)                   {}

// host makes the rule's plugin a hosted one.
func (ru *rule) host(pl *framework.Plugin) {
	h := &framework.HostedPlugin{Host: noHost{}}
	pl.Hosted, pl.Locality, pl.Sign, pl.Epoch = h, framework.Anything, nil, nil
	if ru.score == nil {
		return
	}
	score, normalize := pl.Score, pl.NormalizeScore
	h.Bounded = normalize == nil
	pl.Score, pl.NormalizeScore = nil, nil
	h.RawScoreRows = func(in *framework.Input, rows []table.Row, out []int64) *decision.Status {
		score(in, rows, out)
		return nil
	}
	if h.ScoreRows = h.RawScoreRows; normalize == nil {
		return
	}
	h.NormalizeRows = func(_ *framework.Input, _ []table.Row, out []int64) *decision.Status {
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
	h.ScoreRows = func(in *framework.Input, rows []table.Row, out []int64) *decision.Status {
		score(in, rows, out)
		return h.NormalizeRows(in, rows, out)
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

// invalidHostedScore tells whether the error is about the score of a hosted plugin
// that need not be asked about all rows.
func (w *world) invalidHostedScore(err string) bool {
	return slices.ContainsFunc(w.rules, func(ru *rule) bool {
		return ru.hosted && ru.normalize == nil && strings.Contains(err, fmt.Sprintf("plugin %q returns an invalid score", ru.name))
	})
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
			"flip": w.flip, "nominate": w.nominate, "new pod": w.newPod, "check": w.check,
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

// A hosted filter that rejects all of the best nodes is asked about these, and about few
// of the others, in few calls, however many nodes have a total in common.
func TestHostedFilterIsAskedLittleInVain(t *testing.T) {
	for _, tc := range []struct {
		name             string
		totals, rejected int // how many there are, and how many of the highest are rejected
		asked, calls     int
	}{
		{"half of the nodes have the highest total", 2, 1, 2500 + 2500/16, 5},
		{"many totals", 100, 50, 2500 + 2500/16, 45},
		{"all are rejected", 100, 100, 5000, 60},
	} {
		asked, calls := 0, 0
		pick := &rule{name: "pick", hosted: true, explain: always(decision.Unschedulable, "no"), reject: func(_ *object.Pod, at site) framework.Verdict {
			asked++
			return when(number(at.node.Labels, "rank") >= int64(tc.totals-tc.rejected))
		}}
		rank := &rule{name: "rank", locality: framework.NodeOnly, weight: 1, score: func(_ *object.Pod, at site) int64 { return number(at.node.Labels, "rank") }}
		p := buildProfile([]*rule{pick, rank})
		ask := p.Filter[0].Filter
		p.Filter[0].Filter = func(in *framework.Input, rows []table.Row, out []framework.Verdict) { calls++; ask(in, rows, out) }
		tb := table.New()
		for i := range 5000 {
			tb.SetNode(newNode(fmt.Sprintf("n%04d", i), map[string]string{"rank": fmt.Sprint(i % tc.totals)}, 1000, 1000))
		}
		o := New(tb, seed, 1).Decide(For(p, newPod("p", nil, 0, 0)), nil)
		if want := int64(tc.totals - tc.rejected - 1); want >= 0 && o.Score != want || asked > tc.asked || calls > tc.calls {
			t.Errorf("%s: score %d, %d questions in %d calls", tc.name, o.Score, asked, calls)
		}
	}
}

// A hosted score without NormalizeScore is asked about the rows that can be the best,
// not about all.
func TestHostedScoreIsBounded(t *testing.T) {
	for _, tc := range []struct {
		name  string
		score func(at site) int64
		most  int
	}{
		{"the best is proven at once", func(site) int64 { return 100 }, leastAsked},
		{"rows that are left cannot be the best", func(site) int64 { return 20 }, 900},
	} {
		asked := 0
		rate := &rule{name: "rate", hosted: true, weight: 1, score: func(_ *object.Pod, at site) int64 {
			asked++
			return tc.score(at)
		}}
		rank := &rule{name: "rank", locality: framework.NodeOnly, weight: 3, score: func(_ *object.Pod, at site) int64 { return 10 * number(at.node.Labels, "rank") }}
		p := buildProfile([]*rule{rate, rank})
		tb := table.New()
		for i := range 3000 {
			tb.SetNode(newNode(fmt.Sprintf("n%04d", i), map[string]string{"rank": fmt.Sprint(10 * i / 3000)}, 1000, 1000))
		}
		o := New(tb, seed, 1).Decide(For(p, newPod("p", nil, 0, 0)), nil)
		if rank := number(tb.Node(o.Row).Labels, "rank"); rank != 9 || o.Score != 270+tc.score(site{}) {
			t.Errorf("%s: a node of rank %d, score %d", tc.name, rank, o.Score)
		}
		if asked > tc.most {
			t.Errorf("%s: %d questions", tc.name, asked)
		}
	}
}

// A bounded search finds the best total that there is, and a row that has it.
func TestBoundedSearchIsFull(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		most := int64(100) // of what the hosted scores are
		if round%4 == 0 {
			most = random.Int64N(101)
		}
		rate := &rule{name: "rate", hosted: true, weight: int64(1 + random.IntN(3)), score: func(_ *object.Pod, at site) int64 { return number(at.node.Labels, "rate") }}
		rank := &rule{name: "rank", locality: framework.NodeOnly, weight: 1, score: func(_ *object.Pod, at site) int64 { return number(at.node.Labels, "rank") }}
		tb := table.New()
		var best []string
		score := int64(-1)
		for i := range 600 {
			name, a, b := fmt.Sprintf("n%03d", i), int64(random.IntN(101)), random.Int64N(most+1)
			if round%2 == 0 { // what one score prefers the other does not
				b = min(most, (100-a)*most/100+random.Int64N(3))
			}
			tb.SetNode(newNode(name, map[string]string{"rank": fmt.Sprint(a), "rate": fmt.Sprint(b)}, 1000, 1000))
			if total := a + rate.weight*b; total > score {
				best, score = nil, total
			}
			if a+rate.weight*b == score {
				best = append(best, name)
			}
		}
		o := New(tb, uint64(round), 1).Decide(For(buildProfile([]*rule{rate, rank}), newPod("p", nil, 0, 0)), nil)
		if name := tb.Name(o.Row); o.Score != score || !slices.Contains(best, name) || o.Ties < len(best) {
			t.Fatalf("round %d: %s with %d (%d ties), not one of %s with %d", round, name, o.Score, o.Ties, best, score)
		}
	}
}

// Each of the nodes with the best total is chosen as often as the others, whether it takes
// a sample, a part of a level or all nodes to find one.
func TestHostedDrawIsFair(t *testing.T) {
	const best, rounds = 4, 2000
	for _, tc := range []struct {
		name         string
		nodes        int // of the highest total without the hosted plugin
		reject       bool
		score, below int64 // of the best, and of the others
	}{
		{"most are best: the sample has one", 8, true, 0, 0},
		{"few of many pass", 400, true, 0, 0},
		{"few of many get all there is", 400, false, 100, 10},
		{"few of many get the most, but not all", 400, false, 60, 10},
		{"few get the most", 30, false, 60, 10},
	} {
		judge := &rule{name: "judge", hosted: true, weight: 1, explain: always(decision.Unschedulable, "no")}
		if tc.reject {
			judge.reject = func(_ *object.Pod, at site) framework.Verdict { return when(at.node.Labels["best"] == "") }
		} else {
			judge.score = func(_ *object.Pod, at site) int64 {
				if at.node.Labels["best"] != "" {
					return tc.score
				}
				return tc.below
			}
		}
		p := buildProfile([]*rule{judge})
		tb := table.New()
		for i := range tc.nodes {
			labels := map[string]string{}
			if i*best/tc.nodes != (i-1)*best/tc.nodes || i == 0 {
				labels["best"] = "yes"
			}
			tb.SetNode(newNode(fmt.Sprintf("n%03d", i), labels, 1000, 1000))
		}
		chosen := map[table.Row]int{}
		e := New(tb, seed, 1)
		for i := range rounds {
			o := e.Decide(For(p, newPod(fmt.Sprint("p", i), nil, 0, 0)), nil)
			if o.Row < 0 || tb.Node(o.Row).Labels["best"] == "" {
				t.Fatalf("%s: row %d", tc.name, o.Row)
			}
			chosen[o.Row]++
		}
		for r, times := range chosen {
			if len(chosen) != best || times < rounds/best*8/10 || times > rounds/best*12/10 {
				t.Errorf("%s: row %d was chosen %d times of %d", tc.name, r, times, rounds)
			}
		}
	}
}

// However many nodes a hosted score has to be asked about, it takes few calls.
func TestHostedScoreIsAskedInFewCalls(t *testing.T) {
	calls, asked := 0, map[string]int{}
	rate := &rule{name: "rate", hosted: true, weight: 1, score: func(_ *object.Pod, at site) int64 {
		asked[at.node.Name]++
		return 10
	}}
	rank := &rule{name: "rank", locality: framework.NodeOnly, weight: 1, score: func(_ *object.Pod, at site) int64 { return number(at.node.Labels, "rank") }}
	p := buildProfile([]*rule{rate, rank})
	for _, s := range p.Score {
		if s.ScoresRows() {
			ask := s.Hosted.ScoreRows
			s.Hosted.ScoreRows = func(in *framework.Input, rows []table.Row, out []int64) *decision.Status {
				calls++
				return ask(in, rows, out)
			}
		}
	}
	tb := table.New()
	for i := range 3000 {
		tb.SetNode(newNode(fmt.Sprintf("n%04d", i), map[string]string{"rank": fmt.Sprint(i % 50)}, 1000, 1000))
	}
	o := New(tb, seed, 1).Decide(For(p, newPod("p", nil, 0, 0)), nil)
	if o.Score != 59 || calls > 5 {
		t.Errorf("score %d, %d calls", o.Score, calls)
	}
	for name, times := range asked {
		if times > 1 {
			t.Fatalf("%s was asked about %d times", name, times)
		}
	}
}
