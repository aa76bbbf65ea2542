package dropin

import (
	"cmp"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	basemetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	upstream "k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/edge/config/features"
	berth "github.com/berth-scheduler/berth/edge/metrics"
	"github.com/berth-scheduler/berth/scheduler"
)

// live and restart say when a change of a field takes effect.
const (
	live    = "; also without a restart"
	restart = "; a change takes a restart"
)

// readElsewhere is what Berth does with a gate that libraries alone read.
const readElsewhere = "accepted; kube-scheduler does not read it itself"

const here = "`lab/dropin`, TestPageIsUpToDate"

// flags compares names, defaults and deprecations.
func flags(t *testing.T) (rows []row) {
	ours := scheduler.NewCommand().Flags()
	app.NewSchedulerCommand().Flags().VisitAll(func(f *pflag.Flag) {
		r := row{"flag", code("--" + f.Name), "default " + code(f.DefValue), "same", here}
		if f.Name == "emulated-version" {
			r.ours, r.test = "same, from 1.34 on", "`lab/oracle`, TestGatesUnderEmulationAreUpstreams"
		}
		if f.DefValue == "" {
			r.theirs = "no default"
		}
		if f.Deprecated != "" {
			r.theirs += ", deprecated"
		}
		switch own := ours.Lookup(f.Name); {
		case own == nil:
			t.Errorf("--%s: Berth does not have it", f.Name)
		case own.DefValue == "" && f.DefValue != "":
			r.ours = "same, with no default"
		case own.DefValue != f.DefValue:
			r.ours = "default " + code(own.DefValue)
		}
		rows = append(rows, r)
	})
	slices.SortFunc(rows, byName)
	return rows
}

// reloaded are the fields of the configuration that Berth takes over while it runs.
var reloaded = []string{"parallelism", "percentageOfNodesToScore", "podInitialBackoffSeconds", "podMaxBackoffSeconds", "profiles"}

// differing are the fields with a meaning of their own.
var differing = map[string]string{
	"percentageOfNodesToScore": "accepted; every node is scored",
	"parallelism":              "cores for the first look at a class of pods",
	"DefaultPreemptionArgs.minCandidateNodesPercentage": "all nodes count; what extenders are shown, and searches that are not node by node, are limited",
	"DefaultPreemptionArgs.minCandidateNodesAbsolute":   "as minCandidateNodesPercentage",
	"DynamicResourcesArgs.filterTimeout":                "10 steps of the search per millisecond",
	"extenders[].weight":                                "counts up to 2^32",
}

func fields() (rows []row) {
	var walk func(path, top string, t reflect.Type)
	walk = func(path, top string, t reflect.Type) {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
			walk(path+"[]", top, t.Elem())
			return
		}
		if t.Kind() != reflect.Struct || !strings.Contains(t.PkgPath(), "config") {
			r := row{"field", code(path), t.String(), "same", "`edge/config`, TestInvalid, TestDefaultFields"}
			if text := differing[path]; text != "" {
				r.ours = text
			}
			if !slices.Contains(reloaded, top) || path == "profiles[].schedulerName" {
				r.ours += restart
			} else {
				r.ours += live
			}
			rows = append(rows, r)
			return
		}
		for i := range t.NumField() {
			f := t.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Name == "TypeMeta":
			case name == "" && strings.Contains(options, "inline"):
				walk(path, top, f.Type)
			default:
				first := top
				if first == "" {
					first = name
				}
				walk(strings.TrimPrefix(path+"."+name, "."), first, f.Type)
			}
		}
	}
	walk("", "", reflect.TypeFor[configv1.KubeSchedulerConfiguration]())
	for _, args := range []any{configv1.DefaultPreemptionArgs{}, configv1.DynamicResourcesArgs{}, configv1.InterPodAffinityArgs{}, configv1.NodeAffinityArgs{},
		configv1.NodeResourcesBalancedAllocationArgs{}, configv1.NodeResourcesFitArgs{}, configv1.PodTopologySpreadArgs{}, configv1.VolumeBindingArgs{}} {
		walk(reflect.TypeOf(args).Name(), "profiles", reflect.TypeOf(args))
	}
	return rows
}

// missing returns why Berth does not have a metric of kube-scheduler, by name.
func missing(t *testing.T) map[string]string {
	why := map[string]string{}
	for line := range strings.Lines(contents(t, "../../edge/metrics/testdata/missing.txt")) {
		if name, text, found := strings.Cut(strings.TrimSpace(line), " | "); found {
			why[name] = text
		}
	}
	return why
}

var desc = regexp.MustCompile(`fqName: "([^"]*)", help: "\[(\w+)\].*variableLabels: \{(.*)\}\}$`)

func described(r prometheus.Registerer) map[string]string {
	ch := make(chan *prometheus.Desc, 10000)
	r.(prometheus.Collector).Describe(ch)
	close(ch)
	all := map[string]string{}
	for d := range ch {
		if m := desc.FindStringSubmatch(d.String()); m != nil {
			all[m[1]] = strings.TrimSpace(m[2] + " " + m[3])
		}
	}
	return all
}

// ofClient are the metrics of client-go, which registers each when it is first used.
func ofClient(t *testing.T) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(contents(t, "../../testdata/upstream/metrics.txt")) {
		name, shape, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if regexp.MustCompile(`^(rest_client|leader_election|informer)_`).MatchString(name) {
			shape, _, _ = strings.Cut(shape, ";")
			_, shape, _ = strings.Cut(shape, " ") // without its type
			found[name] = strings.ReplaceAll(strings.Replace(shape, " of ", " ", 1), ", ", ",")
		}
	}
	return found
}

func metrics(t *testing.T) (rows []row) {
	upstream.Register()
	theirs := described(legacyregistry.Registerer())
	registry := basemetrics.NewKubeRegistry()
	berth.New(registry.MustRegister, []string{"p"})
	ours, lacks := described(registry.Registerer()), missing(t)
	for name, shape := range ofClient(t) {
		if theirs[name] == "" {
			theirs[name] = shape
		}
	}
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		r := row{"metric", code(name), theirs[name], "same library", here}
		if strings.HasPrefix(name, "scheduler_") || strings.HasPrefix(name, "dynamic_resource_allocation_") {
			r.ours, r.test = "same", "`edge/metrics`, TestMetricsAreUpstreams"
			if why := lacks[name]; why != "" {
				r.ours = why
			} else if ours[name] == "" {
				t.Errorf("metric %s: Berth does not have it", name)
			}
		}
		if name == "rest_client_rate_limiter_duration_seconds" { // bindings tell of their waits themselves
			r.test = "`edge/kube`, TestWaitForTheRateLimiter"
		}
		rows = append(rows, r)
	}
	return rows
}

func gates(t *testing.T) (rows []row) {
	klog.SetLogger(logr.Discard()) // the gates warn of their age
	defer klog.ClearLogger()
	read, all := sources(t).Gates(), utilfeature.DefaultMutableFeatureGate.GetAll()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		spec := all[name]
		r := row{"gate", code(string(name)), map[bool]string{true: "on", false: "off"}[spec.Default], readElsewhere, "`lab/oracle`, TestGatesAreUpstreams"}
		if spec.LockToDefault {
			r.theirs += ", locked"
		}
		switch why := refused(name, !spec.Default); {
		case slices.Contains(features.Idle, name):
			r.ours, r.test = "accepted, changes nothing", "`edge/config/features`, TestDefaults"
		case why != "":
			r.ours, r.test = "the other value is refused: "+why, "`edge/config/features`, TestUnsupported"
		case spec.LockToDefault:
			r.ours = "same"
		case read[string(name)] != nil:
			r.ours = "same"
			if decides(string(name)) {
				r.test = "`lab/conform`, TestEveryGate"
			}
			r.test = cmp.Or(shown[string(name)], r.test)
		}
		rows = append(rows, r)
	}
	return rows
}

// shown are the tests of gates that change what comes of a decision.
var shown = map[string]string{
	"CoordinatedLeaderElection":       "`lab/e2e`, TestCoordinatedLeaderElection",
	"NominatedNodeNameForExpectation": "`core/machine`, TestHiddenNode",
	"SchedulerAsyncPreemption":        "`core/machine`, TestEvictionsAreWaitedFor",
	"SchedulerPopFromBackoffQ":        "`core/queue`, TestBackoffIsWaitedOut",
	"SchedulerPreQueueingHints":       "`edge/compat`, TestPreQueueingHints",
}

// decides tells whether the gate changes what in-tree plugins say, or is read for what
// a pod requests.
func decides(gate string) bool {
	_, read := reflect.TypeFor[feature.Features]().FieldByName(gate)
	return read || gate == string(features.PodLevelResources) || gate == string(features.InPlacePodLevelResourcesVerticalScaling)
}

// refused says why Berth refuses the value of the gate, "" where it does not.
func refused(name featuregate.Feature, value bool) string {
	gates := features.New()
	on := map[string]bool{string(name): value}
	for need := []featuregate.Feature{name}; len(need) > 0; need = need[1:] {
		for _, other := range related(gates, need[0], value) {
			on[string(other)] = value
			need = append(need, other)
		}
	}
	if err := gates.SetFromMap(on); err != nil {
		return ""
	}
	var why []string
	for _, err := range features.Unsupported(gates) {
		why = append(why, strings.TrimPrefix(err.Error(), "feature gate "))
	}
	return strings.Join(why, "; ")
}

// related are the gates that have to have the gate's value, too: those that it needs
// where it is on, and those that need it where it is off.
func related(gates featuregate.MutableVersionedFeatureGate, name featuregate.Feature, value bool) (list []featuregate.Feature) {
	needs := gates.Dependencies()
	if value {
		return needs[name]
	}
	for _, other := range slices.Sorted(maps.Keys(needs)) {
		if slices.Contains(needs[other], name) {
			list = append(list, other)
		}
	}
	return list
}
