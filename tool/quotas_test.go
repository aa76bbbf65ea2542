package tool

import (
	"strings"
	"testing"
)

// why says what the quota of a pod uses beside its min and max.
func TestWhyQuota(t *testing.T) {
	_, out, errs := berth("", "why", "-f", "testdata/quotas.yaml", "--config", "testdata/quotas-config.yaml", "web/web-3")
	if want := "QUOTAS\n  ElasticQuota web/web: 4 of example.com/gpu used, min 2, max 4; 2 above its min\n"; !strings.Contains(out, want) {
		t.Errorf("%s%s", out, errs)
	}
}

// A pod within its quota's min takes back what another one has borrowed, as docs/batch.md shows.
func TestSimulateQuotas(t *testing.T) {
	_, out, errs := berth("", "simulate", "-f", "testdata/quotas.yaml", "--config", "testdata/quotas-config.yaml")
	if want := "EVICTED\n  web/web-2 on node-1, for research/train-2\n"; !strings.Contains(out, want) {
		t.Errorf("%s%s", out, errs)
	}
}
