package attack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/lab/cluster"
)

const (
	// glance is how often a condition is looked at.
	glance = 50 * time.Millisecond
	// writers is how many requests an attack makes at a time to the API server.
	writers = 16
	// ownLabel is on all objects outside of namespaces that an attack makes.
	ownLabel = "berth-attack"
)

// stage is where an attack is played. Its methods may be called from any goroutine.
type stage struct {
	ctx    context.Context
	lab    *lab
	dir    string // of the attack's files
	daemon *cluster.Scheduler
	// secrets must be in no answer to somebody without rights.
	secrets []string

	observer *observer // nil without a daemon

	trusting bool // calls of the tool may take any memory: its server is trusted (docs/security.md)

	mu     sync.Mutex
	result Result
	held   bool  // a step of the loop took too long
	err    error // the first that kept the attack from being played
	ends   []func()
}

// run plays an attack from the daemon's start to the last check.
func (s *stage) run(a Attack) error {
	defer func() { s.note(s.clear()) }()
	if a.start == nil {
		s.play(a)
		return s.failure()
	}
	options := a.start(s)
	if s.skipped() || s.failure() != nil {
		return s.failure()
	}
	options.Kind, options.Binary = cluster.Berth, s.lab.daemon
	options.Environment = append(options.Environment, fmt.Sprintf("GOMEMLIMIT=%d", killAt*2/3))
	var err error
	if s.daemon, err = s.lab.StartScheduler(s.ctx, options); err != nil {
		return err
	}
	s.need("the daemon to know its owner", func() bool { // it reads the authorities after its start
		status, _, err := s.ask(s.ctx, s.lab.admin(), "/metrics", mostLive)
		return err == nil && status == http.StatusOK
	})
	if a.prepare != nil && s.failure() == nil {
		a.prepare(s)
	}
	s.startWatch(a.Quiet)
	s.play(a)
	s.observer.end()
	s.checkRights()
	s.result.heldAlone = s.held && len(s.result.Broken) == 1
	return s.failure()
}

// play plays the attack itself for as long as it may take.
func (s *stage) play(a Attack) {
	if s.failure() != nil {
		return
	}
	whole := s.ctx
	playing, cancel := context.WithTimeout(whole, playTime)
	defer cancel()
	s.ctx = playing
	a.play(s)
	s.ctx = whole
	if playing.Err() != nil && whole.Err() == nil {
		s.broke("the attack did not end within %s: %v", playTime, s.failure())
		s.err = nil
	}
}

// halt ends the watch of the daemon, and then the daemon.
func (s *stage) halt() {
	s.observer.end()
	if err := s.daemon.Stop(); err != nil {
		s.broke("the daemon does not end: %v", err)
	}
}

// clear ends what the attack started and removes what the next one would see.
func (s *stage) clear() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), time.Minute)
	defer cancel()
	for i := len(s.ends) - 1; i >= 0; i-- {
		s.ends[i]()
	}
	if s.daemon != nil && !s.daemonGone() {
		s.daemon.Kill()
	}
	now := int64(0)
	remove, own := metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{LabelSelector: ownLabel}
	core := s.lab.client.CoreV1()
	errs := []error{
		core.Nodes().DeleteCollection(ctx, remove, own),
		core.PersistentVolumes().DeleteCollection(ctx, remove, own),
		s.lab.client.StorageV1().StorageClasses().DeleteCollection(ctx, remove, own),
		core.PersistentVolumeClaims(target).DeleteCollection(ctx, remove, metav1.ListOptions{}),
	}
	for _, namespace := range []string{target, probes, vault} {
		err := core.Pods(namespace).DeleteCollection(ctx, remove, metav1.ListOptions{})
		for apierrors.IsTimeout(err) && ctx.Err() == nil { // of thousands of pods; the next call has fewer left
			err = core.Pods(namespace).DeleteCollection(ctx, remove, metav1.ListOptions{})
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// finally adds what is done when the attack is over.
func (s *stage) finally(end func()) { s.ends = append(s.ends, end) }

func (s *stage) daemonGone() bool {
	select {
	case <-s.daemon.Done():
		return true
	default:
		return false
	}
}

// broke records that a bound did not hold.
func (s *stage) broke(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const most = 10 // the rest says no more
	if len(s.result.Broken) < most {
		s.result.Broken = append(s.result.Broken, harmless(fmt.Sprintf(format, args...)))
	}
}

// note records the first error that keeps the attack from being played, and reports
// whether there is none so far.
func (s *stage) note(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	return s.err == nil
}

func (s *stage) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// skip says why the attack cannot be played here.
func (s *stage) skip(format string, args ...any) { s.result.NotPlayed = fmt.Sprintf(format, args...) }

func (s *stage) skipped() bool { return s.result.NotPlayed != "" }

// await waits until done reports true, and reports whether it did so in time.
func (s *stage) await(most time.Duration, done func() bool) bool {
	ctx, cancel := context.WithTimeout(s.ctx, most)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(glance):
		}
	}
	return true
}

// need waits for half of the attack's time until done, and fails the attack otherwise. It
// returns at once if the attack has failed.
func (s *stage) need(what string, done func() bool) bool {
	if s.failure() != nil {
		return false
	}
	if !s.await(playTime/2, func() bool { return done() || s.failure() != nil }) {
		s.note(fmt.Errorf("waited in vain for %s", what))
	}
	return s.failure() == nil
}

// rest lets the attack go on for a time.
func (s *stage) rest(d time.Duration) {
	select {
	case <-s.ctx.Done():
	case <-time.After(d):
	}
}

// file writes a file of the attack and returns its path.
func (s *stage) file(name, text string) string {
	path := filepath.Join(s.dir, name)
	s.note(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// many calls f for each number below n, several at a time.
func (s *stage) many(n int, f func(i int) error) {
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for i := w; i < n && s.ctx.Err() == nil && s.note(f(i)); i += writers {
			}
		})
	}
	wait.Wait()
}

// newPod returns a pod that requests cpu and ends at once when it is deleted.
func newPod(namespace, name, cpu string) *corev1.Pod {
	grace := int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10", // never pulled
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}},
		},
	}
}

// create creates n pods in the target namespace.
func (s *stage) create(n int, pod func(i int) *corev1.Pod) {
	s.many(n, func(i int) error {
		p := pod(i)
		_, err := s.lab.client.CoreV1().Pods(p.Namespace).Create(s.ctx, p, metav1.CreateOptions{})
		return err
	})
}

// waiting counts the target's pods that the scheduler says it cannot place.
func (s *stage) waiting() int {
	list, err := s.lab.client.CoreV1().Pods(target).List(s.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
	if !s.note(err) {
		return 0
	}
	n := 0
	for i := range list.Items {
		if conditionOf(&list.Items[i]) != "" {
			n++
		}
	}
	return n
}

// conditionOf returns what the pod's condition says of why it waits, "" if nothing.
func conditionOf(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// short returns a text that is not too long for a line.
func short(text string) string {
	if len(text) > 200 {
		text = text[:200] + "..."
	}
	return text
}

// harmless returns a text in one line that a terminal obeys in nothing.
func harmless(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	return strings.Map(func(r rune) rune {
		if control(string(r)) >= 0 {
			return '?'
		}
		return r
	}, text)
}
