package generate

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
)

// taintRules taint devices that they select by driver, pool and device.
var taintRules = feature{world: ruleWorld, alter: alterRules}

func ruleWorld(b *builder, w *World) {
	for i := range b.pick(0, 1, 1, 2) {
		w.Objects = append(w.Objects, taintRule(b, fmt.Sprintf("rule-%d", i)))
	}
}

func taintRule(b *builder, name string) *resourcev1.DeviceTaintRule {
	r := &resourcev1.DeviceTaintRule{TypeMeta: kindOf("resource.k8s.io/v1", "DeviceTaintRule"), ObjectMeta: b.meta("", name)}
	r.Spec.Taint = resourcev1.DeviceTaint{Key: b.word("broken", "slow"), Value: "yes",
		Effect: resourcev1.DeviceTaintEffect(b.word("NoSchedule", "NoSchedule", "NoExecute", "None"))}
	s := &resourcev1.DeviceTaintSelector{}
	if b.chance(60) {
		s.Driver = new(b.word(gpuDriver, nicDriver))
	}
	if b.chance(40) && len(b.nodes) > 0 {
		s.Pool = &b.nodes[b.IntN(len(b.nodes))].Name
	}
	if b.chance(40) {
		s.Device = new(b.word("d0-0", "d0-1", "d1-0", "d0"))
	}
	if b.chance(90) {
		r.Spec.DeviceSelector = s
	}
	return r
}

// alterRules changes, adds or takes away a rule.
func alterRules(b *builder, w *World) Change {
	if r := someObject[*resourcev1.DeviceTaintRule](b, w); r != nil && b.chance(50) {
		return Change{Verb: Delete, Other: r}
	}
	return Change{Verb: Add, Other: taintRule(b, fmt.Sprintf("rule-%d", b.IntN(3)))}
}
