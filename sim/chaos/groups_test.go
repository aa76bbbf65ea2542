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
		nativeGroups: "group=g1", nativeGroups + " " + withQuotas: "group=g1", labelGroups: "label:scheduling.x-k8s.io/pod-group=g1",
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

// A gang of which one pod is bound as the leader dies is not completed in part while others have
// the room of its rest.
func TestRestOfAGang(t *testing.T) {
	noBreach(t, `seed 53
batch coscheduling quotas
replicas 2
node n1 cpu=1 pods=110 label:zone=a
node n2 cpu=4 pods=110 label:zone=b
fault crash-at replica=leader on=bind for=20s nth=3
podgroup a/g1 min=4 priority=0
pod a/p1 cpu=1 priority=0 label:scheduling.x-k8s.io/pod-group=g1
pod a/p2 cpu=1 priority=0 label:scheduling.x-k8s.io/pod-group=g1
pod a/p3 cpu=1 priority=0 label:scheduling.x-k8s.io/pod-group=g1
pod a/p4 cpu=1 priority=0 label:scheduling.x-k8s.io/pod-group=g1
advance 4000ms
pod b/p10 cpu=2 priority=10 label:pod-group.scheduling.sigs.k8s.io/name=g4 label:pod-group.scheduling.sigs.k8s.io/min-available=2
pod b/p11 cpu=2 priority=10 label:pod-group.scheduling.sigs.k8s.io/name=g4 label:pod-group.scheduling.sigs.k8s.io/min-available=2
`)
}

// Pods that are nominated keep no room that they cannot have: not of a gang that then lacks a
// pod, and not one whose quota others have used up meanwhile.
func TestNominationsEnd(t *testing.T) {
	noBreach(t, `seed 203
batch native
replicas 2
node n1 cpu=4 pods=3 label:zone=a
advance 2000ms
pod p7 cpu=1
fault hang-reply on=bind for=8s share=100%
podgroup g2 min=2 priority=10
pod p8 cpu=2 priority=10 group=g2
pod p9 cpu=2 priority=10 group=g2
advance 1500ms
delete pod p9
`)
	noBreach(t, `seed 143
batch coscheduling quotas
replicas 2
node n3 cpu=4 pods=110 label:zone=b
node n4 cpu=4 pods=110 label:zone=b
quota b min=3 max=4
quota a min=3 max=7
fault crash-after replica=leader on=bind for=20s nth=2
podgroup a/g1 min=6 priority=0
pod a/p1 cpu=1 priority=0 label:scheduling.x-k8s.io/pod-group=g1
pod a/p2 cpu=1 priority=0 label:scheduling.x-k8s.io/pod-group=g1
pod a/p3 cpu=1 priority=0 label:scheduling.x-k8s.io/pod-group=g1
advance 20ms
pod a/p4 cpu=1 priority=0 label:scheduling.x-k8s.io/pod-group=g1
pod a/p5 cpu=1 priority=0 label:scheduling.x-k8s.io/pod-group=g1
pod a/p6 cpu=1 priority=0 label:scheduling.x-k8s.io/pod-group=g1
advance 200ms
pod b/p7 cpu=500m
pod a/p13 cpu=2 priority=10
`)
}

// A pod that waits in a namespace without a quota is known otherwise to the queue once there is
// one: the invariants hold.
func TestQuotaComesWhileAPodWaits(t *testing.T) {
	noBreach(t, `seed 240
batch coscheduling quotas
replicas 2
node n2 cpu=4 pods=110 label:zone=a
quota c min=2 max=6
podgroup c/g1 min=3 priority=100
pod c/p1 cpu=2 priority=100 label:scheduling.x-k8s.io/pod-group=g1
pod c/p2 cpu=1 priority=100 label:scheduling.x-k8s.io/pod-group=g1
pod c/p3 cpu=1 priority=100 label:scheduling.x-k8s.io/pod-group=g1
bind c/p2 n2
`)
}
