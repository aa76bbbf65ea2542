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

// Replaceable reports whether a scheduler that embeds Berth may replace Berth's plugin of this name
// by its own, such as the one of sigs.k8s.io/scheduler-plugins itself.
func Replaceable(name string) bool { return name == CapacityScheduling || name == Coscheduling }

// CoschedulingLabels and CoschedulingStatus are not plugins. They are names in pluginConfig under
// which Coscheduling reads arguments: CoschedulingLabels lists the prefixes of labels that make
// groups without a PodGroup, CoschedulingStatus says whether Berth writes the status of PodGroups.
const (
	CoschedulingLabels = "CoschedulingLabels"
	CoschedulingStatus = "CoschedulingStatus"
)
