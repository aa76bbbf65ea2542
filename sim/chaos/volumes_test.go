package chaos

import (
	"maps"
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

// underWriteFaults plays the story with each fault of the writes to its objects, and with
// the others given. Each happens, nothing is lost, and the bindings are as many as they may be.
func underWriteFaults(t *testing.T, story string, others map[string]string, enough func(bindings int) bool) {
	t.Helper()
	faults := map[string]string{
		"lost-reply on=write": lostReply, "hang-reply on=write for=3s": hangReply, "refuse on=write code=409 share=60%": refused,
		"refuse on=write code=500": refused,
	}
	maps.Copy(faults, others)
	for words, does := range faults {
		text := strings.Replace(story, "pod p1", "fault "+words+"\npod p1", 1)
		if r := play1(t, parsed(t, words, text)); r.Faults[does] == 0 || len(r.Breaches) > 0 || !enough(r.Bindings) {
			t.Errorf("%s: %+v", words, r)
		}
	}
}

// Volumes are made and bound where pods go, and a pod without one waits; faults of
// the writes to claims and volumes happen, and nothing is lost.
func TestVolumes(t *testing.T) {
	calm := play1(t, parsed(t, "volumes", volumesStory))
	if len(calm.Breaches) > 0 || calm.Bindings != 4 {
		t.Errorf("%+v", calm)
	}
	underWriteFaults(t, volumesStory, map[string]string{"crash-after on=write nth=1": crashAfter, "lag kind=persistentvolumeclaims by=3s": lagWatch},
		func(bindings int) bool { return bindings == 4 })
	for seed := range uint64(6) {
		if r := play1(t, generate(seed, with{withVolumes})); len(r.Breaches) > 0 {
			t.Errorf("seed %d: %s", seed, r.Breaches[0])
		}
	}
}
