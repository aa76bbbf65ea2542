package bench

import (
	"slices"
	"time"

	"github.com/berth-scheduler/berth/edge/why"
)

// Result is the machine-readable outcome, as the contract fixes it.
type Result struct {
	APIVersion  string  `json:"apiVersion"`
	Kind        string  `json:"kind"`
	Workload    string  `json:"workload"`
	Mode        string  `json:"mode"`
	BindCeiling float64 `json:"bindCeilingPodsPerSecond,omitempty"`
	// CreateBindCeiling is that of a phase in which the pods are created too, as
	// they are in the measured one.
	CreateBindCeiling float64 `json:"-"`
	// Threshold as in Workload. Kubernetes measures it on other machines, with all pods.
	Threshold float64 `json:"-"`
	// Gates are the feature gates of kube-scheduler that differ from its defaults.
	Gates string `json:"kubeSchedulerGates,omitempty"`
	Runs  []Run  `json:"runs"`
	Ratio Ratio  `json:"ratio"`
}

// Run is one scheduler's turn.
type Run struct {
	Scheduler       string  `json:"scheduler"`
	Nodes           int     `json:"nodes"`
	Pods            int     `json:"pods"`
	Scheduled       int     `json:"scheduled"`
	PodsPerSecond   float64 `json:"podsPerSecond"`
	CPUMillisPerPod float64 `json:"cpuMillisPerPod"`
	// CPUMillisToRest is what was taken until the scheduler came to rest, a pod:
	// with the events of pods that are bound, which the phase does not wait for.
	CPUMillisToRest float64 `json:"-"`
	P50Millis       float64 `json:"p50Millis"`
	P99Millis       float64 `json:"p99Millis"`
	PeakRSSMiB      float64 `json:"peakRSSMiB"`
}

// Ratio is the median of Berth over the median of kube-scheduler; 0 where
// there is nothing to compare.
type Ratio struct {
	PodsPerSecond   float64 `json:"podsPerSecond"`
	CPUMillisPerPod float64 `json:"cpuMillisPerPod"`
	P99Millis       float64 `json:"p99Millis"`
	PeakRSSMiB      float64 `json:"peakRSSMiB"`
	// CPUMillisToRest as in Run.
	CPUMillisToRest float64 `json:"-"`
}

func newResult(workload, mode string) *Result {
	return &Result{APIVersion: why.APIVersion, Kind: "BenchResult", Workload: workload, Mode: mode}
}

func (r *Result) finish() {
	ratio := func(of func(Run) float64) float64 {
		ours, theirs := r.median(Berth, of), r.median(KubeScheduler, of)
		if theirs == 0 {
			return 0
		}
		return round(ours / theirs)
	}
	r.Ratio = Ratio{
		PodsPerSecond:   ratio(func(r Run) float64 { return r.PodsPerSecond }),
		CPUMillisPerPod: ratio(func(r Run) float64 { return r.CPUMillisPerPod }),
		P99Millis:       ratio(func(r Run) float64 { return r.P99Millis }),
		PeakRSSMiB:      ratio(func(r Run) float64 { return r.PeakRSSMiB }),
		CPUMillisToRest: ratio(func(r Run) float64 { return r.CPUMillisToRest }),
	}
}

func (r *Result) median(scheduler string, of func(Run) float64) float64 {
	var values []float64
	for _, run := range r.Runs {
		if run.Scheduler == scheduler {
			values = append(values, of(run))
		}
	}
	return percentile(values, 0.5)
}

// percentile is the value below which the fraction q of the values lies.
func percentile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func millis(durations []time.Duration) []float64 {
	out := make([]float64, len(durations))
	for i, d := range durations {
		out[i] = float64(d) / float64(time.Millisecond)
	}
	return out
}

// round keeps four significant decimals, which is more than a run is worth.
func round(x float64) float64 { return float64(int64(x*10000+0.5)) / 10000 }
