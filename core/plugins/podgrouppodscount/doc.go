// Package podgrouppodscount is the plugin PodGroupPodsCount: of the placements in which
// a pod group fits, those are better in which more of its pods have a node (the gate
// TopologyAwareWorkloadScheduling).
package podgrouppodscount
