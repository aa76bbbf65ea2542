// Package e2e tests Berth and the lab end to end, against a real control plane.
// Pods are placed, and no node is over-committed, even when nodes, schedulers,
// the API server or the network between them fail. The test binary hosts the
// processes of the control plane. Most tests share one cluster, in which each
// test has a namespace and nodes of its own. `go test -short` skips these
// tests.
package e2e
