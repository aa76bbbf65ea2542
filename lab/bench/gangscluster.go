package bench

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/berth-scheduler/berth/deploy"
	"github.com/berth-scheduler/berth/lab/cluster"
)

// Peers is the scheduler of lab/cmd/peers: kube-scheduler v1.35 with Coscheduling and
// CapacityScheduling.
const Peers = "peers"

// coschedulingConfig is the configuration with which Berth and the peers place the groups of
// scheduling.x-k8s.io. Both read the same file.
const coschedulingConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
    multiPoint: {enabled: [{name: Coscheduling}, {name: CapacityScheduling}]}
    postFilter: {enabled: [{name: CapacityScheduling}, {name: Coscheduling}], disabled: [{name: "*"}]}
  pluginConfig:
  - name: Coscheduling
    args: {permitWaitingTimeSeconds: 10}
`

// Groups of the two APIs, and the quotas that the peers know.
var (
	coscheduled   = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	elasticQuotas = coscheduled.GroupVersion().WithResource("elasticquotas")
	nativeGroups  = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1beta1", Resource: "podgroups"}
)

// podGroupLabel names the group of a pod for Coscheduling.
const podGroupLabel = "scheduling.x-k8s.io/pod-group"

// lender is the namespace whose pods borrow what the gangs' queue is guaranteed.
const lender = "lender"

// gangField is a control plane on which one scheduler places gangs.
type gangField struct {
	*gangCase
	o       *GangOptions
	cluster *cluster.Cluster
	client  kubernetes.Interface
	dynamic dynamic.Interface
	scene   *gangScene
	seen    gangWatch
	came    map[string]time.Time // when singles that come at a rate were created, by name
}

// gangWatch is what a watch of all pods shows.
type gangWatch struct {
	mu      sync.Mutex
	bound   map[string]time.Time // by name; not the lender's
	evicted int                  // pods that went
	news    chan struct{}        // has a token when something was seen
}

// measureOnCluster lets a scheduler place the case's gangs on a real API server. All objects are
// there before the scheduler starts, so that each run has the same queue.
func (c *gangCase) measureOnCluster(ctx context.Context, o *GangOptions, scheduler string) (*GangRun, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &gangField{gangCase: c, o: o, scene: c.scene(), seen: gangWatch{bound: map[string]time.Time{}, news: make(chan struct{}, 1)}}
	if err := f.start(ctx); err != nil {
		return nil, err
	}
	defer f.cluster.Close()
	if err := f.create(ctx); err != nil {
		return nil, err
	}
	options := cluster.SchedulerOptions{Kind: cluster.Berth, Binary: o.Binary, Kubeconfig: f.cluster.Kubeconfig(cluster.Admin)}
	switch scheduler {
	case KubeScheduler:
		options.Kind = cluster.KubeScheduler
	case Peers:
		options.Binary = o.Peers
	}
	if o.Peers != "" {
		options.Config = []byte(coschedulingConfig)
	} else {
		options.Flags = []string{"--feature-gates=" + gangGates + "=true"}
	}
	began := time.Now()
	s, err := f.cluster.StartScheduler(ctx, options)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	if err := f.createSingles(ctx); err != nil {
		return nil, err
	}
	if err := f.settle(ctx, s); err != nil {
		return nil, err
	}
	usage, err := s.Usage()
	if err != nil {
		return nil, err
	}
	r := f.result(began)
	r.Scheduler, r.CPUMillis, r.PeakRSSMiB = scheduler, float64(usage.CPU.Milliseconds()), round(float64(usage.PeakRSS)/(1<<20))
	return r, nil
}

// start starts the control plane and watches pods.
func (f *gangField) start(ctx context.Context) (err error) {
	f.cluster, err = cluster.Start(ctx, cluster.Options{WithoutKWOK: true, WithoutControllers: true, APIServerFlags: []string{
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,Priority",
		"--feature-gates=" + gangGates + "=true", "--runtime-config=" + nativeGroups.GroupVersion().String() + "=true",
	}})
	if err != nil {
		return err
	}
	config := f.cluster.AdminConfig()
	config.QPS, config.Burst = -1, -1
	if f.dynamic, err = dynamic.NewForConfig(config); err == nil {
		config.ContentType = runtime.ContentTypeProtobuf
		f.client, err = kubernetes.NewForConfig(config)
	}
	if err == nil {
		err = f.watch(ctx)
	}
	if err != nil {
		f.cluster.Close()
	}
	return err
}

func (f *gangField) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(f.client, 0)
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, now any) { f.see(now, false) },
		DeleteFunc: func(last any) { f.see(last, true) },
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("watching pods: %w", context.Cause(ctx))
	}
	return nil
}

func (f *gangField) see(object any, gone bool) {
	p, ok := object.(*v1.Pod)
	if !ok {
		return // a pod whose end the watch missed
	}
	w := &f.seen
	w.mu.Lock()
	defer w.mu.Unlock()
	switch _, known := w.bound[p.Name]; {
	case gone:
		w.evicted++
	case p.Namespace == lender || p.Spec.NodeName == "" || known:
		return
	default:
		w.bound[p.Name] = time.Now()
	}
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// create makes the case's objects: groups and quotas before their pods.
func (f *gangField) create(ctx context.Context) error {
	if f.o.Peers != "" {
		if err := f.cluster.Apply(ctx, deploy.PodGroups, deploy.ElasticQuotas); err != nil {
			return err
		}
	}
	s := f.scene
	err := concurrently(ctx, creators, len(s.nodes), func(i int) error {
		_, err := f.client.CoreV1().Nodes().Create(ctx, s.nodes[i], metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("creating nodes: %w", err)
	}
	if f.Lent {
		if err := f.createQuotas(ctx); err != nil {
			return err
		}
	}
	for _, g := range s.groups { // one after the other: their times of creation order the queue
		minimum := int64(g.Spec.SchedulingPolicy.Gang.MinCount)
		resource, spec := nativeGroups, map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": minimum}}}
		if f.o.Peers != "" {
			resource, spec = coscheduled, map[string]any{"minMember": minimum}
		}
		if err := f.createObject(ctx, resource, "PodGroup", "default", g.Name, spec); err != nil {
			return err
		}
	}
	pods := slices.Concat(slices.Concat(s.pods...), s.lent)
	if f.Rate == 0 {
		pods = append(pods, s.singles...)
	}
	err = concurrently(ctx, creators, len(pods), func(i int) error {
		p := pods[i].DeepCopy()
		if p.UID = ""; f.o.Peers != "" && p.Spec.SchedulingGroup != nil {
			p.Labels = map[string]string{podGroupLabel: *p.Spec.SchedulingGroup.PodGroupName}
			p.Spec.SchedulingGroup = nil
		}
		_, err := f.client.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("creating pods: %w", err)
	}
	return nil
}

// createSingles makes the pods without a group that come at a rate: the first, and once it is
// bound, the others.
func (f *gangField) createSingles(ctx context.Context) error {
	if f.Rate == 0 {
		return nil
	}
	f.came = map[string]time.Time{}
	create := func(p *v1.Pod) error {
		p = p.DeepCopy()
		p.UID = ""
		_, err := f.client.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
		return err
	}
	singles := f.scene.singles
	f.came[singles[0].Name] = time.Now()
	if err := create(singles[0]); err != nil {
		return err
	}
	bound := func() bool {
		f.seen.mu.Lock()
		defer f.seen.mu.Unlock()
		return len(f.seen.bound) > 0
	}
	for end := time.After(f.Budget); !bound(); {
		select {
		case <-f.seen.news:
		case <-end:
			return fmt.Errorf("the first pod is not bound after %s", f.Budget)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	tick := time.NewTicker(time.Second / time.Duration(f.Rate))
	defer tick.Stop()
	var all sync.WaitGroup // a creation that takes long does not hold up the next
	failed := make(chan error, len(singles))
	for _, p := range singles[1:] {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		f.came[p.Name] = time.Now()
		all.Go(func() { failed <- create(p) })
	}
	all.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// createQuotas guarantees all CPUs to the gangs' namespace, and none to the lender.
func (f *gangField) createQuotas(ctx context.Context) error {
	n := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: lender}}
	if _, err := f.client.CoreV1().Namespaces().Create(ctx, n, metav1.CreateOptions{}); err != nil {
		return err
	}
	all := map[string]any{"cpu": fmt.Sprint(4 * f.Nodes)}
	none := map[string]any{"cpu": "0"}
	if err := f.createObject(ctx, elasticQuotas, "ElasticQuota", lender, lender, map[string]any{"min": none, "max": all}); err != nil {
		return err
	}
	return f.createObject(ctx, elasticQuotas, "ElasticQuota", "default", "gangs", map[string]any{"min": all, "max": all})
}

// createObject creates an object of a kind that the typed client does not know. A CRD may be
// served a moment after it is there.
func (f *gangField) createObject(ctx context.Context, resource schema.GroupVersionResource, kind, namespace, name string, spec map[string]any) error {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion(resource.GroupVersion().String())
	u.SetKind(kind)
	u.SetName(name)
	for {
		_, err := f.dynamic.Resource(resource).Namespace(namespace).Create(ctx, u, metav1.CreateOptions{})
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("creating %s %s/%s: %w", kind, namespace, name, err)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// settle waits until all pods are bound, or none was for a while.
func (f *gangField) settle(ctx context.Context, s *cluster.Scheduler) error {
	all := len(slices.Concat(f.scene.pods...)) + len(f.scene.singles)
	end := time.After(f.Budget)
	for {
		f.seen.mu.Lock()
		bound := len(f.seen.bound)
		f.seen.mu.Unlock()
		if bound == all {
			return nil
		}
		select {
		case <-f.seen.news:
		case <-time.After(f.o.Settle):
			return nil
		case <-end:
			return nil
		case <-s.Done():
			return errors.Join(errors.New("the scheduler ended"), s.Death())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// result counts what is bound, and when the last pod was, after the scheduler began.
func (f *gangField) result(began time.Time) *GangRun {
	r := &GangRun{Case: f.Name, Nodes: f.Nodes, Gangs: f.Gangs, Done: true}
	f.seen.mu.Lock()
	defer f.seen.mu.Unlock()
	r.Evicted = f.seen.evicted
	last, placed := began, []string{}
	for i, pods := range f.scene.pods {
		bound, from, to := 0, time.Time{}, time.Time{}
		for _, p := range pods {
			at, is := f.seen.bound[p.Name]
			if !is {
				continue
			}
			if bound++; from.IsZero() || at.Before(from) {
				from = at
			}
			if at.After(to) {
				to = at
			}
		}
		switch r.Pods += bound; {
		case bound == len(pods):
			r.Placed++
			placed = append(placed, f.scene.groups[i].Name)
			r.InPartMillis = max(r.InPartMillis, round(millis([]time.Duration{to.Sub(from)})[0]))
		case bound > 0:
			r.Partial++
		}
		if to.After(last) {
			last = to
		}
	}
	var waits []time.Duration
	for i, p := range f.scene.singles {
		if at, is := f.seen.bound[p.Name]; is {
			if r.Singles++; at.After(last) {
				last = at
			}
			if came, paced := f.came[p.Name]; paced && i > 0 { // the first waits for the scheduler's start
				waits = append(waits, at.Sub(came))
			}
		}
	}
	if len(waits) > 0 {
		r.SingleP99 = round(percentile(millis(waits), 0.99))
	}
	r.LastMillis = round(millis([]time.Duration{last.Sub(began)})[0])
	r.Set = fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(placed, " "))))[:8]
	return r
}
