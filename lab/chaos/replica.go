package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/lab/proxy"
)

// replica is one of the schedulers, behind a proxy of its own. The process may
// be another after each death; the proxy stays.
type replica struct {
	number  int
	cluster *cluster.Cluster
	proxy   *proxy.Proxy
	binary  string

	changing sync.Mutex // held by who ends or starts the process

	mu      sync.Mutex
	process *cluster.Scheduler // nil: it is down
	left    int                // how often a process ended by itself, as it had lost the lease
	deaths  []string           // of processes that ended in another way
}

// lost is in the last line of a scheduler that ends as it has lost its lease.
const lost = "leader election lost"

func newReplica(c *cluster.Cluster, number int, binary string) (*replica, error) {
	upstream, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig(cluster.Berth))
	if err != nil {
		return nil, err
	}
	// Clients trust the proxy as they trust the server: it shows the same certificate.
	pki := filepath.Join(c.Dir(), "pki", cluster.APIServer)
	p, err := proxy.Start(upstream, pki+".crt", pki+".key")
	if err != nil {
		return nil, err
	}
	return &replica{number: number, cluster: c, proxy: p, binary: binary}, nil
}

// start starts the process and returns when it is ready.
func (r *replica) start(ctx context.Context) error {
	s, err := r.cluster.StartScheduler(ctx, cluster.SchedulerOptions{
		Kind: cluster.Berth, Binary: r.binary, LeaderElect: true, Flags: []string{"-v=3", "--master=" + r.proxy.URL},
	})
	if err != nil {
		return fmt.Errorf("replica %d: %w", r.number, err)
	}
	r.mu.Lock()
	r.process = s
	r.mu.Unlock()
	return nil
}

// running is the process, or nil.
func (r *replica) running() *cluster.Scheduler {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process != nil {
		select {
		case <-r.process.Done():
			r.note(r.process)
			r.process = nil
		default:
		}
	}
	return r.process
}

// note keeps why the process ended, if nobody had ended it.
func (r *replica) note(p *cluster.Scheduler) {
	switch err := p.Death(); {
	case err == nil:
	case strings.Contains(err.Error(), lost):
		r.left++
	default:
		r.deaths = append(r.deaths, fmt.Sprintf("replica %d: %v", r.number, err))
	}
}

// ends is how often a process ended as it had lost the lease, and how others ended
// by themselves.
func (r *replica) ends() (left int, deaths []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left, r.deaths
}

// revive starts the process again if it has ended by itself.
func (r *replica) revive(ctx context.Context) error {
	if !r.changing.TryLock() {
		return nil
	}
	defer r.changing.Unlock()
	if r.running() != nil {
		return nil
	}
	return r.start(ctx)
}

// leader is the replica that wrote the lease last.
func leader(replicas []*replica) *replica {
	all := requests(replicas)
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].leaseWrite() {
			return replicas[all[i].replica]
		}
	}
	return replicas[0]
}

// requests are those of all replicas so far.
func requests(replicas []*replica) []request {
	exchanges := make([][]proxy.Exchange, len(replicas))
	for i, r := range replicas {
		exchanges[i] = r.proxy.Exchanges()
	}
	return merge(exchanges)
}

func isLease(path string) bool { return strings.Contains(path, "/leases") }
