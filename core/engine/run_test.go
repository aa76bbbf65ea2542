package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// signer is a host that signs pods by what the hosted rules read of them.
type signer struct {
	noHost
	rules []*rule
}

func (s signer) Sign(p *object.Pod) (string, bool) {
	var key []byte
	for _, ru := range s.rules {
		if ru.hosted {
			key = ru.sign(append(key, 0), nil, p)
		}
	}
	return string(key), p.Labels["unsigned"] == ""
}

// Whichever plugins are hosted, and whatever happens between two pods that they sign
// alike, the choice is one of those that the full evaluation finds best.
func TestSignedRunIsNaive(t *testing.T) {
	kept := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for _, ru := range w.rules {
			ru.hosted = ru.hostable() && w.rand.IntN(3) == 0
		}
		w.profile = buildProfile(w.rules)
		if w.profile.Host != nil {
			w.profile.Host = signer{rules: w.rules}
		}
		flip := func(t *rapid.T) {
			w.flip(t)
			w.kept.Told()
		}
		between := []func(*rapid.T){w.setNode, w.removeNode, w.place, w.remove, w.storm, flip, w.decide, w.nominate, w.newPod, w.check}
		t.Repeat(map[string]func(*rapid.T){"wave": func(t *rapid.T) {
			clear(w.nominated)
			like := pickOne(w.rand, w.pool...)
			for range 1 + w.rand.IntN(12) {
				w.decideAndPlace(t, like)
				if w.kept.runs.last != nil && w.kept.runs.last.view != nil {
					kept++
				}
				if w.rand.IntN(8) == 0 {
					pickOne(w.rand, between...)(t)
				}
			}
		}})
	})
	if kept < 50 {
		t.Errorf("kept answers decided %d times", kept)
	}
}

// decideAndPlace decides on a pod like the other, and places it.
func (w *world) decideAndPlace(t *rapid.T, like *object.Pod) {
	w.serial++
	p := *like
	p.Name, p.NominatedNode = fmt.Sprint("p", w.serial), ""
	p.UID = types.UID(p.Name)
	want := (&naive{table: w.Table, rules: w.rules, pod: &p}).decide(w.nominated)
	got := answerOf(w.Table, w.kept.Decide(For(w.profile, &p), w.nominated))
	if slices.Contains(want.best, got.node) {
		want.node = got.node
	}
	if w.profile.Host != nil {
		if got = settleHosted(got, want); got.node != "" && w.invalidHostedScore(want.rejected) {
			return
		}
	}
	if diff := differ(got, want); diff != "" {
		t.Fatalf("pod %s %v: %s", p.UID, p.Labels, diff)
	}
	if got.node != "" {
		w.AddPod(&p, got.node)
	}
}

// counting is a profile with a native score and hosted plugins that count what they are
// asked.
type counting struct {
	*Engine
	tb        *table.Table
	request   func(uid string, labels map[string]string) *Request
	questions int
	serial    int
	deciding  types.UID // on which pod
	wrong     int       // questions about another pod
}

// newCounting has nodes of one zone each, z0 to z9, and hosted plugins: a filter that
// rejects nodes where a pod with the label bully is in the zone, as a pod with
// anti-affinity is, and a score that prefers nodes with few pods, normalised or not.
func newCounting(normalised bool) *counting {
	c := &counting{tb: table.New()}
	bullied := func(zone string) bool {
		for r := range table.Row(c.tb.Rows()) {
			if c.tb.Node(r) != nil && c.tb.Node(r).Labels["zone"] == zone && slices.ContainsFunc(c.tb.Pods(r), func(pl *table.Placed) bool { return pl.Pod.Labels["bully"] != "" }) {
				return true
			}
		}
		return false
	}
	ask := func(p *object.Pod) {
		if c.questions++; p.UID != c.deciding {
			c.wrong++
		}
	}
	judge := &rule{name: "judge", hosted: true, reads: []string{"tier"}, explain: always(decision.Unschedulable, "bullied"), reject: func(p *object.Pod, at site) framework.Verdict {
		ask(p)
		return when(bullied(at.node.Labels["zone"]))
	}}
	few := &rule{name: "few", hosted: true, weight: 1, score: func(p *object.Pod, at site) int64 {
		ask(p)
		return max(0, 100-10*int64(len(at.pods)))
	}}
	if normalised {
		few.normalize = func(raw, low, high int64) int64 { return 100 * (raw - low) / max(1, high-low) }
	}
	rules := []*rule{judge, few, {name: "rank", weight: 3, score: func(_ *object.Pod, at site) int64 { return number(at.node.Labels, "rank") }}}
	p := buildProfile(rules)
	p.Host = signer{rules: rules}
	for i := range 100 {
		c.tb.SetNode(newNode(fmt.Sprintf("n%03d", i), map[string]string{"zone": fmt.Sprint("z", i%10), "rank": fmt.Sprint(i % 7)}, 1000, 1000))
	}
	c.Engine = New(c.tb, seed, 1)
	c.request = func(uid string, labels map[string]string) *Request { return For(p, newPod(uid, labels, 1, 1)) }
	return c
}

// next decides on the next pod, holds that against the full evaluation and places it.
// It returns how often plugins were asked.
func (c *counting) next(t *testing.T, labels map[string]string) int {
	t.Helper()
	c.serial++
	r := c.request(fmt.Sprint("pod", c.serial), labels)
	c.deciding = r.Pod.UID
	full := NewPlain(c.tb, seed).Decide(r, nil)
	scores := map[table.Row]int64{}
	for _, n := range full.Nodes() {
		row, _ := c.tb.Find(n.Name)
		if scores[row] = -1; n.Feasible {
			scores[row] = n.Total
		}
	}
	c.questions = 0
	o := c.Decide(r, nil)
	asked := c.questions
	if o.Row < 0 || scores[o.Row] != full.Score || o.Score != full.Score {
		t.Fatalf("%s: row %d with score %d, the best is %d with %d", r.Pod.UID, o.Row, o.Score, full.Row, full.Score)
	}
	if c.wrong > 0 {
		t.Errorf("%s: %d questions about another pod", r.Pod.UID, c.wrong)
	}
	c.tb.AddPod(r.Pod, c.tb.Name(o.Row))
	return asked
}

func (c *counting) decide(uid string, labels map[string]string) {
	r := c.request(uid, labels)
	c.deciding = r.Pod.UID
	c.Decide(r, nil)
}

// A pod that hosted plugins sign otherwise is of another run, even if it is of the same
// class to all others.
func TestRunIsOfOneSignature(t *testing.T) {
	c := newCounting(true)
	for range 5 {
		c.next(t, nil)
	}
	if asked := c.next(t, map[string]string{"tier": "x"}); asked < 100 {
		t.Errorf("%d questions", asked)
	}
}

// In a run few questions are asked. Whatever else happens ends it, and what hosted plugins
// answer then counts.
func TestRunEnds(t *testing.T) {
	for _, tc := range []struct {
		name    string
		between func(c *counting)
		ends    bool
	}{
		{"nothing", func(*counting) {}, false},
		{"a pod that was there is shown again", func(c *counting) {
			p := *c.tb.Pod("pod3").Pod
			c.tb.AddPod(&p, c.tb.Name(c.tb.Pod("pod3").Row))
		}, false},
		{"a pod that was assumed is shown bound", func(c *counting) {
			bound := *c.tb.Pod("pod3").Pod
			bound.NodeName, bound.API = c.tb.Name(c.tb.Pod("pod3").Row), &v1.Pod{}
			c.tb.AddPod(&bound, bound.NodeName)
		}, false},
		{"a bound pod gets an annotation", func(c *counting) {
			bound := *c.tb.Pod("pod3").Pod
			bound.NodeName, bound.API = c.tb.Name(c.tb.Pod("pod3").Row), &v1.Pod{}
			c.tb.AddPod(&bound, bound.NodeName)
			annotated := bound
			annotated.API = &v1.Pod{}
			c.tb.AddPod(&annotated, bound.NodeName)
		}, true},
		{"another pod is tried somewhere", func(c *counting) {
			mark := c.tb.Checkpoint()
			c.tb.AddPod(newPod("tried", nil, 1, 1), "n000")
			c.tb.Undo(mark)
		}, false},
		{"another pod is placed", func(c *counting) { c.tb.AddPod(newPod("other", map[string]string{"bully": "yes"}, 1, 1), "n004") }, true},
		{"a pod goes", func(c *counting) { c.tb.RemovePod("pod2") }, true},
		{"the last pod goes elsewhere", func(c *counting) {
			last := c.tb.Pod(types.UID(fmt.Sprint("pod", c.serial)))
			c.tb.AddPod(last.Pod, c.tb.Name((last.Row+1)%100))
		}, true},
		{"a node changes", func(c *counting) {
			c.tb.SetNode(newNode("n006", map[string]string{"zone": "z6", "rank": "6", "new": "yes"}, 1000, 1000))
		}, true},
		{"a node comes", func(c *counting) {
			c.tb.SetNode(newNode("new", map[string]string{"zone": "z1", "rank": "6"}, 1000, 1000))
		}, true},
		{"a node goes", func(c *counting) { c.tb.RemoveNode("n006") }, true},
		{"an object comes", func(c *counting) {
			c.tb.Namespaces().Set(&object.Namespace{Name: "new", Labels: map[string]string{"a": "b"}})
		}, true},
		{"something changes that the table does not show", func(c *counting) { c.Told() }, true},
		{"half a second goes by", func(c *counting) { c.tb.SetNow(c.tb.Now().Add(runLasts)) }, false},
		{"more than half a second goes by", func(c *counting) { c.tb.SetNow(c.tb.Now().Add(runLasts + time.Nanosecond)) }, true},
		{"a pod that is signed otherwise is decided on", func(c *counting) { c.decide("another", map[string]string{"tier": "x"}) }, true},
		{"a pod of the class is decided on, and not placed", func(c *counting) { c.decide("another", nil) }, true},
		{"a pod that is not signed is decided on", func(c *counting) { c.decide("another", map[string]string{"unsigned": "yes"}) }, true},
		{"a pod is decided on that takes the node that it is nominated to", func(c *counting) {
			r := c.request("another", nil)
			r.Pod.NominatedNode, c.deciding = "n000", r.Pod.UID
			c.Decide(r, nil)
		}, true},
	} {
		for _, normalised := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, normalised %v", tc.name, normalised), func(t *testing.T) {
				c := newCounting(normalised)
				for range 14 {
					c.next(t, nil)
				}
				tc.between(c)
				asked := c.next(t, nil)
				if (asked > 5) != tc.ends {
					t.Errorf("%d questions", asked)
				}
				for range 15 {
					asked = c.next(t, nil)
				}
				if asked > 5 {
					t.Errorf("%d questions, long after", asked)
				}
			})
		}
	}
}

// Of a pod that is not signed nothing is kept.
func TestUnsignedIsAskedAnew(t *testing.T) {
	c := newCounting(true)
	for range 9 {
		if asked := c.next(t, map[string]string{"unsigned": "yes"}); asked < 100 {
			t.Errorf("%d questions", asked)
		}
	}
}

// A kept answer alone lets no node pass: a filter that has another answer by now is asked
// about the node that would be chosen, and then about all.
func TestRunAsksAboutTheChosen(t *testing.T) {
	left, asked := 30, 0
	quota := &rule{name: "quota", hosted: true, explain: always(decision.Unschedulable, "the quota is used up"), reject: func(*object.Pod, site) framework.Verdict {
		asked++
		return when(left <= 0)
	}}
	spare := &rule{name: "spare", hosted: true, weight: 1, score: func(_ *object.Pod, at site) int64 { return max(0, 100-int64(len(at.pods))) }}
	rules := []*rule{quota, spare}
	p := buildProfile(rules)
	p.Host = signer{rules: rules}
	tb := table.New()
	for i := range 50 {
		tb.SetNode(newNode(fmt.Sprintf("n%03d", i), nil, 1000, 1000))
	}
	e := New(tb, seed, 1)
	for i := range 40 {
		pod := newPod(fmt.Sprint("pod", i), nil, 1, 1)
		asked = 0
		o := e.Decide(For(p, pod), nil)
		if (o.Row >= 0) != (left > 0) {
			t.Fatalf("pod %d: row %d with %d left", i, o.Row, left)
		}
		if o.Row < 0 {
			if tallies := fmt.Sprint(o.Tallies()); asked < 50 || !strings.Contains(tallies, "the quota is used up") {
				t.Errorf("%d questions, %s", asked, tallies)
			}
			continue
		}
		left--
		tb.AddPod(pod, tb.Name(o.Row))
	}
}

// PreScore is told of all feasible nodes in each decision, and where these are others the
// scorers are asked about all of them.
func TestRunWithPreScore(t *testing.T) {
	told, asked := 0, 0
	few := &rule{name: "few", hosted: true, weight: 1, score: func(_ *object.Pod, at site) int64 {
		asked++
		return max(0, 100-10*int64(len(at.pods)))
	}}
	room := &rule{name: "room", locality: framework.NodeAndPods, explain: always(decision.Unschedulable, "full"),
		reject: func(_ *object.Pod, at site) framework.Verdict { return when(len(at.pods) >= 2) }}
	rules := []*rule{few, room}
	p := buildProfile(rules)
	p.Host = signer{rules: rules}
	p.Score[0].Hosted.PreScoreRows = func(_ *table.Table, _ *object.Pod, rows []table.Row) framework.PreScoreResult {
		told = len(rows)
		return framework.PreScoreResult{}
	}
	p.PreScore = append(p.PreScore, p.Score[0].Plugin)
	tb := table.New()
	for i := range 10 {
		tb.SetNode(newNode(fmt.Sprintf("n%03d", i), nil, 1000, 1000))
	}
	e := New(tb, seed, 1)
	for i := range 19 {
		pod := newPod(fmt.Sprint("pod", i), nil, 1, 1)
		told, asked = 0, 0
		o := e.Decide(For(p, pod), nil)
		if o.Row < 0 || len(tb.Pods(o.Row)) != i/10 {
			t.Fatalf("pod %d: row %d", i, o.Row)
		}
		tb.AddPod(pod, tb.Name(o.Row))
		feasible := min(10, 20-i)
		want := feasible // the first, and where a node has become full
		if i > 0 && i <= 10 {
			want = 1
		}
		if i == 1 {
			want = 10 // kept from here on
		}
		if told != feasible || asked != want {
			t.Errorf("pod %d: told of %d, asked about %d, want %d and %d", i, told, asked, feasible, want)
		}
	}
}
