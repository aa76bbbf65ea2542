package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// phase is what is measured in mode cluster, from its begin to the last binding
// of its pods.
type phase struct {
	counts func(*CreatePods) bool // which pods are its
	groups []*group
	before cluster.Usage
	start  time.Time
}

// begin begins the measured phase. What is left to do for pods before is not
// for these.
func (s *stage) begin(ctx context.Context, counts func(*CreatePods) bool) error {
	before, err := s.rest(ctx)
	if err != nil {
		return err
	}
	if s.profile != "" {
		s.profiling.Go(func() { s.unprofiled = s.writeProfile(ctx) })
	}
	s.phase = &phase{counts: counts, before: before, start: time.Now()}
	return nil
}

// end ends it and writes down what came of it.
func (s *stage) end(ctx context.Context) error {
	p := s.phase
	if p == nil {
		return errors.New("nothing is measured that could end")
	}
	s.phase = nil
	after, err := s.scheduler.Usage()
	if err != nil {
		return err
	}
	rest, err := s.rest(ctx)
	if err != nil {
		return err
	}
	last, latencies := s.seen.latencies(p.groups)
	if len(latencies) == 0 {
		return errors.New("no pod was bound while it was measured")
	}
	n := float64(len(latencies))
	r := s.run
	for _, g := range p.groups {
		r.Pods += g.size
	}
	r.Scheduled = len(latencies)
	r.PodsPerSecond = round(n / last.Sub(p.start).Seconds())
	r.CPUMillisPerPod = round(float64(after.CPU-p.before.CPU) / float64(time.Millisecond) / n)
	r.CPUMillisToRest = round(float64(rest.CPU-p.before.CPU) / float64(time.Millisecond) / n)
	r.P50Millis = round(percentile(millis(latencies), 0.5))
	r.P99Millis = round(percentile(millis(latencies), 0.99))
	r.PeakRSSMiB = round(float64(rest.PeakRSS) / (1 << 20))
	return nil
}

// A scheduler is at rest when it took less than calmCPU in each calmTime of
// restTime; who works in the background of the steps never is.
const (
	calmTime  = time.Second
	calmCPU   = 50 * time.Millisecond
	restTime  = 2 * calmTime
	restLimit = 90 * time.Second
)

// rest waits until the scheduler has done what is left to do once all pods are
// bound, publishing events above all, and returns what it has taken by then.
func (s *stage) rest(ctx context.Context) (cluster.Usage, error) {
	before, err := s.scheduler.Usage()
	if err != nil || s.background.busy() {
		return before, err
	}
	for calm, waited := time.Duration(0), time.Duration(0); calm < restTime && waited < restLimit; waited += calmTime {
		select {
		case <-ctx.Done():
			return before, context.Cause(ctx)
		case <-time.After(calmTime):
		}
		now, err := s.scheduler.Usage()
		if err != nil {
			return before, err
		}
		if calm += calmTime; now.CPU-before.CPU > calmCPU {
			calm = 0
		}
		before = now
	}
	return before, nil
}

// writeProfile asks the scheduler for a CPU profile of the next few seconds.
func (s *stage) writeProfile(ctx context.Context) error {
	config := s.cluster.AdminConfig()
	config.TLSClientConfig.Insecure = true // nobody signed the scheduler's certificate
	config.TLSClientConfig.CAData, config.TLSClientConfig.CAFile = nil, ""
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	url := fmt.Sprintf("https://127.0.0.1:%d/debug/pprof/profile?seconds=%d", s.scheduler.Port, profileSeconds)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, response.Status, data)
	}
	return os.WriteFile(s.profile, data, 0o644)
}

// profileSeconds is how long a profile in mode cluster lasts.
const profileSeconds = 10
