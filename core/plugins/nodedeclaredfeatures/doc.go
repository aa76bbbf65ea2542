// Package nodedeclaredfeatures keeps a pod away from nodes that do not declare
// a feature which its spec calls for: a kubelet without it would run the pod
// wrongly or not at all. What a spec calls for is Kubernetes' own list, in
// k8s.io/component-helpers; edge/decode asks it.
package nodedeclaredfeatures
