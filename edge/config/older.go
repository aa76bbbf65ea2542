package config

const (
	sinceAlpha    = "Instead of schedulerName and algorithmSource there are profiles. The arguments of plugins, such as hardPodAffinityWeight and bindTimeoutSeconds, are in pluginConfig. healthzBindAddress and metricsBindAddress are gone"
	sinceBeta2    = ". The fields healthzBindAddress and metricsBindAddress are gone, and so are the plugins NodeLabel, ServiceAffinity and NodePreferAvoidPods (use NodeAffinity) and SelectorSpread (use PodTopologySpread). TaintToleration now has the weight 3 by default, NodeAffinity and InterPodAffinity 2"
	sincePolicies = "; policies were removed in Kubernetes v1.23. Write a KubeSchedulerConfiguration with a profile that enables the plugins: predicates are plugins at the point filter, priorities at the point score"
)

// versions says what to change in a configuration of an older version.
var versions = map[string]string{
	"componentconfig/v1alpha1":             sinceAlpha,
	"kubescheduler.config.k8s.io/v1alpha1": sinceAlpha,
	"kubescheduler.config.k8s.io/v1alpha2": sinceAlpha,
	"kubescheduler.config.k8s.io/v1beta1":  "v1beta1 was removed in Kubernetes v1.23" + sinceBeta2,
	"kubescheduler.config.k8s.io/v1beta2":  "v1beta2 was removed in Kubernetes v1.28" + sinceBeta2,
	"kubescheduler.config.k8s.io/v1beta3":  "v1beta3 was removed in Kubernetes v1.29. The fields are the same. The plugin SelectorSpread is gone: use PodTopologySpread",
}

// removedPlugins existed in earlier versions of the configuration. kube-scheduler refuses them
// by name.
var removedPlugins = []string{"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"}

// successors are what to use instead of plugins that kube-scheduler had once.
var successors = map[string]string{
	"AzureDiskLimits":             "NodeVolumeLimits",
	"CinderLimits":                "NodeVolumeLimits",
	"EBSLimits":                   "NodeVolumeLimits",
	"GCEPDLimits":                 "NodeVolumeLimits",
	"DefaultPodTopologySpread":    "PodTopologySpread",
	"NodeLabel":                   "NodeAffinity",
	"NodePreferAvoidPods":         "NodeAffinity",
	"NodeResourcesLeastAllocated": "NodeResourcesFit with scoringStrategy.type LeastAllocated",
	"NodeResourcesMostAllocated":  "NodeResourcesFit with scoringStrategy.type MostAllocated",
	"RequestedToCapacityRatio":    "NodeResourcesFit with scoringStrategy.type RequestedToCapacityRatio",
	"SelectorSpread":              "PodTopologySpread",
	"ServiceAffinity":             "NodeAffinity",
}
