// Package topologyplacementgenerator is the plugin TopologyPlacementGenerator: the pods
// of a group that names a topology key are kept on nodes with one value of that label (the gate
// TopologyAwareWorkloadScheduling).
package topologyplacementgenerator
