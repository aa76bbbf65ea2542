package attack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// longestStep is the daemon's own figure of how long its loop did nothing else.
const longestStep = "berth_loop_longest_step_seconds"

// usually is how many small pods are timed before an attack.
const usually = 5

// observer looks at the daemon while an attack is played.
type observer struct {
	s       *stage
	cancel  context.CancelFunc
	wait    sync.WaitGroup
	longest float64 // step before the attack, in seconds

	once       sync.Once
	mu         sync.Mutex
	base, peak int64 // memory, in bytes
}

// startWatch takes the daemon's figures and looks at it from now on. Small pods are placed
// meanwhile unless the cluster is to be quiet.
func (s *stage) startWatch(quiet bool) {
	o := &observer{s: s, longest: s.metric(longestStep)}
	var usual []time.Duration
	for range usually {
		if took, err := s.probe(s.ctx); s.note(err) {
			usual = append(usual, took)
		}
	}
	slices.Sort(usual)
	if len(usual) > 0 {
		s.result.UsualMS = milliseconds(usual[len(usual)/2])
	}
	u, err := s.daemon.Usage()
	s.note(err)
	o.base, o.peak = u.RSS, u.RSS
	ctx, cancel := context.WithCancel(s.ctx)
	o.cancel = cancel
	o.wait.Go(func() { every(ctx, 20*time.Millisecond, o.memory) })
	o.wait.Go(func() { every(ctx, 250*time.Millisecond, func() { o.alive(ctx) }) })
	if !quiet {
		o.wait.Go(func() { every(ctx, 100*time.Millisecond, func() { o.pace(ctx) }) })
	}
	s.observer = o
}

// end checks that the daemon is as it was, and takes its figures. A second call does
// nothing.
func (o *observer) end() { o.once.Do(o.judge) }

func (o *observer) judge() {
	o.cancel()
	o.wait.Wait()
	s := o.s
	gone := s.daemonGone()
	if !gone {
		o.alive(s.ctx)
		o.pace(s.ctx)
		o.memory()
	}
	s.result.BaseMiB, s.result.PeakMiB = mebibytes(o.base), mebibytes(o.peak)
	if gone {
		if death := s.daemon.Death(); death != nil {
			s.broke("%v", death)
		}
		return
	}
	if grown := o.peak - o.base; grown > mostMemory {
		s.broke("the daemon took %.0f MiB more than before", mebibytes(grown))
	}
	log, err := os.ReadFile(s.daemon.LogPath)
	s.note(err)
	s.checkBytes("the daemon's log", string(log))
	longest := s.metric(longestStep)
	s.result.HeldMS = longest * 1000
	if longest > o.longest && longest > mostHeld.Seconds() {
		s.broke("a step of the scheduling loop took %.0f ms", longest*1000)
		s.held = true
	}
}

// memory takes the daemon's memory and kills the daemon before it takes the machine's.
func (o *observer) memory() {
	u, err := o.s.daemon.Usage()
	if err != nil {
		return // it is gone, which is said at the end
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.peak = max(o.peak, u.RSS)
	if u.RSS > killAt {
		o.s.broke("the daemon took %.0f MiB and was killed", mebibytes(u.RSS))
		o.s.daemon.Kill()
	}
}

// alive asks /livez as a kubelet does.
func (o *observer) alive(ctx context.Context) {
	began := time.Now()
	status, body, err := o.s.ask(ctx, person{}, "/livez", mostLive)
	switch {
	case ctx.Err() != nil || o.s.daemonGone():
	case err != nil && !o.s.await(time.Second, o.s.daemonGone):
		o.s.broke("/livez: %v after %s", err, time.Since(began).Round(time.Millisecond))
	case err == nil && status != http.StatusOK:
		o.s.broke("/livez: status %d: %s", status, short(body))
	}
}

// pace times a small pod.
func (o *observer) pace(ctx context.Context) {
	took, err := o.s.probe(ctx)
	if ctx.Err() != nil || o.s.daemonGone() {
		return
	}
	if err != nil {
		o.s.broke("a small pod: %v", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.s.result.ProbeMS = max(o.s.result.ProbeMS, milliseconds(took))
}

// probe returns how long a small pod takes from its creation to its binding.
func (s *stage) probe(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, mostProbe, fmt.Errorf("not bound within %s", mostProbe))
	defer cancel()
	s.mu.Lock()
	s.lab.pods++
	name := fmt.Sprintf("probe-%d", s.lab.pods)
	s.mu.Unlock()
	pods := s.lab.client.CoreV1().Pods(probes)
	began := time.Now()
	if _, err := pods.Create(ctx, newPod(probes, name, "1m"), metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	now := int64(0)
	defer func() {
		_ = pods.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{GracePeriodSeconds: &now}) // else clear does it
	}()
	for {
		bound, err := s.watchBound(ctx, name)
		if bound || err != nil {
			return time.Since(began), err
		}
	}
}

// watchBound watches a small pod until it is bound, or until the watch ends. The error is
// why the context has ended.
func (s *stage) watchBound(ctx context.Context, name string) (bound bool, err error) {
	w, err := s.lab.client.CoreV1().Pods(probes).Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
	if err != nil {
		return false, err
	}
	defer w.Stop()
	for {
		select {
		case e, open := <-w.ResultChan():
			if p, is := e.Object.(*corev1.Pod); is && p.Spec.NodeName != "" {
				return true, nil
			}
			if !open {
				return false, context.Cause(ctx)
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// metric returns the sum of a metric's series that have all the labels, such as
// result="error".
func (s *stage) metric(name string, labels ...string) (sum float64) {
	status, body, err := s.ask(s.ctx, s.lab.admin(), "/metrics", mostLive)
	if err != nil || status != http.StatusOK {
		if !s.await(time.Second, s.daemonGone) { // that it has ended is said at the end
			s.note(errors.Join(fmt.Errorf("/metrics: status %d", status), err))
		}
		return 0
	}
	found := false
	lines := bufio.NewScanner(strings.NewReader(body))
	for lines.Scan() {
		series, value, _ := strings.Cut(lines.Text(), " ")
		of, _, _ := strings.Cut(series, "{")
		if of != name || slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(series, l) }) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		s.note(err)
		sum += n
		found = true
	}
	if !found && name == longestStep {
		s.note(fmt.Errorf("the daemon has no metric %s", name))
	}
	return sum
}

// every calls f again and again until the context ends.
func every(ctx context.Context, pause time.Duration, f func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f()
		}
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }
