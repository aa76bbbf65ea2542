package chaos

import (
	"strings"
	"testing"
)

const volumesStory = `seed 1
replicas 2
node n1 cpu=4 label:zone=a
node n2 cpu=4 label:zone=b
claim c1 made
claim c2 local
claim c3 local
volume v1 b
pod p1 cpu=1 claim=c1
pod p2 cpu=1 claim=c2
pod p3 cpu=1 claim=c1
advance 5s
pod p4 cpu=1 claim=c3
advance 20s
volume v2 a
advance 10s
`

// Volumes are made and bound where pods go, and a pod without one waits; faults of
// the writes to claims and volumes happen, and nothing is lost.
func TestVolumes(t *testing.T) {
	calm := play1(t, parsed(t, "volumes", volumesStory))
	if len(calm.Breaches) > 0 || calm.Bindings != 4 {
		t.Errorf("%+v", calm)
	}
	for words, does := range map[string]string{
		"lost-reply on=write": lostReply, "hang-reply on=write for=3s": hangReply, "refuse on=write code=409 share=60%": refused,
		"refuse on=write code=500": refused, "crash-after on=write nth=1": crashAfter, "lag kind=persistentvolumeclaims by=3s": lagWatch,
	} {
		text := strings.Replace(volumesStory, "pod p1", "fault "+words+"\npod p1", 1)
		if r := play1(t, parsed(t, words, text)); r.Faults[does] == 0 || len(r.Breaches) > 0 || r.Bindings != 4 {
			t.Errorf("%s: %+v", words, r)
		}
	}
	for seed := range uint64(6) {
		if r := play1(t, generate(seed, with{withVolumes})); len(r.Breaches) > 0 {
			t.Errorf("seed %d: %s", seed, r.Breaches[0])
		}
	}
}
