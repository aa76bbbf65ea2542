package tool

import (
	"strings"
	"testing"
)

// why says what the quota of a pod uses beside its min and max.
func TestWhyQuota(t *testing.T) {
	_, out, errs := berth("", "why", "-f", "testdata/quotas.yaml", "--config", "testdata/quotas-config.yaml", "web/web-3")
	if want := "web/web-3 waits for quota: it requests 1 example.com/gpu; ElasticQuota web/web uses 4 of at most 4.\n"; !strings.HasPrefix(out, want) {
		t.Errorf("%s%s", out, errs)
	}
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

// why says of an ElasticQuota what it has lent and borrowed, what a pod may request, what of it is
// wrong, and which pods wait, as docs/batch.md shows.
func TestWhyElasticQuota(t *testing.T) {
	const files, tree = "testdata/quotas.yaml", "testdata/quotas-tree.yaml"
	var all strings.Builder
	for _, c := range []struct{ file, name string }{{files, "eq/research"}, {files, "elasticquotas/web"}, {tree, "team/eq/all"}, {tree, "a/eq/a"}, {tree, "eq/b"}, {tree, "eq/lab"}, {tree, "eq/odd"}, {tree, "eq/late"}} {
		_, out, errs := berth("", "why", "-f", c.file, "--config", "testdata/quotas-config.yaml", c.name)
		if errs != "" {
			t.Errorf("%s: stderr %q", c.name, errs)
		}
		all.WriteString("$ berth why " + c.name + "\n" + out + "\n")
	}
	golden(t, "why-elasticquota.text", all.String())
	_, out, _ := berth("", "why", "-f", tree, "--config", "testdata/quotas-config.yaml", "-o", "json", "eq/b")
	golden(t, "why-elasticquota.json", out)
}

// An ElasticQuota that is not there, or does not count, is not valid input; similar names are told.
func TestWhyNoElasticQuota(t *testing.T) {
	for want, args := range map[string][]string{
		"berth: elasticquota default/reserch: there is none; did you mean research/research?\n":                                                                                                                {"eq/reserch", "--config", "testdata/quotas-config.yaml"},
		"berth: elasticquota web/research: there is none; did you mean research/research?\n":                                                                                                                   {"-n", "web", "eq/research", "--config", "testdata/quotas-config.yaml"},
		"berth: elasticquota default/none: there is none among 2\n":                                                                                                                                            {"eq/none", "--config", "testdata/quotas-config.yaml"},
		"berth: pod web/web: there is no such pod; there is elasticquota web/web: give web/elasticquota/web\n":                                                                                                 {"web/web", "--config", "testdata/quotas-config.yaml"},
		"berth: elasticquota default/web: no profile of the configuration used here enables the plugin CapacityScheduling, so no ElasticQuota counts: give --config FILE of the scheduler, or --daemon auto\n": {"eq/web"},
	} {
		if code, out, errs := berth("", append([]string{"why", "-f", "testdata/quotas.yaml"}, args...)...); code != exitInvalid || out != "" || errs != want {
			t.Errorf("%q: exit status %d, %s%s", args, code, out, errs)
		}
	}
}
