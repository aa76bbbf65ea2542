package bench

import (
	"context"
	"testing"
	"time"
)

// TestClusterMode takes all kinds of steps on a real control plane.
func TestClusterMode(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	dir := own(t, threeNodes+`
  - {opcode: createNodes, count: 1, nodeTemplatePath: templates/named.yaml}
  - {opcode: createAny, namespace: services, templatePath: templates/service.yaml}
  - {opcode: createPods, count: 4, podTemplatePath: templates/gated.yaml, skipWaitToCompletion: true}
  - {opcode: barrier, stageRequirement: Attempted}
  - {opcode: createPods, count: 4, podTemplatePath: templates/light.yaml, skipWaitToCompletion: true}
  - {opcode: barrier, labelSelector: {light: "yes"}}
  - {opcode: deletePods, namespace: namespace-5, deletePodsPerSecond: 100, skipWaitToCompletion: true}
  - {opcode: churn, mode: recreate, number: 1, intervalMilliseconds: 10, templatePaths: [templates/churned.yaml, templates/service.yaml]}
`+sixPods)
	w, err := Load(dir, "Own/Small")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	run, err := runCluster(ctx, Options{}, w, KubeScheduler)
	if err != nil {
		t.Fatal(err)
	}
	if run.Nodes != 4 || run.Pods != 6 || run.Scheduled != 6 || run.PodsPerSecond <= 0 || run.P50Millis <= 0 || run.PeakRSSMiB <= 0 {
		t.Errorf("%+v", run)
	}
}

// TestClusterModeOfVolumesAndDevices takes the steps that make them, and a phase
// that begins and ends by steps of its own.
func TestClusterModeOfVolumesAndDevices(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	dir := own(t, threeDevices+`
  - {opcode: createAny, namespace: before, count: 5, templatePath: templates/device.yaml}
  - {opcode: allocResourceClaims, namespace: before}
  - {opcode: createAny, namespace: steady, templatePath: templates/devices.yaml}
  - opcode: createPods
    count: 2
    namespace: volumes
    persistentVolumeTemplatePath: templates/volume.yaml
    persistentVolumeClaimTemplatePath: templates/bound.yaml
  - {opcode: startCollectingMetrics, namespaces: [steady, held]}
  - {opcode: createPods, namespace: steady, count: 2, steadyState: true, duration: 3s, podTemplatePath: templates/templated.yaml}
  - {opcode: createPods, namespace: held, count: 2, podTemplatePath: templates/held.yaml, skipWaitToCompletion: true}
  - {opcode: barrier, stageRequirement: Attempted}
  - {opcode: updateAny, namespace: held, count: 2, templatePath: templates/released.yaml, updatePerSecond: 100}
  - {opcode: barrier}
  - {opcode: stopCollectingMetrics}
`)
	w, err := Load(dir, "Own/Small")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	run, err := runCluster(ctx, Options{}, w, KubeScheduler)
	if err != nil {
		t.Fatal(err)
	}
	// At least six pods of the steady state, which began with two, and the two held ones.
	if run.Nodes != 3 || run.Scheduled < 8 || run.Pods < run.Scheduled || run.PodsPerSecond <= 0 || run.P50Millis <= 0 || run.PeakRSSMiB <= 0 {
		t.Errorf("%+v", run)
	}
}
