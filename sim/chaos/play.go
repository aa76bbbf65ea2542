package chaos

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/sim/apiserver"
	"github.com/berth-scheduler/berth/sim/scenario"
)

// play is a story under way.
type play struct {
	options Options
	config  *config.Config
	gates   feature.Features
	// nativeGroups: pods of a PodGroup of Kubernetes are placed together. quotas: the story
	// has some.
	nativeGroups, quotas bool
	server               *apiserver.Server
	faults               *faults
	check                *check
	begin                time.Time
	healed               chan struct{} // closed when the faults are over
	backup               *apiserver.Backup

	mu       sync.Mutex
	replicas []string
	running  map[string]*process // by replica: its last life
	lives    map[string]int
	clocks   map[string]time.Duration // by replica: how far they are ahead
	closing  bool
}

func newPlay(o Options, seed uint64) *play {
	p := &play{options: o, config: defaultConfig(), gates: pluginGates(), server: apiserver.New(), faults: newFaults(seed), begin: time.Now(), healed: make(chan struct{}),
		running: map[string]*process{}, lives: map[string]int{}, clocks: map[string]time.Duration{}}
	p.check = newCheck(p)
	p.server.Changed = func(c *apiserver.Change) { p.check.changed(c); p.kubelet(c); p.volumes(c); p.releaseDevices(c) }
	p.server.Lag, p.server.Stale, p.server.Skew = p.lag, p.stale, p.skew
	return p
}

func (p *play) logf(format string, args ...any) {
	if p.options.Log == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.options.Log, "%10.6f %s\n", time.Since(p.begin).Seconds(), fmt.Sprintf(format, args...))
}

// holder is who holds the lease, as the API server has it.
func (p *play) holder() string {
	p.check.mu.Lock()
	defer p.check.mu.Unlock()
	return p.check.holder
}

// lag is when a watch shows a change: soon, each kind in its own time, and later
// where a fault says so.
func (p *play) lag(by, resource string, c *apiserver.Change) time.Time {
	drawn := mix(p.faults.seed, "lag", by, resource, c.Revision-100)
	at := c.At.Add(time.Millisecond + time.Duration(drawn%20_000_000))
	if wakes := p.wakes(by); wakes.After(at) {
		at = wakes
	}
	of := func(does string) *fault {
		return p.faults.of(strings.TrimRight(by, "0123456789"), p.holder() == by, drawn, func(f *fault) bool {
			return f.does == does && (f.kind == "" || f.kind == resource)
		})
	}
	if f := of(freezeWatch); f != nil {
		return f.to.Add(time.Duration(drawn % 20_000_000))
	}
	if f := of(lagWatch); f != nil {
		at = at.Add(f.by)
	}
	return at
}

// wakes is when the process of that name goes on.
func (p *play) wakes(name string) time.Time {
	p.mu.Lock()
	proc := p.running[strings.TrimRight(name, "0123456789")]
	p.mu.Unlock()
	if proc == nil || proc.name != name {
		return time.Time{}
	}
	return proc.wakes()
}

func (p *play) stale(by, resource string) int {
	drawn := p.faults.draw("stale " + by + resource)
	f := p.faults.of(strings.TrimRight(by, "0123456789"), false, drawn, func(f *fault) bool { return f.does == staleList })
	if f == nil {
		return 0
	}
	return int(f.by)
}

// kubelet starts pods that are bound, says so in their conditions, and ends those
// that are deleted.
func (p *play) kubelet(c *apiserver.Change) {
	pod, ok := c.Object.(*v1.Pod)
	if !ok || c.Type == "DELETED" || pod.Spec.NodeName == "" {
		return
	}
	before, _ := c.Before.(*v1.Pod)
	drawn := mix(p.faults.seed, "kubelet", pod.Name, c.Revision)
	same := func() bool {
		now := p.server.Get("pods", pod.Namespace, pod.Name)
		return now != nil && now.GetUID() == pod.UID
	}
	switch {
	case pod.DeletionTimestamp != nil && (before == nil || before.DeletionTimestamp == nil):
		time.AfterFunc(100*time.Millisecond+time.Duration(drawn%3_000_000_000), func() {
			if same() {
				p.server.Delete("pods", pod.Namespace, pod.Name)
			}
		})
	case pod.DeletionTimestamp == nil && (pod.Status.Phase == v1.PodPending || !scheduled(pod)):
		time.AfterFunc(20*time.Millisecond+time.Duration(drawn%500_000_000), func() {
			if same() {
				_ = p.server.Update("pods", pod.Namespace, pod.Name, func(o apiserver.Object) {
					now := metav1.NewTime(time.Now().Truncate(time.Second))
					o.(*v1.Pod).Status.Phase, o.(*v1.Pod).Status.StartTime = v1.PodRunning, &now
					apiserver.SetScheduled(o.(*v1.Pod), now.Time)
				})
			}
		})
	}
}

// do does what a directive says.
func (p *play) do(s *scenario.Step) error {
	verb, words := s.Words[0], s.Words[1:]
	p.logf("* %s", strings.Join(s.Words, " "))
	switch verb {
	case "seed":
		return nil // it was read before
	case "replicas":
		return p.replicate(words)
	case "node", "pod":
		return p.create(verb, words)
	case "again": // if the former one is gone
		if err := p.create("pod", words[1:]); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	case "claim":
		return p.claim(words)
	case "volume":
		return p.volume(words)
	case "limit":
		return p.limit(words)
	case "budget":
		return p.budget(words)
	case "bound", "unbound":
		return p.expect(words, verb == "bound")
	case "batch":
		return p.batch(words)
	case "podgroup":
		return p.podGroup(words)
	case "quota":
		return p.quota(words)
	case "finish":
		return p.finish(words)
	case "clock":
		return p.setClock(words)
	case "extender":
		return p.extend(words)
	case "devices":
		return p.offerDevices(words)
	case "device-claim":
		return p.claimDevice(words)
	case "update":
		return p.update(words)
	case "delete":
		return p.delete(words)
	case "bind":
		return p.bindElsewhere(words)
	case "advance":
		return p.advance(words)
	case "fault":
		f, err := parseFault(words, time.Now())
		if err == nil {
			p.faults.add(f)
		}
		return err
	case "compact":
		p.server.Compact()
		return nil
	case "backup":
		p.backup = p.server.Backup()
		return nil
	case "restore":
		return p.restore(words)
	case "crash", "terminate", "start", "cut":
		return p.processes(verb, words, 0)
	case "suspend":
		if len(words) != 2 {
			return errors.New("want a replica or leader, and for=")
		}
		d, err := time.ParseDuration(strings.TrimPrefix(words[1], "for="))
		if err != nil {
			return err
		}
		return p.processes(verb, words[:1], d)
	}
	return errors.New("no such directive")
}

// expect notes if a pod is not bound that is to be, or is that is not to be.
func (p *play) expect(words []string, bound bool) error {
	namespace, called := name(strings.Join(words, ""))
	pod, ok := p.server.Get("pods", namespace, called).(*v1.Pod)
	if is := ok && pod.Spec.NodeName != ""; is != bound {
		p.check.breach("pod %v is bound: %t", words, is)
	}
	return nil
}

func (p *play) replicate(words []string) error {
	n, err := strconv.Atoi(strings.Join(words, ""))
	if err != nil || n < 1 || n > 9 {
		return errors.New("want a number of replicas")
	}
	for i := range n {
		p.replicas = append(p.replicas, string(rune('a'+i)))
		if err := p.start(p.replicas[i]); err != nil {
			return err
		}
		time.Sleep(37*time.Millisecond + 7*time.Nanosecond)
	}
	return nil
}

func (p *play) create(kind string, words []string) error {
	if kind == "node" {
		n, err := scenario.Node(words)
		if err != nil {
			return err
		}
		return p.server.Create(n)
	}
	pod, err := scenario.Pod(words)
	if err != nil {
		return err
	}
	pod.Status.Phase = v1.PodPending
	return p.server.Create(pod)
}

func name(word string) (namespace, name string) {
	if namespace, name, found := strings.Cut(word, "/"); found {
		return namespace, name
	}
	return v1.NamespaceDefault, word
}

// update changes an object; one that is not there is left alone, as a story that
// is cut down may not have made it.
func (p *play) update(words []string) error {
	if len(words) < 2 {
		return errors.New("want node or pod, and a name")
	}
	var err error
	switch words[0] {
	case "node":
		_ = p.server.Update("nodes", "", words[1], func(o apiserver.Object) { err = scenario.ChangeNode(o.(*v1.Node), words[2:]) })
	case "pod":
		namespace, name := name(words[1])
		_ = p.server.Update("pods", namespace, name, func(o apiserver.Object) { err = scenario.ChangePod(o.(*v1.Pod), words[2:]) })
	default:
		err = errors.New("want node or pod")
	}
	return err
}

func (p *play) delete(words []string) error {
	if len(words) != 2 {
		return errors.New("want node, pod, lease, podgroup or quota, and a name")
	}
	switch words[0] {
	case "podgroup":
		p.deletePodGroup(words[1])
	case "quota":
		p.server.Delete(elasticQuotas, words[1], "q")
	case "node":
		p.server.Delete("nodes", "", words[1])
	case "lease":
		p.server.Delete("leases.coordination.k8s.io", "kube-system", words[1])
	case "pod":
		namespace, name := name(words[1])
		pod, _ := p.server.Get("pods", namespace, name).(*v1.Pod)
		switch {
		case pod == nil:
		case pod.Spec.NodeName == "":
			p.server.Delete("pods", namespace, name)
		default:
			return p.server.Update("pods", namespace, name, func(o apiserver.Object) {
				now := metav1.NewTime(time.Now().Truncate(time.Second))
				o.SetDeletionTimestamp(&now)
			})
		}
	default:
		return errors.New("want node, pod or lease")
	}
	return nil
}

// bindElsewhere is another scheduler, or a person, at work.
func (p *play) bindElsewhere(words []string) error {
	if len(words) != 2 {
		return errors.New("want a pod and a node")
	}
	namespace, name := name(words[0])
	pod, _ := p.server.Get("pods", namespace, name).(*v1.Pod)
	if pod == nil || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || len(pod.Spec.ResourceClaims) > 0 {
		return nil
	}
	return p.server.Update("pods", namespace, name, func(o apiserver.Object) {
		o.(*v1.Pod).Spec.NodeName, o.(*v1.Pod).Status.NominatedNodeName = words[1], ""
		apiserver.SetScheduled(o.(*v1.Pod), time.Now())
	})
}

func (p *play) advance(words []string) error {
	d, err := time.ParseDuration(strings.Join(words, ""))
	if err == nil {
		time.Sleep(d)
	}
	return err
}

// restore sets the API server back to the last backup.
func (p *play) restore(words []string) error {
	ahead := 0
	for _, w := range words {
		var err error
		if ahead, err = strconv.Atoi(strings.TrimPrefix(w, "ahead=")); err != nil {
			return err
		}
	}
	if p.backup == nil {
		return nil
	}
	p.server.Restore(p.backup, int64(ahead))
	p.check.restored()
	p.resyncVolumes()
	p.resyncDevices()
	for _, o := range p.server.List("pods") {
		if o.GetDeletionTimestamp() != nil {
			time.AfterFunc(time.Second, func() { p.server.Delete("pods", o.GetNamespace(), o.GetName()) })
		}
	}
	return nil
}

// processes does something to one replica or all; d is for how long.
func (p *play) processes(verb string, words []string, d time.Duration) error {
	if len(words) != 1 {
		return errors.New("want a replica, leader or all")
	}
	p.mu.Lock()
	running := maps.Clone(p.running)
	p.mu.Unlock()
	for _, replica := range slices.Sorted(maps.Keys(running)) {
		proc := running[replica]
		if words[0] != "all" && words[0] != replica && (words[0] != "leader" || !proc.leads()) {
			continue
		}
		switch verb {
		case "crash":
			p.crash(proc)
		case "terminate":
			p.terminate(proc)
		case "suspend":
			p.suspend(proc, d)
		case "cut":
			proc.network.cut()
		case "start":
			if err := p.revive(proc); err != nil {
				return err
			}
		}
	}
	return nil
}

// revive starts a replica again that has ended or crashed.
func (p *play) revive(proc *process) error {
	p.mu.Lock()
	ending := proc.ending
	p.mu.Unlock()
	if !ending || proc.network.alive() && !proc.hasEnded() {
		return nil // it runs, or takes its time to stop
	}
	return p.start(proc.replica)
}

func (proc *process) hasEnded() bool {
	select {
	case <-proc.ended:
		return true
	default:
		return false
	}
}

// heal ends all faults and has every replica run.
func (p *play) heal() error {
	p.logf("* the faults are over")
	p.faults.heal()
	close(p.healed)
	for range 40 {
		if err := p.processes("start", []string{"all"}, 0); err != nil {
			return err
		}
		p.mu.Lock()
		down := slices.ContainsFunc(p.replicas, func(r string) bool { return p.running[r].ending })
		p.mu.Unlock()
		if !down {
			return nil
		}
		time.Sleep(time.Second)
	}
	return errors.New("a replica that was told to stop goes on")
}

// close ends all processes and waits for what they leave.
func (p *play) close() {
	p.mu.Lock()
	p.closing = true
	var all []*process
	for _, r := range p.replicas {
		all = append(all, p.running[r])
	}
	p.mu.Unlock()
	for _, proc := range all {
		proc.network.kill()
		proc.stop()
	}
	for _, proc := range all {
		<-proc.ended
	}
	time.Sleep(2 * time.Minute) // retries of client-go that know no end
}
