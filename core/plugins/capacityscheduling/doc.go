// Package capacityscheduling is the plugin CapacityScheduling of
// sigs.k8s.io/scheduler-plugins: ElasticQuotas bound what the pods of a namespace use. Package
// quota keeps them. docs/deviations-groups.md says where the two differ.
package capacityscheduling
