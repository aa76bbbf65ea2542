package names

// The in-tree plugins of v1.37.
const (
	DefaultBinder                   = "DefaultBinder"
	DefaultPreemption               = "DefaultPreemption"
	DeferredPodScheduling           = "DeferredPodScheduling"
	DynamicResources                = "DynamicResources"
	GangScheduling                  = "GangScheduling"
	ImageLocality                   = "ImageLocality"
	InterPodAffinity                = "InterPodAffinity"
	NodeAffinity                    = "NodeAffinity"
	NodeDeclaredFeatures            = "NodeDeclaredFeatures"
	NodeName                        = "NodeName"
	NodePorts                       = "NodePorts"
	NodeResourcesBalancedAllocation = "NodeResourcesBalancedAllocation"
	NodeResourcesFit                = "NodeResourcesFit"
	NodeUnschedulable               = "NodeUnschedulable"
	NodeVolumeLimits                = "NodeVolumeLimits"
	PodGroupPodsCount               = "PodGroupPodsCount"
	PodTopologySpread               = "PodTopologySpread"
	PrioritySort                    = "PrioritySort"
	SchedulingGates                 = "SchedulingGates"
	TaintToleration                 = "TaintToleration"
	TopologyPlacementGenerator      = "TopologyPlacementGenerator"
	VolumeBinding                   = "VolumeBinding"
	VolumeRestrictions              = "VolumeRestrictions"
	VolumeZone                      = "VolumeZone"
)

// The plugins of sigs.k8s.io/scheduler-plugins.
const (
	CapacityScheduling = "CapacityScheduling"
	Coscheduling       = "Coscheduling"
)

// Replaceable reports whether a scheduler may bring a plugin of its own under the name: that
// of sigs.k8s.io/scheduler-plugins itself, say.
func Replaceable(name string) bool { return name == CapacityScheduling || name == Coscheduling }

// CoschedulingLabels and CoschedulingStatus are no plugins: a configuration has arguments
// under these names that Coscheduling reads.
const (
	CoschedulingLabels = "CoschedulingLabels"
	CoschedulingStatus = "CoschedulingStatus"
)
