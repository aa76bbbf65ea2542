package chaos

import (
	"strings"
	"testing"
)

const extenderStory = `seed 1
extender
replicas 2
node n1 cpu=4 label:licences=yes
node n2 cpu=4
pod p1 cpu=1 sim.example.com/licence=1
pod p2 cpu=1 sim.example.com/licence=1
pod p3 cpu=1
advance 9s
`

// Pods that an extender manages go where it lets them, whatever happens to its answers,
// and whatever it says that is not so. It may bind, too.
func TestExtender(t *testing.T) {
	for _, text := range []string{extenderStory, strings.Replace(extenderStory, "extender", "extender binds", 1)} {
		if r := play1(t, parsed(t, "extender", text)); len(r.Breaches) > 0 || r.Bindings != 3 {
			t.Errorf("%+v", r)
		}
		for words, does := range map[string]string{
			"lie on=extend for=3s": lie, "hang on=extend for=5s": hangRequest, "hang-reply on=extend for=5s": hangReply,
			"refuse on=extend code=500 share=50%": refused, "lost-reply on=extend share=60%": lostReply, "cut-body on=extend share=60%": cutBody,
			"unreachable on=extend for=3s": unreachable, "slow-reply on=extend by=3s": slowReply, "lost-reply on=bind for=3s": lostReply,
		} {
			text := strings.Replace(text, "pod p1", "fault "+words+"\npod p1", 1)
			if r := play1(t, parsed(t, words, text)); r.Faults[does] == 0 || len(r.Breaches) > 0 || r.Bindings != 3 {
				t.Errorf("%s: %+v", words, r)
			}
		}
	}
}

// While the extender hangs, the pods that it does not manage are bound.
func TestExtenderThatHangs(t *testing.T) {
	text := strings.Replace(extenderStory, "pod p1", "fault hang on=extend for=60s\npod p1", 1)
	text = strings.Replace(text, "advance 9s", "advance 3s\nbound p3", 1)
	if r := play1(t, parsed(t, "hangs", text)); len(r.Breaches) > 0 {
		t.Error(r.Breaches[0])
	}
	text = strings.Replace(text, "bound p3", "bound p1", 1)
	if r := play1(t, parsed(t, "hangs", text)); len(r.Breaches) == 0 {
		t.Error("p1 is bound without the extender's answer")
	}
}

// Leases that are written by clocks which are set, forward and back, pass from one
// replica to the other all the same.
func TestClocks(t *testing.T) {
	const text = "seed 1\nreplicas 2\nnode n1 cpu=4\nadvance 1s\nclock a by=AHEAD\npod p1 cpu=1\nadvance 5s\ncrash leader\npod p2 cpu=1\nadvance 20s\nbound p2\nclock b by=-1h\nadvance 5s\npod p3 cpu=1\nadvance 1s\nbound p3\n"
	for _, ahead := range []string{"1h", "-1h", "20s", "-20s"} {
		if r := play1(t, parsed(t, ahead, strings.Replace(text, "AHEAD", ahead, 1))); len(r.Breaches) > 0 || r.Faults["clock"] != 2 {
			t.Errorf("%s: %+v", ahead, r)
		}
	}
	for seed := range uint64(4) {
		if r := play1(t, generate(seed, with{withClocks, withExtenders})); len(r.Breaches) > 0 {
			t.Errorf("seed %d: %s", seed, r.Breaches[0])
		}
	}
}
