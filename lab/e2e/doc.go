// Package e2e tests Berth and the lab end to end, against a real control plane:
// that pods land, that no node is over-committed, and that this stays so when
// nodes, schedulers, the API server or the network between them fail. The test
// binary hosts the control plane's processes itself. Most tests share one
// cluster, in which each has a field: a namespace and nodes of its own.
// `go test -short` leaves these tests out.
package e2e
