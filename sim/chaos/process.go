package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	basemetrics "k8s.io/component-base/metrics"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/daemon"
	"github.com/berth-scheduler/berth/edge/loop"
	"github.com/berth-scheduler/berth/edge/recording"
)

// process is one life of a replica.
type process struct {
	replica string // a, b, c
	name    string // a1: a's first life; the identity of the lease and of requests
	daemon  *daemon.Daemon
	network *network
	stop    context.CancelFunc
	ended   chan struct{}
	play    *play
	// ending: it was told to stop, or has crashed.
	ending bool
	asleep atomic.Pointer[time.Time] // until when it is suspended; nil: it never was
}

// What needs no story is made once.
var (
	pluginGates   = sync.OnceValue(func() feature.Features { return features.Plugins(features.New()) })
	defaultConfig = sync.OnceValue(func() *config.Config {
		c, leads := config.Default(), true
		c.LeaderElection.LeaderElect = &leads
		return c
	})
)

// start starts a replica anew.
func (p *play) start(replica string) error {
	p.mu.Lock()
	p.lives[replica]++
	name := fmt.Sprint(replica, p.lives[replica])
	p.mu.Unlock()
	c := p.config
	profiles, err := profile.BuildAll(config.Profiles(c), plugins.Registry(p.gates))
	if err != nil {
		return err
	}
	proc := &process{replica: replica, name: name, ended: make(chan struct{}), play: p}
	proc.network = newNetwork(p, proc)
	registry := basemetrics.NewKubeRegistry()
	proc.daemon, err = daemon.New(daemon.Options{
		Logger: p.logger(name), Config: c, Profiles: profiles, Identity: name, Seed: mix(p.faults.seed, name),
		API: &rest.Config{Host: "http://api", Transport: proc.network, QPS: c.ClientConnection.QPS, Burst: int(c.ClientConnection.Burst),
			ContentConfig: rest.ContentConfig{ContentType: c.ClientConnection.ContentType, AcceptContentTypes: c.ClientConnection.AcceptContentTypes}},
		ExtendersVia: proc.network, PodGroups: p.nativeGroups, MaxUnschedulable: queue.DefaultMaxUnschedulable, Register: registry.MustRegister, Record: p.recordOf(name),
		Wrap:    func(m loop.Machine) loop.Machine { return &steps{m, proc} },
		Observe: func(s loop.Step) { p.check.observe(proc, s) },
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	proc.stop = stop
	p.mu.Lock()
	p.running[replica] = proc
	p.mu.Unlock()
	p.logf("%s: starts", name)
	go func() {
		defer close(proc.ended)
		err := proc.daemon.Run(ctx, nil)
		proc.network.kill() // the process has ended
		p.logf("%s: ended: %v", name, err)
		p.restart(proc)
	}()
	return nil
}

// recordOf says where the life of a replica is recorded; nil: nowhere.
func (p *play) recordOf(name string) *recording.Options {
	if p.options.RecordTo == "" {
		return nil
	}
	return &recording.Options{Dir: filepath.Join(p.options.RecordTo, name), Limit: 1 << 30}
}

// restart has a process that ended by itself follow another one, as a kubelet
// would.
func (p *play) restart(proc *process) {
	p.mu.Lock()
	again := !proc.ending && !p.closing
	p.mu.Unlock()
	if !again {
		return
	}
	time.Sleep(time.Second + latency(mix(p.faults.seed, proc.name)))
	p.mu.Lock()
	again = !p.closing && p.running[proc.replica] == proc // nobody else has started it
	p.mu.Unlock()
	if again {
		if err := p.start(proc.replica); err != nil {
			p.check.breach("start of replica %s: %v", proc.replica, err)
		}
	}
}

// crash ends the process at once. What its goroutines do from then on reaches
// nobody. Where the faults are over, as a request that crashes it was under way then,
// another process follows.
func (p *play) crash(proc *process) {
	p.logf("%s: crashes", proc.name)
	p.mu.Lock()
	proc.ending = !p.isHealed()
	p.mu.Unlock()
	proc.network.kill()
	proc.stop()
}

func (p *play) isHealed() bool {
	select {
	case <-p.healed:
		return true
	default:
		return false
	}
}

// terminate asks the process to stop, as SIGTERM does.
func (p *play) terminate(proc *process) {
	p.logf("%s: is to stop", proc.name)
	p.mu.Lock()
	proc.ending = true
	p.mu.Unlock()
	proc.stop()
}

// suspend has the process stand still for a while, as SIGSTOP does: it takes no
// step, what it sends is lost, and nothing reaches it. The clock goes on.
func (p *play) suspend(proc *process, d time.Duration) {
	p.logf("%s: is suspended for %s", proc.name, d)
	until := time.Now().Add(d)
	proc.asleep.Store(&until)
	p.faults.happened("suspend")
}

// wakes is when the process goes on; the past if it does.
func (proc *process) wakes() (at time.Time) {
	if until := proc.asleep.Load(); until != nil {
		at = *until
	}
	return at
}

// leads tells whether the lease names the process.
func (proc *process) leads() bool { return proc.play.holder() == proc.name }

func (p *play) logger(name string) logr.Logger {
	if p.options.Log == nil {
		return logr.Discard()
	}
	return funcr.New(func(prefix, args string) { p.logf("%s: %s %s", name, prefix, args) }, funcr.Options{Verbosity: p.options.Verbosity})
}

// steps stands between the loop and the machine: it has steps panic where a
// fault says so, and notes panics that nobody planted.
type steps struct {
	machine loop.Machine
	process *process
}

func (s *steps) Step(now time.Time, e machine.Event) []machine.Effect {
	p := s.process.play
	time.Sleep(time.Until(s.process.wakes()))
	if p.check.breached() {
		time.Sleep(100 * time.Millisecond) // one that never rests would stop the clock
	}
	what := fmt.Sprintf("%s %T", s.process.name, e)
	if p.faults.of(s.process.replica, true, p.faults.draw(what), func(f *fault) bool { return f.does == panicStep }) != nil {
		p.logf("%s: panics in %T", s.process.name, e)
		p.check.panicked(s.process, e)
		panic("planted")
	}
	defer func() {
		if r := recover(); r != nil {
			p.check.breach("%s: a step (%T) panicked: %v", s.process.name, e, r)
			panic(r)
		}
	}()
	return s.machine.Step(now, e)
}

func (s *steps) First() *object.Pod           { return s.machine.First() }
func (s *steps) NextTimer() (time.Time, bool) { return s.machine.NextTimer() }

func (s *steps) Repair() []machine.Effect {
	effects := s.machine.Repair()
	if m, ok := s.machine.(*machine.Machine); ok {
		if err := m.Verify(); err != nil {
			s.process.play.check.breach("%s: after a repair: %v", s.process.name, err)
		}
	}
	return effects
}
