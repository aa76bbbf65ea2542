// Package cluster starts and stops a real Kubernetes control plane on this
// machine: etcd, kube-apiserver, kube-controller-manager, and kwok, which plays
// the nodes. Each is a child process. A cluster has a directory of its own,
// with TLS and RBAC on, and any number of schedulers. Tests, benchmarks and
// `berth-lab up` use it. The program that calls Start also hosts the children:
// its main or TestMain must call child.RunIfAsked first.
package cluster
