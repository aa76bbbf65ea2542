package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-scheduler/berth/edge/shadow"
	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/lab/proxy"
)

// Pods of TestShadow beside those of the Deployments and the Job, 2,000 together.
const (
	shadowWebPods   = 500
	shadowSpread    = 200
	shadowApart     = 200
	shadowBarePods  = 500
	shadowedFitting = shadowWebPods + cachePods + jobPods + shadowSpread + shadowApart + shadowBarePods
)

// mostUnexplained is how many choices may have no explanation, one in a hundred. On a
// machine without a free core the watch shows some bindings later than the shadow waits
// for them, and then those around them have none.
const mostUnexplained = 20

// kube-scheduler places 2,000 pods while Berth looks on with the rights of
// deploy/shadow.yaml. It writes nothing. The choices that are not among Berth's best
// nodes are explained: by the sample that kube-scheduler looks at, or by the order in
// which it decided. Where it looks at every node, nearly all its choices are among the
// best in that order.
func TestShadow(t *testing.T) {
	for _, test := range []struct {
		percent int     // percentageOfNodesToScore
		agree   float64 // the least part that is to be the same, or of the same score
	}{{100, 0.95}, {0, 0}} {
		t.Run(fmt.Sprint("percentageOfNodesToScore=", test.percent), func(t *testing.T) {
			t.Setenv("BERTH_CHECK", "") // at the speed that users see
			f := newField(t, fmt.Sprint("shadow-", test.percent))
			nodes := cluster.Nodes(200)
			for _, node := range nodes {
				node.Labels[fieldLabel] = f.name
			}
			f.addNodes(nodes...)

			config := fmt.Appendf(nil, "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\npercentageOfNodesToScore: %d\n", test.percent)
			found := filepath.Join(t.TempDir(), "found.jsonl")
			berth, p := f.shadow(config, "--shadow-to="+found)
			live, err := f.cluster.StartScheduler(t.Context(), cluster.SchedulerOptions{Kind: cluster.KubeScheduler, Config: config})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(live.Kill)

			f.deploy("web", shadowWebPods, "250m", nil)
			f.deploy("cache", cachePods, "1", map[string]string{cluster.DiskLabel: "ssd"})
			f.job("report", jobPods, "500m")
			f.create(f.mixedPods()...)
			f.awaitBound(shadowedFitting)

			counts := f.awaitChoices(berth, shadowedFitting)
			t.Logf("choices: %v", counts)
			if writes := p.Count(isWrite); writes > 0 {
				t.Errorf("it sent %d writes: %+v", writes, slices.DeleteFunc(p.Exchanges(), func(e proxy.Exchange) bool { return !isWrite(e) }))
			}
			if best := counts[shadow.Same] + counts[shadow.Tie] + counts[shadow.Stale]; float64(best) < test.agree*shadowedFitting {
				t.Errorf("%d choices are among the best nodes, of %d", best, shadowedFitting)
			}
			explained := counts[shadow.Same] + counts[shadow.Tie] + counts[shadow.Stale] + counts[shadow.Sampled]
			if left := shadowedFitting - explained; left > 0 {
				t.Logf("%d choices are not explained:\n%s", left, unexplained(t, found))
				if left > mostUnexplained {
					t.Errorf("that is more than %d", mostUnexplained)
				}
			}
		})
	}
}

// mixedPods are bare pods: plain ones, ones that are spread, and ones that keep apart.
func (f *field) mixedPods() []*corev1.Pod {
	pods := f.podsOf("bare", shadowBarePods, "100m")
	for _, pod := range f.podsOf("spread", shadowSpread, "200m") {
		pod.Labels["app"] = "spread"
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "spread"}}
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector},
			{MaxSkew: 2, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector},
		}
		pods = append(pods, pod)
	}
	for _, pod := range f.podsOf("apart", shadowApart, "200m") {
		pod.Labels["app"] = "apart"
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 50, PodAffinityTerm: corev1.PodAffinityTerm{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "apart"}},
			}}},
		}}
		pods = append(pods, pod)
	}
	return pods
}

// shadow starts Berth as deploy/shadow.yaml does, with its flags and its rights, behind
// a proxy that notes what it sends.
func (f *field) shadow(config []byte, flags ...string) (*cluster.Scheduler, *proxy.Proxy) {
	f.Helper()
	manifest, err := os.ReadFile(filepath.Join(deployDir, "shadow.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	rights := slices.DeleteFunc(objects(f.T, string(manifest)), func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	f.apply(rights)

	upstream, err := clientcmd.BuildConfigFromFlags("", f.kubeconfigOf(metav1.NamespaceSystem, "berth-shadow"))
	if err != nil {
		f.Fatal(err)
	}
	pki := filepath.Join(f.cluster.Dir(), "pki", cluster.APIServer)
	p, err := proxy.Start(upstream, pki+".crt", pki+".key")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { p.Close() })
	kubeconfig := f.kubeconfigOf(metav1.NamespaceSystem, "berth-shadow")
	file, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range file.Clusters {
		c.Server = p.URL
	}
	if err := clientcmd.WriteToFile(*file, kubeconfig); err != nil {
		f.Fatal(err)
	}
	return f.berth(cluster.SchedulerOptions{Kubeconfig: kubeconfig, Config: config, Flags: append([]string{"--shadow"}, flags...)}), p
}

// isWrite: anything but a read, or a review, which changes nothing.
func isWrite(e proxy.Exchange) bool {
	return e.Method != http.MethodGet && !strings.HasSuffix(e.Path, "/tokenreviews") && !strings.HasSuffix(e.Path, "/subjectaccessreviews")
}

// awaitChoices waits until that many choices are counted, and returns them by result.
func (f *field) awaitChoices(s *cluster.Scheduler, want int) map[shadow.Result]int {
	f.Helper()
	counts := map[shadow.Result]int{}
	f.await("the choices to be compared", func() string {
		sum := 0
		for _, r := range []shadow.Result{shadow.Same, shadow.Tie, shadow.Nominated, shadow.Stale, shadow.Sampled, shadow.Lower,
			shadow.Infeasible, shadow.Unschedulable, shadow.NotCompared} {
			counts[r] = f.metric(s, "berth_shadow_choices_total", `result="`+string(r)+`"`)
			sum += counts[r]
		}
		return missing(sum, want)
	})
	return counts
}

// unexplained are the lines about choices that nothing explains, the first of them.
func unexplained(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range bytes.Lines(data) {
		var r shadow.Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.Result != shadow.Stale && r.Result != shadow.Sampled {
			lines = append(lines, string(line))
		}
	}
	slices.SortStableFunc(lines, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	return strings.Join(lines[:min(len(lines), 20)], "")
}

// The chart's mode shadow has the rights and the flags of deploy/shadow.yaml, and no
// others.
func TestChartOfShadow(t *testing.T) {
	manifest, err := os.ReadFile(filepath.Join(deployDir, "shadow.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := objects(t, string(manifest))
	got := chart(t, metav1.NamespaceSystem, map[string]any{"mode": "shadow", "name": "berth-shadow", "replicas": 3})
	kinds := func(all []*unstructured.Unstructured) (kinds []string) {
		for _, o := range all {
			if o.GetKind() != "ConfigMap" {
				kinds = append(kinds, o.GetKind()+" "+o.GetName())
			}
		}
		slices.Sort(kinds)
		return kinds
	}
	if !slices.Equal(kinds(got), kinds(want)) {
		t.Errorf("the chart has %v, the manifest %v", kinds(got), kinds(want))
	}
	rights := func(all []*unstructured.Unstructured) []rbacv1.PolicyRule {
		return find[rbacv1.ClusterRole](t, all, "ClusterRole", "berth-shadow").Rules
	}
	if !reflect.DeepEqual(rights(got), rights(want)) {
		t.Errorf("the chart's rights are\n%v\nthe manifest's\n%v", rights(got), rights(want))
	}
	for _, rule := range rights(want) {
		review := slices.Equal(rule.Resources, []string{"tokenreviews"}) || slices.Equal(rule.Resources, []string{"subjectaccessreviews"})
		if !review && !slices.Equal(rule.Verbs, []string{"get", "list", "watch"}) {
			t.Errorf("more than reading: %v", rule)
		}
	}
	deployment := find[appsv1.Deployment](t, got, "Deployment", "berth-shadow")
	if args := deployment.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--shadow") || *deployment.Spec.Replicas != 1 {
		t.Errorf("flags %v, %d replicas", args, *deployment.Spec.Replicas)
	}
	config := find[corev1.ConfigMap](t, got, "ConfigMap", "berth-shadow").Data["config.yaml"]
	if !strings.Contains(config, "schedulerName: default-scheduler") {
		t.Errorf("configuration:\n%s", config)
	}
}
