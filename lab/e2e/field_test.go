package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/berth-scheduler/berth/lab/cluster"
)

const (
	// timeout is how long anything may take that takes seconds on an idle
	// machine. It is far below the five minutes after which a scheduler looks at
	// all pods again in any case.
	timeout = 2 * time.Minute
	// glance is how often a condition is looked at that no watch tells of.
	glance = 100 * time.Millisecond
	// writers is how many requests a test makes at a time.
	writers = 16
	// fieldLabel is on all nodes of a field, and selected by all its pods.
	fieldLabel = "field"
)

// field is one test's part of the shared cluster: a namespace, the nodes with
// its name as label, and what a watch has shown of its pods and events.
type field struct {
	*testing.T
	cluster *cluster.Cluster
	client  kubernetes.Interface
	name    string

	changed chan struct{} // holds a value when the watches have shown something new
	pods    cache.SharedIndexInformer
	events  cache.SharedIndexInformer

	regrets *regexp.Regexp // what no log of Berth may hold

	mu   sync.Mutex
	gone map[string]*corev1.Pod // pods that were deleted, as last seen, by name
}

// newField makes a field that is cleared when the test ends.
func newField(t *testing.T, name string) *field {
	t.Helper()
	return newFieldOn(t, controlPlane(t), name)
}

// newFieldOn makes a field of a cluster that is not the shared one.
func newFieldOn(t *testing.T, c *cluster.Cluster, name string) *field {
	t.Helper()
	f := &field{T: t, cluster: c, name: name, changed: make(chan struct{}, 1), gone: map[string]*corev1.Pod{}}
	f.regrets = regexp.MustCompile(`(?i)forbidden|` + alarms)
	f.client = f.cluster.Client()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := f.client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(f.client, 0, informers.WithNamespace(name))
	f.pods = factory.Core().V1().Pods().Informer()
	f.events = factory.Events().V1().Events().Informer()
	accounts := factory.Core().V1().ServiceAccounts().Informer()
	for _, informer := range []cache.SharedIndexInformer{f.pods, f.events, accounts} {
		if _, err := informer.AddEventHandler(f.observer()); err != nil {
			t.Fatal(err)
		}
	}
	watching, stop := context.WithCancel(context.Background())
	t.Cleanup(func() { stop(); factory.Shutdown() })
	factory.StartWithContext(watching)
	f.await("the namespace's service account", func() string {
		return missing(len(accounts.GetStore().List()), 1)
	})
	t.Cleanup(f.clear)
	return f
}

// signal lets await look again.
func (f *field) signal() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// observer notes deleted pods and tells await of every change.
func (f *field) observer() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { f.signal() },
		UpdateFunc: func(any, any) { f.signal() },
		DeleteFunc: func(obj any) {
			if pod, ok := obj.(*corev1.Pod); ok {
				f.mu.Lock()
				f.gone[pod.Name] = pod
				f.mu.Unlock()
			}
			f.signal()
		},
	}
}

// clear takes the field's nodes and pods away, so that the next test finds the
// cluster empty.
func (f *field) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*timeout)
	defer cancel()
	orphan, now := metav1.DeletePropagationOrphan, int64(0)
	all, own := metav1.ListOptions{}, metav1.ListOptions{LabelSelector: fieldLabel + "=" + f.name}
	for _, remove := range []func() error{
		func() error {
			return f.client.AppsV1().Deployments(f.name).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &orphan}, all)
		},
		func() error {
			return f.client.AppsV1().ReplicaSets(f.name).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &orphan}, all)
		},
		func() error {
			return f.client.BatchV1().Jobs(f.name).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &orphan}, all)
		},
		func() error {
			return f.client.CoreV1().Pods(f.name).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, all)
		},
		func() error { return f.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, own) },
		func() error { return f.client.CoreV1().Namespaces().Delete(ctx, f.name, metav1.DeleteOptions{}) },
	} {
		err := remove()
		for apierrors.IsTimeout(err) && ctx.Err() == nil { // of thousands of pods; the next call has fewer left
			err = remove()
		}
		if err != nil {
			f.Error(err)
		}
	}
}

// await waits until done returns "": nothing is missing. It looks again when a
// watch shows something new, and now and then.
func (f *field) await(what string, done func() string) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), timeout)
	defer cancel()
	again := time.NewTicker(glance)
	defer again.Stop()
	for {
		lacking := done()
		if lacking == "" {
			return
		}
		select {
		case <-f.changed:
		case <-again.C:
		case err := <-f.cluster.Failed():
			f.Fatalf("waiting for %s: %v", what, err)
		case <-ctx.Done():
			f.Fatalf("waiting for %s: %s", what, lacking)
		}
	}
}

// missing says that n things are not yet as many as wanted.
func missing(n, want int) string {
	if n == want {
		return ""
	}
	return fmt.Sprintf("%d of %d", n, want)
}

// nodeName is the name of node i of the field.
func (f *field) nodeName(i int) string { return fmt.Sprintf("%s-%d", f.name, i) }

// node is one of the field's nodes, ready-made except for its creation.
func (f *field) node(i int, cpu string, pods int) *corev1.Node {
	name := f.nodeName(i)
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods:   *resource.NewQuantity(int64(pods), resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{fieldLabel: f.name, corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
}

// addNodes creates nodes and waits until they are ready.
func (f *field) addNodes(nodes ...*corev1.Node) {
	f.Helper()
	if err := f.cluster.CreateNodes(f.Context(), nodes); err != nil {
		f.Fatal(err)
	}
}

// sameNodes creates nodes 0 to n-1, all alike.
func (f *field) sameNodes(n int, cpu string, pods int) {
	f.Helper()
	nodes := make([]*corev1.Node, n)
	for i := range nodes {
		nodes[i] = f.node(i, cpu, pods)
	}
	f.addNodes(nodes...)
}

// spec is what all pods of the field have in common.
func (f *field) spec(cpu string) corev1.PodSpec {
	return corev1.PodSpec{
		NodeSelector: map[string]string{fieldLabel: f.name},
		Containers: []corev1.Container{{
			Name: "main", Image: "registry.k8s.io/pause:3.10", // never pulled
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}},
	}
}

func (f *field) pod(name, cpu string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod": name}}, Spec: f.spec(cpu)}
}

// podsOf makes n pods PREFIX-0, PREFIX-1, ...
func (f *field) podsOf(prefix string, n int, cpu string) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = f.pod(fmt.Sprintf("%s-%d", prefix, i), cpu)
	}
	return pods
}

// create creates pods, several at a time, in about the order given.
func (f *field) create(pods ...*corev1.Pod) {
	f.Helper()
	if err := f.tryCreate(pods...); err != nil {
		f.Fatal(err)
	}
}

func (f *field) tryCreate(pods ...*corev1.Pod) error {
	errs := make([]error, len(pods))
	var group sync.WaitGroup
	slots := make(chan struct{}, writers)
	for i, pod := range pods {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			_, errs[i] = f.client.CoreV1().Pods(f.name).Create(f.Context(), pod, metav1.CreateOptions{})
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// seen is what the watch shows of the pods that match a selector ("": all).
func (f *field) seen(selector string) []*corev1.Pod {
	parsed, err := labels.Parse(selector)
	if err != nil {
		f.Fatal(err)
	}
	var pods []*corev1.Pod
	for _, obj := range f.pods.GetStore().List() {
		if pod := obj.(*corev1.Pod); parsed.Matches(labels.Set(pod.Labels)) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// get is the pod as the watch shows it, or has shown it last before it went;
// nil when it has not yet shown it.
func (f *field) get(name string) *corev1.Pod {
	if obj, ok, err := f.pods.GetStore().GetByKey(f.name + "/" + name); err == nil && ok {
		return obj.(*corev1.Pod)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gone[name]
}

// bound counts pods that have a node.
func bound(pods []*corev1.Pod) int {
	n := 0
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// rejected counts pods that the scheduler says it cannot place.
func rejected(pods []*corev1.Pod) int {
	n := 0
	for _, pod := range pods {
		if c := condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			n++
		}
	}
	return n
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// awaitBound waits until exactly n pods of the field have a node.
func (f *field) awaitBound(n int) {
	f.Helper()
	f.await("pods to be bound", func() string { return missing(bound(f.seen("")), n) })
}

// eventsOn is what was said of pods, by pod name, of one reason.
func (f *field) eventsOn(reason string) map[string][]*eventsv1.Event {
	said := map[string][]*eventsv1.Event{}
	for _, obj := range f.events.GetStore().List() {
		if e := obj.(*eventsv1.Event); e.Reason == reason {
			said[e.Regarding.Name] = append(said[e.Regarding.Name], e)
		}
	}
	return said
}

// awaitScheduledOnce waits until each bound pod has the condition and the event
// of it, and checks that no pod has two events.
func (f *field) awaitScheduledOnce() {
	f.Helper()
	f.await("condition and event of each bound pod", func() string {
		said := f.eventsOn("Scheduled")
		for _, pod := range f.seen("") {
			if pod.Spec.NodeName == "" {
				continue
			}
			if c := condition(pod, corev1.PodScheduled); c == nil || c.Status != corev1.ConditionTrue {
				return fmt.Sprintf("pod %s is bound and its condition is %v", pod.Name, c)
			}
			if len(said[pod.Name]) == 0 {
				return "no event of pod " + pod.Name
			}
		}
		return ""
	})
	for name, events := range f.eventsOn("Scheduled") {
		if len(events) != 1 {
			f.Errorf("pod %s: %d Scheduled events, want one", name, len(events))
			continue
		}
		pod := f.get(name)
		if want := fmt.Sprintf("Successfully assigned %s/%s to %s", f.name, name, pod.Spec.NodeName); events[0].Note != want {
			f.Errorf("pod %s: the event says %q, want %q", name, events[0].Note, want)
		}
	}
}

// checkRoom reads the whole cluster back and fails for each over-committed node.
func (f *field) checkRoom() {
	f.Helper()
	over, err := f.cluster.Overcommitted(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	for _, node := range over {
		f.Error("over-committed: ", node)
	}
}

// berth starts a berth-scheduler. When the test ends it must still be there,
// unless the test itself has ended it, stop as it should, and have nothing to
// regret in its log.
func (f *field) berth(options cluster.SchedulerOptions) *cluster.Scheduler {
	f.Helper()
	options.Kind, options.Binary = cluster.Berth, cmp.Or(options.Binary, filepath.Join(programs(f.T), cluster.Berth))
	options.Flags = append([]string{"-v=2"}, options.Flags...)
	scheduler, err := f.cluster.StartScheduler(f.Context(), options)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if running(scheduler) {
			f.terminate(scheduler)
		} else if status := scheduler.ExitStatus(); status > 0 {
			f.Errorf("%s died with exit status %d", scheduler.Name, status)
		}
		f.checkLog(scheduler)
		if f.Failed() {
			f.Logf("the end of %s's log:\n%s", scheduler.Name, f.tail(scheduler, 40))
		}
	})
	return scheduler
}

func running(s *cluster.Scheduler) bool {
	select {
	case <-s.Done():
		return false
	default:
		return true
	}
}

// stopLimit is how long a scheduler may take to end when it is asked to.
const stopLimit = 5 * time.Second

// terminate asks a scheduler to end, which it must do in time and without error.
func (f *field) terminate(s *cluster.Scheduler) {
	began := time.Now()
	err := s.Stop()
	if took := time.Since(began); err != nil || took > stopLimit {
		f.Errorf("%s took %s to stop: %v", s.Name, took, err)
	}
	if status := s.ExitStatus(); status != 0 {
		f.Errorf("%s stopped with exit status %d", s.Name, status)
	}
}

// alarms are signs in the log of what must not happen whatever the API server
// does. Elsewhere "forbidden" is one more: a right that Berth lacks.
const alarms = `(?i)panic|invariant|data race`

func (f *field) checkLog(s *cluster.Scheduler) {
	f.Helper()
	for line := range strings.Lines(f.log(s)) {
		if f.regrets.MatchString(line) {
			f.Errorf("%s says: %s", s.Name, line)
		}
	}
}

// log is what the scheduler has logged so far.
func (f *field) log(s *cluster.Scheduler) string {
	text, err := os.ReadFile(s.LogPath)
	if err != nil {
		f.Error(err)
	}
	return string(text)
}

func (f *field) tail(s *cluster.Scheduler, lines int) string {
	all := strings.SplitAfter(f.log(s), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}
