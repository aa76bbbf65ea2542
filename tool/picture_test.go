package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The picture that the README opens with is made by "make picture": of a cluster of 300 nodes, some
// of them cordoned, in which a simulation places pods.
func TestReadmePicture(t *testing.T) {
	to := os.Getenv("BERTH_README_PICTURE")
	if to == "" {
		t.Skip("\"make picture\" makes the picture")
	}
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, `---
apiVersion: v1
kind: Node
metadata: {name: node-%03d, labels: {kubernetes.io/hostname: node-%03d, topology.kubernetes.io/zone: %s}}
spec: {unschedulable: %t}
status: {allocatable: {cpu: "16", memory: 64Gi, pods: "110"}}
`, i, i, string("abc"[i%3]), i%37 == 5)
	}
	for _, w := range []struct {
		name     string
		replicas int
		cpu      string
		more     string // of the pods' spec
	}{
		{"web", 400, "2", "topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}],"},
		{"cart", 300, "3", ""}, {"search", 70, "6", "nodeSelector: {topology.kubernetes.io/zone: b},"},
		{"report", 80, "9", "nodeSelector: {topology.kubernetes.io/zone: a},"}, {"train", 12, "16", ""},
	} {
		fmt.Fprintf(&b, `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: shop}
spec:
  replicas: %d
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %s}}
    spec: {%s containers: [{name: c, image: i, resources: {requests: {cpu: "%s", memory: 4Gi}}}]}
`, w.name, w.replicas, w.name, w.name, w.more, w.cpu)
	}
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	write(t, file, b.String())
	v := view(t, "-f", file, "--simulate")
	c := startChromium(t)
	c.size(1200, 860, "light")
	c.enter(v)
	c.route("#/nodes?by=cpu&group=zone")
	c.until(`document.querySelector("[aria-label=Map]")?.innerText === "300 nodes shown"`)
	t.Setenv("BERTH_PICTURES", filepath.Dir(to))
	c.picture(strings.TrimSuffix(filepath.Base(to), ".png"))
}
