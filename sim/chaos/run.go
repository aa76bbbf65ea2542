package chaos

import (
	"fmt"
	"io"
	"maps"
	"math/rand"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/sim/scenario"
)

// Options of a run.
type Options struct {
	// Log, when set, is told what happens.
	Log       io.Writer
	Verbosity int // of the schedulers' own logs
	// RecordTo, when set, is a directory in which each life of a replica is recorded.
	RecordTo string
}

// Result is what came of a run.
type Result struct {
	// Breaches are what must not be, in the order in which they were seen.
	Breaches []string
	// Digest is a hash of the API server's history: equal runs have equal ones.
	Digest uint64
	// Bindings and Requests count.
	Bindings, Requests int
	// Faults counts what happened, by the fault's name.
	Faults map[string]int
	// Virtual is how long the run took on its own clock.
	Virtual time.Duration
}

// Prepare has the process run stories alike: on one processor, with client-go's
// jitter drawn from a seed, and with all invariants checked.
func Prepare() {
	runtime.GOMAXPROCS(1)
	klog.SetLogger(logr.Discard())
	_ = os.Setenv("GODEBUG", strings.TrimPrefix(os.Getenv("GODEBUG")+",randseednop=0", ","))
	_ = os.Setenv("BERTH_CHECK", "1")
}

// Run plays a story in a bubble of virtual time. The test only lends its name to
// the bubble: nothing is reported to it.
func Run(t *testing.T, s *scenario.Story, o Options) (*Result, error) {
	seed, err := seedOf(s)
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 client-go draws its jitter from this source
	rand.Seed(int64(seed))
	var r *Result
	func() {
		defer func() {
			if why := recover(); why != nil && err == nil { // goroutines that never end, say
				r = &Result{Breaches: []string{fmt.Sprint(why)}}
			}
		}()
		synctest.Test(t, func(*testing.T) { r, err = run(s, o, seed) })
	}()
	return r, err
}

func seedOf(s *scenario.Story) (uint64, error) {
	for i := range s.Steps {
		if w := s.Steps[i].Words; w[0] == "seed" && len(w) == 2 {
			return strconv.ParseUint(w[1], 10, 64)
		}
	}
	return 0, nil
}

func run(s *scenario.Story, o Options, seed uint64) (*Result, error) {
	p := newPlay(o, seed)
	defer p.close()
	for i := range s.Steps {
		step := &s.Steps[i]
		if err := p.do(step); err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", s.File, step.Line, strings.Join(step.Words, " "), err)
		}
	}
	if err := p.heal(); err != nil {
		p.check.breach("%v", err)
	} else if len(p.replicas) > 0 {
		p.rest()
	}
	p.check.mu.Lock()
	defer p.check.mu.Unlock()
	p.faults.mu.Lock()
	defer p.faults.mu.Unlock()
	return &Result{Breaches: p.check.breaches, Digest: p.check.digest.Sum64(), Bindings: p.check.bindings, Requests: p.check.requests,
		Faults: maps.Clone(p.faults.hit), Virtual: time.Since(p.begin)}, nil
}
