// Package inprocess starts Berth in a test of Kubernetes, where the test would
// start kube-scheduler. Package suites lays a file over k8s.io/kubernetes that
// calls it.
package inprocess
