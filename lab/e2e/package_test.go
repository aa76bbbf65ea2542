package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/lab/cluster"
)

var deployDir = filepath.Join("..", "..", "deploy")

// chart is what helm installs of Berth's chart.
func chart(t *testing.T, namespace string, values map[string]any) []*unstructured.Unstructured {
	t.Helper()
	files := rendered(t, namespace, values)
	var all []*unstructured.Unstructured
	for _, name := range []string{"rbac", "flowcontrol", "deployment", "monitoring", "elasticquotas", "podgroups"} {
		all = append(all, objects(t, files[templates+name+".yaml"])...)
	}
	if len(files) != 6+1 {
		t.Errorf("%d templates, of which this test knows 6 and the notes", len(files))
	}
	return all
}

// templates is where helm has what it renders.
const templates = "berth-scheduler/templates/"

// rendered is what helm makes of the templates of Berth's chart, by file.
func rendered(t *testing.T, namespace string, values map[string]any) map[string]string {
	t.Helper()
	c, err := loader.Load(filepath.Join(deployDir, "chart"))
	if err != nil {
		t.Fatal(err)
	}
	version, err := chartutil.ParseKubeVersion(cluster.KubernetesVersion)
	if err != nil {
		t.Fatal(err)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	release := chartutil.ReleaseOptions{Name: "release", Namespace: namespace, Revision: 1, IsInstall: true}
	complete, err := chartutil.ToRenderValues(c, values, release, capabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, complete)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// base is what `kubectl apply -k deploy` applies.
func base(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), deployDir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, string(text))
}

func objects(t *testing.T, manifest string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &o.Object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}

// find is the object of a kind with a name.
func find[T any](t *testing.T, all []*unstructured.Unstructured, kind, name string) (found T) {
	t.Helper()
	for _, o := range all {
		if o.GetKind() == kind && o.GetName() == name {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &found, true); err != nil {
				t.Fatal(err)
			}
			return found
		}
	}
	t.Fatalf("no %s %s", kind, name)
	return found
}

// The chart with its default values in kube-system is the base, except for helm's
// labels and the identity that Berth has outside the cluster.
func TestChartIsTheBase(t *testing.T) {
	plain := func(all []*unstructured.Unstructured) map[string]any {
		byName := map[string]any{}
		for _, o := range all {
			o.SetLabels(nil)
			unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "annotations")
			withoutUsers(o.Object)
			if text, ok, _ := unstructured.NestedString(o.Object, "data", "config.yaml"); ok {
				var config any
				if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
					t.Fatal(err)
				}
				o.Object["data"] = config
			}
			byName[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o.Object
		}
		return byName
	}
	got, want := plain(chart(t, metav1.NamespaceSystem, nil)), plain(base(t))
	for name := range want {
		if !reflect.DeepEqual(got[name], want[name]) {
			t.Errorf("%s: the chart has\n%v\nthe base has\n%v", name, got[name], want[name])
		}
	}
	if len(got) != len(want) || len(want) != 15 {
		t.Errorf("%d objects in the chart, %d in the base, want 15", len(got), len(want))
	}
}

// What helm says after an installation is so in each mode: who schedules which pods, how
// to see that it works, and how to ask why a pod waits.
func TestNotes(t *testing.T) {
	const lease, port = "--daemon auto --lease apart/berth-scheduler\n", "--daemon https://127.0.0.1:10259 --insecure-skip-tls-verify\n"
	for name, tc := range map[string]struct {
		values     map[string]any
		want, lack []string
	}{
		"beside": {nil,
			[]string{"beside the cluster's scheduler", "\n    schedulerName: berth\n", "kubectl -n apart get lease berth-scheduler ", "berth status " + lease, "berth top " + lease, "berth why NAMESPACE/POD " + lease, "berth events NAMESPACE/POD " + lease},
			[]string{"kube-scheduler", "default-scheduler", "port-forward"}},
		"profiles of one's own": {map[string]any{"config": map[string]any{"profiles": []any{map[string]any{"schedulerName": "pack"}, map[string]any{"schedulerName": "spread"}}}},
			[]string{"\n    schedulerName: pack\n    schedulerName: spread\n", "berth top " + lease},
			[]string{"schedulerName: berth"}},
		"no lease": {map[string]any{"replicas": 1, "config": map[string]any{"leaderElection": map[string]any{"leaderElect": false}}},
			[]string{"port-forward deployment/berth-scheduler 10259", "berth top " + port, "berth why NAMESPACE/POD " + port, "berth events NAMESPACE/POD " + port},
			[]string{"get lease", "auto"}},
		"replace, not in the namespace of kube-scheduler's lease": {map[string]any{"mode": "replace", "name": "mine"},
			[]string{"the pods of default-scheduler while\n", "the lease kube-system/kube-scheduler.", "Stop kube-scheduler", "rollout status deployment/mine\n", "kubectl -n kube-system get lease kube-scheduler ", "kubectl -n apart port-forward HOLDER 10259 ", "berth top " + port},
			[]string{"beside", "shadow", "auto"}},
		"shadow": {map[string]any{"mode": "shadow", "port": 12259},
			[]string{"schedules nothing", "the pods of default-scheduler with", `logs deployment/berth-scheduler | grep "Live scheduler"`, "berth status --shadow apart --insecure-skip-tls-verify ", "port-forward deployment/berth-scheduler 12259", "berth why NAMESPACE/POD --daemon https://127.0.0.1:12259 --insecure-skip-tls-verify\n"},
			[]string{"lease", "berth events", "beside"}},
	} {
		notes := rendered(t, "apart", tc.values)[templates+"NOTES.txt"]
		for _, want := range tc.want {
			if !strings.Contains(notes, want) {
				t.Errorf("%s: no %q in\n%s", name, want, notes)
			}
		}
		for _, lack := range tc.lack {
			if strings.Contains(notes, lack) {
				t.Errorf("%s: %q in\n%s", name, lack, notes)
			}
		}
		if strings.Contains(notes, "\n\n\n") || !strings.HasPrefix(notes, "Berth ") {
			t.Errorf("%s: gaps in\n%q", name, notes)
		}
	}
}

// In the namespace of the lease berth finds the leader's pod by itself.
func TestNotesInKubeSystem(t *testing.T) {
	notes := rendered(t, metav1.NamespaceSystem, map[string]any{"mode": "replace"})[templates+"NOTES.txt"]
	if want := "berth top --daemon auto --lease kube-system/kube-scheduler\n"; !strings.Contains(notes, want) || strings.Contains(notes, "port-forward") {
		t.Errorf("no %q in\n%s", want, notes)
	}
}

// withoutUsers takes the users out of all lists of subjects.
func withoutUsers(value any) {
	switch value := value.(type) {
	case map[string]any:
		if subjects, ok := value["subjects"].([]any); ok {
			var kept []any
			for _, s := range subjects {
				if s.(map[string]any)["kind"] != "User" {
					kept = append(kept, s)
				}
			}
			value["subjects"] = kept
		}
		for _, v := range value { // any order
			withoutUsers(v)
		}
	case []any:
		for _, v := range value {
			withoutUsers(v)
		}
	}
}

// The chart is installed in a namespace that only takes pods of the restricted
// standard: its pods come to be there. Berth then runs with the chart's
// configuration, flags and service account: it takes its lease and places pods.
func TestChart(t *testing.T) {
	for _, test := range []struct {
		mode, profile, lease, leaseNamespace string
	}{
		{"beside", "second", "chart-beside", "chart-beside-system"},
		{"replace", "default-scheduler", "kube-scheduler", metav1.NamespaceSystem},
	} {
		t.Run(test.mode, func(t *testing.T) {
			f := newFieldOn(t, start(t, cluster.Options{}, 0), "chart-"+test.mode) // its pods and its lease outlive it
			f.regrets = regexp.MustCompile(`forbidden: User|` + alarms)            // a namespace that goes forbids new events to anybody
			f.sameNodes(3, "8", 110)
			namespace := f.name + "-system"
			f.restricted(namespace)
			all := chart(t, namespace, map[string]any{"mode": test.mode, "name": f.name, "schedulerName": test.profile, "replicas": 3,
				"podMonitor": true, "prometheusRule": true, "dashboard": true,
				"extraArgs": []any{"--feature-gates=ContextualLogging=true"}, "config": map[string]any{"podInitialBackoffSeconds": 2}})
			f.apply(withoutOperator(t, all))
			f.await("the chart's pods", func() string {
				pods, err := f.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return missing(len(pods.Items), 3)
			})

			flags := find[appsv1.Deployment](t, all, "Deployment", f.name).Spec.Template.Spec.Containers[0].Args
			berth := f.berth(cluster.SchedulerOptions{
				Kubeconfig: f.kubeconfigOf(namespace, f.name), LeaderElect: true, Flags: flags[2:], // its own file and port
				Config: []byte(find[corev1.ConfigMap](t, all, "ConfigMap", f.name).Data["config.yaml"])})
			pods := f.podsOf("some", 10, "1")
			for _, p := range pods {
				p.Spec.SchedulerName = test.profile
			}
			f.create(pods...)
			f.awaitBound(10)
			lease, err := f.client.CoordinationV1().Leases(test.leaseNamespace).Get(t.Context(), test.lease, metav1.GetOptions{})
			if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
				t.Errorf("nobody holds the lease: %v %v", lease, err)
			}
			for _, name := range []string{"leader_election_master_status", "rest_client_requests_total", "process_resident_memory_bytes", "process_cpu_seconds_total"} {
				if f.metric(berth, name) < 0 || !strings.Contains(f.body(berth, "/metrics"), "\n"+name) {
					t.Errorf("dashboard and alerts use %s, which is not served", name)
				}
			}
		})
	}
}

// withoutOperator leaves out what only an API server with the operator of
// Prometheus takes: a monitor and rules.
func withoutOperator(t *testing.T, all []*unstructured.Unstructured) (rest []*unstructured.Unstructured) {
	t.Helper()
	var left []string
	for _, o := range all {
		if o.GroupVersionKind().Group != "monitoring.coreos.com" {
			rest = append(rest, o)
			continue
		}
		left = append(left, o.GetKind())
		if groups, _, err := unstructured.NestedSlice(o.Object, "spec", "groups"); o.GetKind() == "PrometheusRule" && (err != nil || len(groups) == 0) {
			t.Errorf("no alerts: %v", err)
		}
	}
	if strings.Join(left, " ") != "PodMonitor PrometheusRule" {
		t.Errorf("left out %q", left)
	}
	return rest
}

// The API server takes the base and the static pod as they are.
func TestManifests(t *testing.T) {
	f := newFieldOn(t, start(t, cluster.Options{}, 0), "manifests")
	static, err := os.ReadFile(filepath.Join(deployDir, "static-pod.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	f.applyWith(append(base(t), objects(t, string(static))...), metav1.ApplyOptions{DryRun: []string{metav1.DryRunAll}})
}

func (f *field) body(s *cluster.Scheduler, path string) string {
	f.Helper()
	_, body := f.ask(s, client{config: f.cluster.AdminConfig()}, path)
	return body
}

// restricted makes a namespace for pods of the restricted standard, which goes
// with the field.
func (f *field) restricted(name string) {
	f.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if _, err := f.client.CoreV1().Namespaces().Create(f.Context(), namespace, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := f.client.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			f.Error(err)
		}
	})
}

// apply applies objects for good, as long as the field lasts.
func (f *field) apply(all []*unstructured.Unstructured) {
	f.Helper()
	f.applyWith(all, metav1.ApplyOptions{})
	f.Cleanup(func() {
		for _, o := range all {
			if o.GetNamespace() != "" && o.GetNamespace() != metav1.NamespaceSystem {
				continue // goes with its namespace
			}
			if err := f.resource(o).Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}); err != nil {
				f.Error(err)
			}
		}
	})
}

// applyWith applies objects, each as its owner's only one.
func (f *field) applyWith(all []*unstructured.Unstructured, options metav1.ApplyOptions) {
	f.Helper()
	options.FieldManager, options.Force = "package-test", true
	for _, o := range all {
		if _, err := f.resource(o).Apply(f.Context(), o.GetName(), o, options); err != nil {
			f.Errorf("applying %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

func (f *field) resource(o *unstructured.Unstructured) dynamic.ResourceInterface {
	f.Helper()
	client, err := dynamic.NewForConfig(f.cluster.AdminConfig())
	if err != nil {
		f.Fatal(err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	return client.Resource(resource).Namespace(o.GetNamespace())
}

// kubeconfigOf is the file of a kubeconfig with a token of a service account.
func (f *field) kubeconfigOf(namespace, account string) string {
	f.Helper()
	config, err := clientcmd.LoadFromFile(f.cluster.Kubeconfig(cluster.Admin))
	if err != nil {
		f.Fatal(err)
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{account: {Token: f.token(namespace, account)}}
	config.Contexts[config.CurrentContext].AuthInfo = account
	file := filepath.Join(f.TempDir(), fmt.Sprintf("%s.kubeconfig", account))
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		f.Fatal(err)
	}
	return file
}
