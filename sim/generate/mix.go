package generate

import v1 "k8s.io/api/core/v1"

// feature is one subject that worlds vary: how it shows on nodes, on pods, in
// the configuration, and how it changes later. Any of the functions may be nil.
type feature struct {
	node   func(*builder, *v1.Node)
	pod    func(*builder, *v1.Pod)
	config func(*builder, *profile)
	// run marks what a pod gets once it runs.
	run func(*builder, *v1.Pod)
	// world adds to the world what belongs to no single node or pod.
	world func(*builder, *World)
	// renode and repod alter a copy of an object that is already in the world.
	renode func(*builder, *v1.Node)
	repod  func(*builder, *v1.Pod)
	// alter changes what belongs to no single node or pod.
	alter func(*builder, *World) Change
}

// mix is a choice of features that one world shows together.
type mix struct {
	features []feature
	// preemptible lets pods that come later outrank those placed; without it
	// no preemption ever finds a victim.
	preemptible bool
	// gates are not at their defaults.
	gates map[string]bool
}

// on reports whether the mix leaves a gate on that is so by default.
func (m *mix) on(gate string) bool {
	value, set := m.gates[gate]
	return value || !set
}

var mixes = map[string]mix{
	"resources":    {features: []feature{hardResources, scoring}},
	"nodeaffinity": {features: []feature{easyResources, labels, affinity}},
	"taints":       {features: []feature{easyResources, taints}},
	"ports":        {features: []feature{easyResources, ports}},
	"images":       {features: []feature{easyResources, images}},
	"gates":        {features: []feature{easyResources, gates, priorities}},
	"spread":       {features: []feature{easyResources, labels, taints, spread}},
	"devices":      {features: []feature{easyResources, labels, devices}},
	"features":     {features: []feature{easyResources, kubelets}},
	"volumes":      {features: []feature{easyResources, labels, volumes, roomRated}},
	"volume-gates": {features: []feature{easyResources, labels, volumes},
		gates: map[string]bool{"StorageCapacityScoring": false, "VolumeLimitScaling": false}},
	"spread-gates": {features: []feature{easyResources, labels, taints, spread},
		gates: map[string]bool{"MatchLabelKeysInPodTopologySpread": false, "MatchLabelKeysInPodTopologySpreadSelectorMerge": false}},
	"device-gates": {features: []feature{easyResources, labels, devices, taintRules},
		gates: map[string]bool{"DRADeviceTaintRules": true}},
	// DRADeviceBindingConditions stays on: without it kube-scheduler takes slices in any order.
	"device-off": {features: []feature{easyResources, labels, devices},
		gates: map[string]bool{"DRAConsumableCapacity": false, "DRADeviceTaints": false, "DRADeviceTaintRules": false,
			"DRAPartitionableDevices": false}},
	"taint-gates": {features: []feature{easyResources, taints, comparisons},
		gates: map[string]bool{"TaintTolerationComparisonOperators": true}},
	"device-resources": {features: []feature{crowded, labels, priorities, devices, nodeResources}, preemptible: true,
		gates: map[string]bool{"DRANodeAllocatableResources": true}},
	"interpod": {features: []feature{easyResources, labels, interpod}},
	"all": {features: []feature{hardResources, scoring, labels, affinity, taints,
		ports, images, gates, priorities, plugins, spread, interpod, kubelets}},
	"preemption": {features: []feature{crowded, labels, affinity, taints, ports, priorities, budgets},
		preemptible: true},
	"device-preemption":   {features: []feature{crowded, labels, priorities, budgets, devices}, preemptible: true},
	"extenders":           {features: []feature{crowded, labels, taints, priorities, budgets, extenders}, preemptible: true},
	"interpod-preemption": {features: []feature{crowded, labels, priorities, budgets, interpod}, preemptible: true},
	"spread-preemption":   {features: []feature{crowded, labels, priorities, budgets, spread}, preemptible: true},
}
