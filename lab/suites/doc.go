// Package suites runs Kubernetes' own tests of scheduling with Berth in
// kube-scheduler's place, and once more with kube-scheduler. The tests stay in
// the Go module cache and are built from there, unmodified. The go command's
// -overlay puts Berth behind the constructor of kube-scheduler (overlay/), so
// that whatever starts a scheduler starts Berth.
package suites
