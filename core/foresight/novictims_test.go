package foresight_test

import (
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/sim/scenario"
)

// A pod that could preempt nobody is tried at an event about a node where that tells
// whether it still cannot, and only then left where it is.
func TestPodsThatPreemptNobody(t *testing.T) {
	for name, text := range map[string]string{
		"the event makes room on the node, if others go": `
node a cpu=4
pod low cpu=2 bound=a
pod high cpu=2 bound=a priority=1000
pod tiny cpu=0 bound=a priority=1000
pod urgent cpu=4 priority=100
schedule
expect urgent pending
delete pod tiny
advance 10s
expect urgent attempts 1
delete pod high
advance 10s
expect urgent -> a`,
		"a plugin that the event does not concern lets it in": `
node a cpu=4 label:zone=a
node b cpu=4 label:zone=b
pod first cpu=4 bound=a
pod waits cpu=4 selector:zone=a
schedule
expect waits pending
delete pod first
advance 10s
expect waits -> a`,
		"a plugin that sums nothing up": `
node a cpu=4
pod low port=80 bound=a
pod high port=80 bound=a priority=1000
pod urgent port=80 priority=100
schedule
expect urgent pending
delete pod high
advance 10s
expect urgent -> a`,
		"it fits beside others of lower priority, and not without them": `
node a cpu=4 label:zone=a
node b cpu=4 label:zone=b
pod friend cpu=1 bound=a label:app=friend
pod low cpu=2 bound=a
pod urgent cpu=2 priority=100 near="zone app=friend"
schedule
expect urgent rejected by InterPodAffinity NodeResourcesFit
delete pod low
advance 10s
expect urgent -> a`,
		"a nominated pod alone keeps it away": `
node a cpu=4 label:zone=a
pod other cpu=1 bound=a
pod first cpu=2 priority=10 selector:zone=c
schedule
update pod first nominated=a
pod second cpu=2 selector:zone=a
cycle
expect second pending
delete pod other
advance 10s
expect second -> a`,
		"a nominated pod takes the room that its victim leaves": `
node a cpu=4
pod low cpu=4 bound=a
pod waits cpu=4
schedule
pod urgent cpu=4 priority=100
schedule
expect urgent -> a
expect waits attempts 1`,
		"a nominated pod takes the room that another has to give up": `
node a cpu=4 label:zone=a
pod low cpu=4 bound=a
pod mid cpu=4 priority=10 selector:zone=b
schedule
update pod mid nominated=a
pod waits cpu=4 priority=10 selector:zone=a
cycle
expect waits pending
pod urgent cpu=4 priority=100
schedule
expect urgent -> a
expect mid nominated none
expect waits attempts 1`,
		"a nominated pod keeps the port": `
node a cpu=4 label:zone=a
pod high port=80 bound=a priority=100
pod mid port=80 priority=10 selector:zone=b
schedule
update pod mid nominated=a
pod waits port=80 priority=10 selector:zone=a
cycle
expect waits pending
delete pod high
advance 10s
expect waits pending
expect waits attempts 1`,
		"of nominated pods those of lower priority do not count": `
node a cpu=4 label:zone=a
pod high cpu=4 bound=a priority=100
pod mid cpu=4 priority=10 selector:zone=b
schedule
update pod mid nominated=a
pod waits cpu=4 priority=20 selector:zone=a
cycle
expect waits pending
delete pod high
advance 10s
expect waits -> a`,
		"the nominated pod fits beside it": `
node a cpu=4 label:zone=a
pod other cpu=3 bound=a priority=100
pod first cpu=2 priority=10 selector:zone=c
schedule
update pod first nominated=a
pod waits cpu=2 selector:zone=a
cycle
expect waits pending
delete pod other
advance 10s
expect waits -> a`,
		"a plugin prevents it that rejected the pod nowhere": `
node a cpu=4 label:zone=z
node b cpu=1 label:zone=z
pod low cpu=4 bound=a
pod rival cpu=1 bound=b priority=1000 label:app=rival
pod urgent cpu=4 priority=100 away="zone app=rival"
schedule
expect urgent pending
delete pod rival
advance 10s
expect urgent -> a`,
	} {
		story, err := scenario.Parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		if err := story.Play(scenario.Engine{Seed: 1, Workers: 1}); err != nil {
			t.Error(err)
		}
	}
}

// A pod whose claim is not bound is tried when that is, and not when a volume comes for
// others, nor a node.
func TestPodsThatWaitForTheirClaim(t *testing.T) {
	const claim = `
object
  apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: data, uid: data, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
  spec: {volumeName: NAME}
object
  apiVersion: v1
  kind: PersistentVolume
  metadata: {name: disk}
  spec: {claimRef: {namespace: default, name: OWNER, uid: OWNER}, csi: {driver: csi.example.com, volumeHandle: disk}}
`
	text := "node a label:zone=a\n" + strings.NewReplacer("NAME", `""`, `, annotations: {pv.kubernetes.io/bind-completed: "yes"}`, "", "OWNER", "none").Replace(claim) + `
pod waits claim=data selector:zone=a
schedule
expect waits pending
object
  apiVersion: v1
  kind: PersistentVolume
  metadata: {name: another}
  spec: {csi: {driver: csi.example.com, volumeHandle: another}}
node b
advance 10s
expect waits attempts 1
` + strings.NewReplacer("NAME", "disk", "OWNER", "data").Replace(claim) + `
advance 10s
expect waits -> a`
	story, err := scenario.Parse("claim", text)
	if err == nil {
		err = story.Play(scenario.Engine{Seed: 1, Workers: 1})
	}
	if err != nil {
		t.Error(err)
	}
}
