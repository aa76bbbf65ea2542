package chaos

import (
	"strings"
	"testing"
)

// gangs is a story of gangs of a kind: of one that fits only once room comes nobody is
// bound before; one whose leader dies between two of its bindings is placed whole.
const gangs = `seed 1
batch KIND
replicas 2
node n1 cpu=2
advance 1s
podgroup g1 min=3 priority=0
pod p1 cpu=1 MEMBER
pod p2 cpu=1 MEMBER
pod p3 cpu=1 MEMBER
advance 5s
unbound p1
unbound p2
unbound p3
fault crash-after replica=leader on=bind for=60s nth=2
node n2 cpu=2
advance 3s
start all
advance 40s
bound p1
bound p2
bound p3
`

func TestGangs(t *testing.T) {
	for kind, member := range map[string]string{
		nativeGroups: "group=g1", labelGroups: "label:scheduling.x-k8s.io/pod-group=g1",
		labelGroups + " " + withQuotas: "label:" + labelsPrefix + "/name=g2 label:" + labelsPrefix + "/min-available=3",
	} {
		s := parsed(t, kind, strings.NewReplacer("KIND", kind, "MEMBER", member).Replace(gangs))
		if r := play1(t, s); len(r.Breaches) > 0 || r.Faults[crashAfter] != 1 {
			t.Errorf("%s: %+v", kind, r)
		}
	}
	aFewSeeds(t, withGroups)
}

// A queue that lends gets its min back, by one eviction, and no more; what is used shows in
// the status though its replies are lost.
func TestQuotas(t *testing.T) {
	noBreach(t, `seed 1
batch quotas
replicas 2
node n1 cpu=4
quota a min=2 max=4
quota b min=2 max=4
advance 1s
pod a/p1 cpu=1
pod a/p2 cpu=1
pod a/p3 cpu=1
pod a/p4 cpu=1
advance 3s
bound a/p4
fault lost-reply on=status for=5s share=60%
pod b/p5 cpu=1
advance 9s
bound b/p5
pod b/p6 cpu=1
advance 9s
bound b/p6
pod b/p7 cpu=1
advance 3s
unbound b/p7
`)
	aFewSeeds(t, withQuotas)
}
