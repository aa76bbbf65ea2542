package chaos

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/sim/scenario"
)

// What the simulation says of a node that breaks a hard constraint, and of one that
// breaks none.
func TestBreaks(t *testing.T) {
	nodes := map[string]map[string]string{"n1": {"zone": "a"}, "n2": {"zone": "a"}, "n3": {"zone": "b"}, "n4": {}}
	w := &whereabouts{nodes: nodes, sure: []located{
		{pod: podOfStory(t, `port port=80`), node: "n1"}, {pod: podOfStory(t, `shy label:app=shy "away=zone app=loud"`), node: "n3"},
		{pod: podOfStory(t, `web label:app=web`), node: "n1"}, {pod: podOfStory(t, `gone label:app=web`), node: "n3", leaving: true}}}
	w.perhaps = append(w.sure, located{pod: podOfStory(t, `guess label:app=guess`), node: "n3"})
	for _, one := range []struct{ pod, node, want string }{
		{"p", "n1", ""}, {"p port=80", "n1", "pod port has port 80"}, {"p port=80", "n2", ""}, {"p port=81", "n1", ""},
		{"p label:app=loud", "n3", "pod shy is in the zone"}, {"p label:app=loud", "n1", ""},
		{`p "away=zone app=web"`, "n2", "pod web is in the zone"}, {`p "away=zone app=guess"`, "n3", ""},
		{`p "near=zone app=web"`, "n2", ""}, {`p "near=zone app=shy"`, "n2", "no pod that is to be near"}, {`p "near=zone app=guess"`, "n3", ""},
		{`p label:app=new "near=zone app=new"`, "n2", ""}, {`p label:app=web "near=zone app=web"`, "n4", "it has no label zone"},
		{`p label:app=shy "near=zone app=shy"`, "n1", "no pod that is to be near"},
		{`p label:app=web "spread=1 zone app=web"`, "n2", "2 such pods would be in the zone, and 0 in another"},
		{`p label:app=web "spread=2 zone app=web"`, "n2", ""}, {`p "spread=1 zone app=web"`, "n2", ""}, {`p "spread=1 zone app=web"`, "n4", "it has no label zone"},
	} {
		if got := w.breaks(podOfStory(t, one.pod), one.node); !strings.HasPrefix(got, one.want) || one.want == "" && got != "" {
			t.Errorf("%s on %s: %q, want %q", one.pod, one.node, got, one.want)
		}
	}
}

func podOfStory(t *testing.T, line string) *v1.Pod {
	t.Helper()
	p, err := scenario.Pod(parsed(t, "pod", "pod "+line+"\n").Steps[0].Words[1:])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Pods find the nodes that their constraints leave them, wait while there is none,
// and preempt pods that break a constraint.
func TestConstraints(t *testing.T) {
	const text = `seed 1
replicas 2
node n1 cpu=4 label:zone=a
node n2 cpu=4 label:zone=b
pod p1 cpu=1 port=80
pod p2 cpu=1 port=80
pod p3 cpu=1 label:app=a "spread=1 zone app=a"
pod p4 cpu=1 label:app=a "spread=1 zone app=a"
advance 2s
bound p1
bound p2
bound p3
bound p4
pod p5 cpu=1 "near=zone app=b"
pod p6 cpu=1 port=80 priority=10
advance 3s
bound p6
pod p7 cpu=1 label:app=b "away=zone app=b"
advance 9s
bound p5
`
	noBreach(t, text)
	aFewSeeds(t, withConstraints)
}

// Pods are preempted where no budget covers them, if that is enough.
func TestBudgets(t *testing.T) {
	const text = `seed 1
replicas 1
node n1 cpu=1
budget a 0
pod p1 cpu=1 label:app=a
advance 1s
node n2 cpu=1
pod p2 cpu=1 label:app=b
advance 1s
pod p3 cpu=1 priority=10
advance 6s
bound p1
bound p3
`
	noBreach(t, text)
	aFewSeeds(t, withBudgets)
}

// Several pods of an application without a budget may go.
func TestPodsWithoutBudget(t *testing.T) {
	const text = `seed 1
replicas 1
node n1 cpu=2
budget a 0
pod p1 cpu=1 label:app=b
pod p2 cpu=1 label:app=b
advance 1s
node n2 cpu=2
pod p3 cpu=2 label:app=b priority=10
advance 1s
pod p4 cpu=2 priority=100
advance 6s
bound p3
bound p4
`
	noBreach(t, text)
}

// noBreach plays a story that must have none.
func noBreach(t *testing.T, text string) {
	t.Helper()
	if r := play1(t, parsed(t, t.Name(), text)); len(r.Breaches) > 0 {
		t.Error(r.Breaches)
	}
}

// aFewSeeds have no breach; berth-lab sim runs more.
func aFewSeeds(t *testing.T, w string) {
	t.Helper()
	for seed := range uint64(20) {
		if r := play1(t, generate(seed+1, with{w})); len(r.Breaches) > 0 {
			t.Errorf("seed %d: %s", seed+1, r.Breaches[0])
		}
	}
}
