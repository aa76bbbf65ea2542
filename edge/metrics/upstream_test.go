package metrics

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/component-base/metrics"
)

// lines are the lines of a file that are no comments.
func lines(t *testing.T, file string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

// Every metric of kube-scheduler that Berth is to have has the same type, stability,
// labels and buckets. Those that it lacks are listed with the reason, and no others.
func TestMetricsAreUpstreams(t *testing.T) {
	registry, own, lacks, want := metrics.NewKubeRegistry(), map[string]metrics.Registerable{}, map[string]bool{}, map[string]string{}
	register := func(list ...metrics.Registerable) {
		registry.MustRegister(list...)
		for _, r := range list {
			own[r.FQName()] = r
		}
	}
	New(register, []string{"p"}).Groups(register)
	for _, line := range lines(t, "testdata/missing.txt") {
		name, _, _ := strings.Cut(line, " | ")
		lacks[name] = true
	}
	for _, line := range lines(t, "../../testdata/upstream/metrics.txt") {
		name, shape, _ := strings.Cut(line, ": ")
		if !strings.HasPrefix(name, "scheduler_") && !strings.HasPrefix(name, "dynamic_") {
			continue // the libraries have it
		}
		shape, _, _ = strings.Cut(shape, "; under ")
		_, labels, _ := strings.Cut(shape, " of ")
		labels, _, _ = strings.Cut(labels, ";")
		switch there := own[name] != nil; {
		case there == lacks[name]:
			t.Errorf("%s: there is %v, listed as missing %v", name, there, lacks[name])
		case there:
			names := strings.Split(labels, ", ")
			slices.Sort(names) // as a scrape has them
			want[name] = strings.Replace(shape, labels, strings.Join(names, ", "), 1)
			touch(t, own[name], names)
		}
		delete(lacks, name)
	}
	got := shapes(t, registry)
	for name, shape := range want {
		if got := got[name] + deprecation(own[name]); got != shape {
			t.Errorf("%s: %s, want %s", name, got, shape)
		}
	}
	for name := range lacks {
		t.Errorf("kube-scheduler has no metric %s", name)
	}
	if len(want) < 30 {
		t.Errorf("%d metrics are compared", len(want))
	}
}

// touch gives a metric a series.
func touch(t *testing.T, r metrics.Registerable, labels []string) {
	defer func() {
		if err := recover(); err != nil {
			t.Errorf("%s: %v", r.FQName(), err)
		}
	}()
	values := map[string]string{}
	for _, name := range labels {
		values[name] = "x"
	}
	delete(values, "")
	switch m := r.(type) {
	case *metrics.CounterVec:
		m.With(values).Inc()
	case *metrics.GaugeVec:
		m.With(values).Inc()
	case *metrics.HistogramVec:
		m.With(values).Observe(1)
	}
}

// deprecation says since when the metric is deprecated, "" if it is not.
func deprecation(r metrics.Registerable) string {
	version := reflect.ValueOf(r).MethodByName("DeprecatedVersion").Call(nil)[0]
	if version.IsNil() {
		return ""
	}
	return fmt.Sprintf("; deprecated in %v", version)
}

var help = regexp.MustCompile(`^\[(\w+)\] `)

// shapes describes each metric that has a series as the list of kube-scheduler's does.
func shapes(t *testing.T, registry metrics.KubeRegistry) map[string]string {
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range families {
		first, words := f.GetMetric()[0], help.FindStringSubmatch(f.GetHelp())
		if words == nil {
			t.Fatalf("%s: %s", f.GetName(), f.GetHelp())
		}
		shape := strings.ToLower(f.GetType().String()) + " " + words[1]
		var labels []string
		for _, l := range first.GetLabel() {
			labels = append(labels, l.GetName())
		}
		if len(labels) > 0 {
			shape += " of " + strings.Join(labels, ", ")
		}
		var bounds []float64
		for _, b := range first.GetHistogram().GetBucket() {
			bounds = append(bounds, b.GetUpperBound())
		}
		if len(bounds) > 1 {
			shape += fmt.Sprintf("; ExponentialBuckets(%s, %.2g, %d)", strconv.FormatFloat(bounds[0], 'f', -1, 64), bounds[1]/bounds[0], len(bounds))
		}
		all[f.GetName()] = shape
	}
	return all
}
