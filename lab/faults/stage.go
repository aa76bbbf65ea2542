package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/lab/proxy"
)

const (
	// stepTimeout is how long one step may take; far below the five minutes after
	// which a scheduler looks at all pods again in any case.
	stepTimeout = 2 * time.Minute
	// glance is how often the API is asked whether a step is done.
	glance = 50 * time.Millisecond
)

// stage is where a story is played: a scheduler behind a proxy, two namespaces,
// and whatever the story creates. The first error ends the story: every later
// step does nothing.
type stage struct {
	ctx       context.Context
	cluster   *cluster.Cluster
	client    kubernetes.Interface
	proxy     *proxy.Proxy
	scheduler *cluster.Scheduler
	metrics   *http.Client
	home      string // the namespace of the story
	other     string // a second one
	markers   int
	twins     int
	err       error
}

// play plays a story with one scheduler and clears what it created.
func play(ctx context.Context, c *cluster.Cluster, f Fault, kind, binary string) (o Outcome, err error) {
	home := strings.ToLower(f.Name) + "-" + kind
	s := &stage{ctx: ctx, cluster: c, client: c.Client(), home: home, other: home + "-other"}
	defer func() { err = errors.Join(err, s.clear()) }()
	if err := s.start(kind, binary); err != nil {
		return o, err
	}
	s.namespace(s.home, nil)
	o = f.play(s)
	return o, s.err
}

// start starts the scheduler, behind a proxy that nothing disturbs yet.
func (s *stage) start(kind, binary string) error {
	upstream, err := clientcmd.BuildConfigFromFlags("", s.cluster.Kubeconfig(kind))
	if err != nil {
		return err
	}
	// Clients trust the proxy as they trust the server: it shows the same certificate.
	pki := filepath.Join(s.cluster.Dir(), "pki", cluster.APIServer)
	if s.proxy, err = proxy.Start(upstream, pki+".crt", pki+".key"); err != nil {
		return err
	}
	admin := s.cluster.AdminConfig()
	admin.TLSClientConfig.Insecure = true // nobody signed the scheduler's certificate
	admin.TLSClientConfig.CAData, admin.TLSClientConfig.CAFile = nil, ""
	if s.metrics, err = rest.HTTPClientFor(admin); err != nil {
		return err
	}
	s.scheduler, err = s.cluster.StartScheduler(s.ctx, cluster.SchedulerOptions{
		Kind: kind, Binary: binary, Flags: []string{"--master=" + s.proxy.URL}})
	return err
}

// clear ends the scheduler and takes away what the next story would see.
func (s *stage) clear() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), stepTimeout)
	defer cancel()
	var errs []error
	if s.scheduler != nil {
		errs = append(errs, s.scheduler.Stop())
	}
	if s.proxy != nil {
		errs = append(errs, s.proxy.Close())
	}
	now := int64(0)
	for _, namespace := range []string{s.home, s.other} {
		errs = append(errs, s.client.CoreV1().Pods(namespace).DeleteCollection(ctx,
			metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}))
	}
	errs = append(errs, s.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	return errors.Join(errs...)
}

// await waits until done reports it.
func (s *stage) await(what string, done func() bool) {
	if s.err != nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(s.ctx, stepTimeout, fmt.Errorf("it took longer than %s", stepTimeout))
	defer cancel()
	for {
		if done() || s.err != nil {
			return
		}
		select {
		case <-ctx.Done():
			s.err = fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
			return
		case err := <-s.cluster.Failed():
			s.err = fmt.Errorf("waiting for %s: %w", what, err)
			return
		case <-time.After(glance):
		}
	}
}

// note keeps the first error.
func (s *stage) note(err error) {
	if s.err == nil {
		s.err = err
	}
}

// pod is the pod as the API has it, nil when it has none of that name.
func (s *stage) pod(namespace, name string) *corev1.Pod {
	pod, err := s.client.CoreV1().Pods(namespace).Get(s.ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.note(err)
	return pod
}

// node is where the pod is bound to, "" when it is not.
func (s *stage) node(name string) string {
	if pod := s.pod(s.home, name); pod != nil {
		return pod.Spec.NodeName
	}
	return ""
}

// awaitBound waits until the pod is bound.
func (s *stage) awaitBound(namespace, name string) {
	s.await("pod "+namespace+"/"+name+" to be bound", func() bool {
		pod := s.pod(namespace, name)
		return pod != nil && pod.Spec.NodeName != ""
	})
}

// awaitGone waits until the pod is deleted.
func (s *stage) awaitGone(name string) {
	s.await("pod "+name+" to go", func() bool { return s.pod(s.home, name) == nil })
}

// awaitRejected waits until the scheduler says that it cannot place the pod.
func (s *stage) awaitRejected(name string) {
	s.await("pod "+name+" to be rejected", func() bool { return rejected(s.pod(s.home, name)) })
}

func rejected(pod *corev1.Pod) bool {
	if pod == nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

// mark creates a small pod and waits until it is bound: what the watch of pods
// showed before, the scheduler has seen.
func (s *stage) mark(options ...func(*corev1.Pod)) {
	s.markers++
	name := fmt.Sprintf("marker-%d", s.markers)
	s.create(newPod(s.home, name, options...))
	s.awaitBound(s.home, name)
}

// settle waits until no pod is about to be tried: the scheduler's metrics say
// that none is active or in backoff, and that all that are not bound wait for
// an event. It returns how many of these are gated.
func (s *stage) settle() (gated int) {
	s.await("no pod to be about to be tried", func() bool {
		pending := s.pending()
		gated = pending["gated"]
		return pending["active"]+pending["backoff"] == 0 && pending["unschedulable"]+gated == s.unbound()
	})
	return gated
}

// unbound is how many pods have no node.
func (s *stage) unbound() int {
	list, err := s.client.CoreV1().Pods(metav1.NamespaceAll).List(s.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
	if err != nil {
		s.note(err)
		return -1
	}
	return len(list.Items)
}

// pending is the metric scheduler_pending_pods, by queue.
func (s *stage) pending() map[string]int {
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", s.scheduler.Port), nil)
	if err != nil {
		s.note(err)
		return nil
	}
	reply, err := s.metrics.Do(request)
	if err != nil {
		s.note(err)
		return nil
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		s.note(fmt.Errorf("%s: %s", request.URL, reply.Status))
		return nil
	}
	pending := map[string]int{}
	lines := bufio.NewScanner(reply.Body)
	for lines.Scan() {
		series, value, _ := strings.Cut(lines.Text(), " ")
		queue, ok := strings.CutPrefix(series, `scheduler_pending_pods{queue="`)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		s.note(err)
		pending[strings.TrimSuffix(queue, `"}`)] = int(n)
	}
	s.note(lines.Err())
	return pending
}
