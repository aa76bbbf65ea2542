// Package dynamicresources gives pods the devices that their ResourceClaims ask for. Which devices
// a claim gets on a node is decided by Kubernetes' own allocator
// (k8s.io/dynamic-resource-allocation). This package does the rest: it finds out which claims a pod
// has, what a node offers and what is taken of it (core/index/devicepools follows both), and what
// is written once a node is chosen.
//
// A search on one node answers for all nodes that the claims cannot tell from it (alike.go):
// inventories (inventory.go) say in numbers what devices are like, whatever they are called. Where
// the numbers say all, nodes are alike on which a search in numbers ends alike (innumbers.go).
//
// Pods whose claims ask for the same form one class, whatever the claims are called. Giving one of
// them a device of a node dirties that node's row alone. From Reserve until the API shows an
// allocation the claim is assumed to have it, so that no device is given twice.
package dynamicresources
