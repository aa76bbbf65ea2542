package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// expectation is one kind of "expect POD ..." by the word after the pod. It
// gets the rest of the words and the text after the colon.
type expectation func(p *play, pod string, words []string, text string) error

var expectations = map[string]expectation{
	"->":        (*play).expectPlaced,
	"pending":   (*play).expectPending,
	"gated":     (*play).expectGated,
	"gone":      (*play).expectGone,
	"in":        (*play).expectPlace,
	"attempts":  (*play).expectAttempts,
	"rejected":  (*play).expectRejected,
	"nominated": (*play).expectNominated,
	"preempts":  (*play).expectPreempts,
	"fits":      (*play).expectFits,
	"blocked":   (*play).expectBlocked,
	"score":     (*play).expectScore,
	"event":     (*play).expectEvent,
}

func (p *play) expect(words []string, text string) error {
	if len(words) == 0 {
		return errors.New("expect what?")
	}
	if words[0] == "decided" {
		return p.expectDecided(words[1:])
	}
	switch words[0] {
	case "podgroup":
		return p.expectPodGroup(words[1:], text)
	case "podgroup." + object.SchedulerPlugins:
		return p.expectGroupStatus(words[1:], text)
	case "elasticquota":
		return p.expectElasticQuota(words[1:], text)
	}
	if len(words) < 2 {
		return errors.New("expect what of it?")
	}
	e := expectations[words[1]]
	if e == nil {
		return fmt.Errorf("%q: no such expectation", words[1])
	}
	return e(p, key(words[0]), words[2:], text)
}

// expectDecided: the pods decided on since it was last asked, in order.
func (p *play) expectDecided(words []string) error {
	if len(words) == 1 && words[0] == "nothing" {
		words = nil
	}
	want := make([]string, len(words))
	for i, w := range words {
		want[i] = key(w)
	}
	got := p.decided
	p.decided = nil
	if !slices.Equal(got, want) {
		return fmt.Errorf("got %s", cmp.Or(strings.Join(got, " "), "nothing"))
	}
	return nil
}

func (p *play) expectPlaced(pod string, words []string, _ string) error {
	if len(words) != 1 {
		return errors.New("want one node, or several as a|b")
	}
	now := p.world.Cluster.Pod(pod)
	switch {
	case now == nil:
		return errors.New("it does not exist")
	case now.NodeName == "":
		return fmt.Errorf("it is %s: %s", p.queueOf(pod), p.message(pod))
	case !slices.Contains(strings.Split(words[0], "|"), now.NodeName):
		return fmt.Errorf("it is on %s", now.NodeName)
	}
	return nil
}

func (p *play) expectPending(pod string, _ []string, text string) error {
	now := p.world.Cluster.Pod(pod)
	if now == nil {
		return errors.New("it does not exist")
	}
	if now.NodeName != "" {
		return fmt.Errorf("it is on %s", now.NodeName)
	}
	if got := now.Scheduled.Message; text != "" && got != text {
		return fmt.Errorf("its condition says %q", got)
	}
	return nil
}

func (p *play) expectGated(pod string, _ []string, text string) error {
	if at := p.queueOf(pod); at != queue.Gated.String() {
		return fmt.Errorf("it is %s", at)
	}
	if got := p.message(pod); text != "" && got != text {
		return fmt.Errorf("got %q", got)
	}
	return nil
}

func (p *play) expectGone(pod string, _ []string, _ string) error {
	if p.world.Cluster.Pod(pod) != nil {
		return errors.New("it is there")
	}
	return nil
}

func (p *play) expectPlace(pod string, words []string, _ string) error {
	if got := p.queueOf(pod); !slices.Contains(strings.Split(strings.Join(words, " "), "|"), got) {
		return fmt.Errorf("it is in %s", got)
	}
	return nil
}

func (p *play) expectAttempts(pod string, words []string, _ string) error {
	got := 0
	if d := p.last[pod]; d != nil {
		got = d.Attempt
	}
	if len(words) != 1 || words[0] != strconv.Itoa(got) {
		return fmt.Errorf("got %d", got)
	}
	return nil
}

// expectRejected: "rejected by" the plugins, sorted.
func (p *play) expectRejected(pod string, words []string, _ string) error {
	d, err := p.decision(pod)
	if err != nil {
		return err
	}
	if got := slices.Sorted(slices.Values(slices.Concat(d.RejectedBy, d.PendingBy))); len(words) == 0 || !slices.Equal(got, words[1:]) {
		return fmt.Errorf("got %v", got)
	}
	return nil
}

func (p *play) expectNominated(pod string, words []string, _ string) error {
	now := p.world.Cluster.Pod(pod)
	if now == nil {
		return errors.New("it does not exist")
	}
	if got := cmp.Or(now.NominatedNode, "none"); len(words) != 1 || got != words[0] {
		return fmt.Errorf("got %s", got)
	}
	return nil
}

// expectPreempts: NODE=VICTIM,... of the last decision; one of several.
func (p *play) expectPreempts(pod string, words []string, _ string) error {
	d, err := p.decision(pod)
	if err != nil {
		return err
	}
	var victims []string
	for _, v := range d.Victims {
		victims = append(victims, v.String())
	}
	for _, w := range words {
		node, list, _ := strings.Cut(w, "=")
		want := strings.Split(list, ",")
		for i := range want {
			want[i] = key(want[i])
		}
		if d.NominatedNode == node && slices.Equal(slices.Sorted(slices.Values(victims)), slices.Sorted(slices.Values(want))) {
			return nil
		}
	}
	return fmt.Errorf("got %s=%s", cmp.Or(d.NominatedNode, "none"), strings.Join(victims, ","))
}

// expectFits: the nodes that were feasible in the last decision, by name.
func (p *play) expectFits(pod string, words []string, _ string) error {
	d, err := p.decision(pod)
	if err != nil {
		return err
	}
	var got []string
	for _, n := range d.Nodes {
		if n.Feasible {
			got = append(got, n.Name)
		}
	}
	if !slices.Equal(got, words) {
		return fmt.Errorf("got %v", got)
	}
	return nil
}

// expectBlocked: NODE PLUGIN: reasons; the node's blockers have to have it.
func (p *play) expectBlocked(pod string, words []string, text string) error {
	if len(words) == 4 && words[1] == "first" {
		return p.expectBlockedFirst(pod, words, text)
	}
	if len(words) != 2 {
		return errors.New("want a node, a plugin, and reasons after a colon")
	}
	n, err := p.answer(pod, words[0])
	if err != nil {
		return err
	}
	for _, b := range n.Blockers {
		if b.Plugin == words[1] && (text == "" || strings.Join(b.Reasons, ", ") == text) {
			return nil
		}
	}
	return fmt.Errorf("got %v", n.Blockers)
}

// expectBlockedFirst: NODE first PLUGIN CODE: reasons in any order.
func (p *play) expectBlockedFirst(pod string, words []string, text string) error {
	n, err := p.answer(pod, words[0])
	if err != nil {
		return err
	}
	if len(n.Blockers) == 0 {
		return errors.New("nothing blocks it")
	}
	b := n.Blockers[0]
	reasons := strings.Join(slices.Sorted(slices.Values(b.Reasons)), ", ")
	if b.Plugin != words[2] || b.Code.String() != words[3] || text != "" && text != reasons {
		return fmt.Errorf("got %s %s: %s", b.Plugin, b.Code, reasons)
	}
	return nil
}

// expectScore: NODE PLUGIN=N ..., or total=N. A plugin that does not score
// says the same as one that scores 0.
func (p *play) expectScore(pod string, words []string, _ string) error {
	if len(words) < 2 {
		return errors.New("want a node and Plugin=score")
	}
	n, err := p.answer(pod, words[0])
	if err != nil {
		return err
	}
	got := map[string]int64{"total": n.Total}
	for _, s := range n.Scores {
		got[s.Plugin] = s.Score
	}
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		if _, ok := got[name]; !ok && plugins.Registry(features.Plugins(features.New()))[name] == nil {
			return fmt.Errorf("%q: no such plugin", name)
		}
		if strconv.FormatInt(got[name], 10) != value {
			return fmt.Errorf("got %v", got)
		}
	}
	return nil
}

// expectEvent: the last event about the pod, REASON: note.
func (p *play) expectEvent(pod string, words []string, text string) error {
	got, ok := p.notes[pod]
	if !ok {
		return errors.New("there was none")
	}
	if len(words) != 1 || words[0] != string(got.Reason) || text != "" && text != got.Note {
		return fmt.Errorf("got %s: %s", got.Reason, got.Note)
	}
	return nil
}

func (p *play) decision(pod string) (*decision.Decision, error) {
	if d := p.last[pod]; d != nil {
		return d, nil
	}
	return nil, errors.New("there was no decision on it")
}

func (p *play) answer(pod, node string) (*decision.Node, error) {
	d, err := p.decision(pod)
	if err != nil {
		return nil, err
	}
	for i := range d.Nodes {
		if d.Nodes[i].Name == node {
			return &d.Nodes[i], nil
		}
	}
	return nil, fmt.Errorf("the last decision says nothing of node %s", node)
}

func (p *play) message(pod string) string {
	if d := p.last[pod]; d != nil {
		return explain.Message(d)
	}
	return ""
}

// queueOf is where in the queue the pod is.
func (p *play) queueOf(pod string) string {
	now := p.world.Cluster.Pod(pod)
	if now == nil {
		return queue.Nowhere.String()
	}
	return p.world.Machine.Entry(now.UID).Place().String()
}
