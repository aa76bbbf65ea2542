// Package workload does the part of kube-controller-manager that a simulation
// needs. It makes the pods of Deployments, StatefulSets, DaemonSets, Jobs and
// their like, and the claims of pods. Names that are random in a cluster are
// plain and repeatable here: the first pod of Deployment web is web-1-0, of its
// ReplicaSet web-1.
package workload
