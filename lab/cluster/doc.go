// Package cluster starts and ends a real Kubernetes control plane on this
// machine: etcd, kube-apiserver, kube-controller-manager and kwok, which plays
// the nodes, each a child process in a directory of its own, with TLS and RBAC
// on; and, on it, any number of schedulers. Tests, benchmarks and `berth-lab
// up` all use it. The program that calls Start hosts the children too: its main
// or TestMain calls child.RunIfAsked first.
package cluster
