package chaos

import (
	"testing"
)

const devicesStory = `seed 1
replicas 2
devices n1 1
devices n2 2
node n1 cpu=4
node n2 cpu=4
device-claim d1
device-claim d2
device-claim d3
device-claim d4
pod p1 cpu=1 device=d1
pod p2 cpu=1 device=d2
pod p3 cpu=1 device=d3
pod p4 cpu=1 device=d1
advance 5s
pod p5 cpu=1 device=d4
advance 5s
delete pod p2
advance 10s
`

// Devices are given out once and given back, and a pod without one waits; faults of the
// writes to claims happen, and nothing is lost.
func TestDevices(t *testing.T) {
	calm := play1(t, parsed(t, "devices", devicesStory))
	if len(calm.Breaches) > 0 || calm.Bindings != 5 {
		t.Errorf("%+v", calm)
	}
	underWriteFaults(t, devicesStory, map[string]string{"crash-after on=write nth=2": crashAfter, "lag kind=" + resourceClaims + " by=3s": lagWatch},
		func(bindings int) bool { return bindings >= 4 }) // p2 may be deleted while it waits
	for seed := range uint64(6) {
		if r := play1(t, generate(seed, with{withDevices, withLimits})); len(r.Breaches) > 0 {
			t.Errorf("seed %d: %s", seed, r.Breaches[0])
		}
	}
}

const limitsStory = `seed 1
replicas 2
limit n1 1
limit n2 2
node n1 cpu=9 label:zone=a
node n2 cpu=9 label:zone=b
claim c1 made
claim c2 made
claim c3 made
claim c4 made
pod p1 cpu=1 claim=c1
pod p2 cpu=1 claim=c2
pod p3 cpu=1 claim=c3
advance 20s
pod p4 cpu=1 claim=c4
advance 5s
`

// A node takes as many volumes as its driver says, and a pod beyond waits until there
// may be more.
func TestLimits(t *testing.T) {
	if r := play1(t, parsed(t, "limits", limitsStory)); len(r.Breaches) > 0 || r.Bindings != 3 {
		t.Errorf("%+v", r)
	}
	if r := play1(t, parsed(t, "limits", limitsStory+"limit n1 2\nadvance 10s\n")); len(r.Breaches) > 0 || r.Bindings != 4 {
		t.Errorf("with a higher limit: %+v", r)
	}
}
