package chaos

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/lab/proxy"
)

// enemy draws faults from a seed, one after the other, and heals each of them.
type enemy struct {
	cluster  *cluster.Cluster
	replicas []*replica
	random   *rand.Rand
	faults   []fault                     // that it draws from
	restored func(context.Context) error // called after etcd was restored
	log      io.Writer
	begin    time.Time

	other  string         // the program that hosts the API server of the other version
	backup string         // what a restore brings back, "" before the first backup
	counts map[string]int // faults by kind
}

// fault is one kind of misfortune. It returns when it is healed.
type fault struct {
	name   string
	weight int
	do     func(context.Context, *enemy) error
}

// faults are all kinds. What costs the control plane comes less often.
var faults = []fault{
	{"kill the leader", 4, func(ctx context.Context, e *enemy) error { return e.restart(ctx, leader(e.replicas), syscall.SIGKILL) }},
	{"kill any replica", 2, func(ctx context.Context, e *enemy) error { return e.restart(ctx, e.any(), syscall.SIGKILL) }},
	{"stop the leader", 3, func(ctx context.Context, e *enemy) error { return e.restart(ctx, leader(e.replicas), syscall.SIGTERM) }},
	{"suspend the leader", 3, suspend},
	{"lose replies to bindings", 4, inject(proxy.Fault{LoseReply: true}, binding)},
	{"lose replies to any write", 2, inject(proxy.Fault{LoseReply: true}, write)},
	{"lose replies to bindings, and freeze", 3, loseAndFreeze},
	{"freeze all replies", 2, inject(proxy.Fault{Freeze: true}, anything)},
	{"freeze the pods", 3, inject(proxy.Fault{Freeze: true}, watchOf("/pods"))},
	{"freeze the nodes", 2, inject(proxy.Fault{Freeze: true}, watchOf("/nodes"))},
	{"delay everything", 3, inject(proxy.Fault{Delay: 700 * time.Millisecond}, anything)},
	{"delay bindings", 2, inject(proxy.Fault{Delay: 3 * time.Second}, binding)},
	{"swallow on some connections", 3, swallow},
	{"cut the lease off", 3, inject(proxy.Fault{Swallow: true}, func(r *http.Request) bool { return isLease(r.URL.Path) })},
	{"refuse bindings with 500", 2, inject(proxy.Fault{Status: http.StatusInternalServerError}, binding)},
	{"refuse writes with 503", 2, inject(proxy.Fault{Status: http.StatusServiceUnavailable}, write)},
	{"refuse everything with 429", 2, inject(proxy.Fault{Status: http.StatusTooManyRequests}, anything)},
	{"refuse everything with 401", 1, inject(proxy.Fault{Status: http.StatusUnauthorized}, anything)},
	{"answer lists of before", 2, staleLists},
	{"restart the API server", 2, func(ctx context.Context, e *enemy) error { return e.cluster.RestartAPIServer(ctx) }},
	{"restart etcd", 2, func(ctx context.Context, e *enemy) error { return e.cluster.RestartEtcd(ctx) }},
	{"compact etcd and restart the API server", 1, compact},
	{"back etcd up, or restore it", 1, backupOrRestore},
}

// OtherVersion is the name of the fault that needs Options.Next.
const OtherVersion = "change the version of the API server"

// changeVersion restarts the API server as one of the other version, on the same data.
func changeVersion(ctx context.Context, e *enemy) (err error) {
	e.other, err = e.cluster.ChangeControlPlane(ctx, e.other)
	return err
}

func binding(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/binding")
}

func write(r *http.Request) bool { return r.Method != http.MethodGet }

func anything(*http.Request) bool { return true }

func watchOf(resource string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, resource) && r.URL.Query().Get("watch") != ""
	}
}

// run draws faults until the context ends, and heals the last one.
func (e *enemy) run(ctx context.Context) error {
	e.counts = map[string]int{}
	total := weight(e.faults)
	for e.pause(ctx, 1*time.Second, 6*time.Second); ctx.Err() == nil; e.pause(ctx, 1*time.Second, 6*time.Second) {
		f := pick(e.faults, e.random.IntN(total))
		e.counts[f.name]++
		e.say("%s", f.name)
		// A fault is healed even when the time is over: what follows needs it.
		if err := f.do(context.WithoutCancel(ctx), e); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// chosen are the faults with one of the words in their names, all without words. The
// version of the API server changes only where there is another one.
func chosen(words []string, next string) []fault {
	all := slices.Clone(faults)
	if next != "" {
		all = append(all, fault{OtherVersion, 2, changeVersion})
	}
	return slices.DeleteFunc(all, func(f fault) bool {
		return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(f.name, w) })
	})
}

func weight(faults []fault) int {
	total := 0
	for _, f := range faults {
		total += f.weight
	}
	return total
}

// pick is the fault that a number below the sum of the weights stands for.
func pick(faults []fault, n int) fault {
	for _, f := range faults {
		if n -= f.weight; n < 0 {
			return f
		}
	}
	panic("the number is below the sum of the weights")
}

func (e *enemy) say(format string, a ...any) {
	fmt.Fprintf(e.log, "%7.1fs  %s\n", time.Since(e.begin).Seconds(), fmt.Sprintf(format, a...))
}

func (e *enemy) any() *replica { return e.replicas[e.random.IntN(len(e.replicas))] }

// pause waits a time between two bounds, or until the context ends.
func (e *enemy) pause(ctx context.Context, least, most time.Duration) {
	select {
	case <-time.After(least + time.Duration(e.random.Int64N(int64(most-least)))):
	case <-ctx.Done():
	}
}

// restart ends a replica and starts it again after a while.
func (e *enemy) restart(ctx context.Context, r *replica, by syscall.Signal) error {
	r.changing.Lock()
	defer r.changing.Unlock()
	if p := r.running(); p != nil {
		if by == syscall.SIGKILL {
			p.Kill()
		} else if err := p.Stop(); err != nil {
			e.say("replica %d: %v", r.number, err)
		}
	}
	e.pause(ctx, 100*time.Millisecond, 8*time.Second)
	return r.start(ctx)
}

func suspend(ctx context.Context, e *enemy) error {
	if p := leader(e.replicas).running(); p != nil {
		p.Suspend()
		defer p.Resume()
		e.pause(ctx, 2*time.Second, 25*time.Second)
	}
	return nil
}

// inject is a fault of the proxies, of the leader's or of all.
func inject(f proxy.Fault, on func(*http.Request) bool) func(context.Context, *enemy) error {
	return func(ctx context.Context, e *enemy) error {
		f := f
		f.On = on
		defer e.inject(f)()
		e.pause(ctx, 2*time.Second, 15*time.Second)
		return nil
	}
}

func (e *enemy) inject(f proxy.Fault) (heal func()) {
	struck := e.replicas
	if e.random.IntN(3) > 0 {
		struck = []*replica{leader(e.replicas)}
	}
	var heals []func()
	for _, r := range struck {
		heals = append(heals, r.proxy.Inject(f))
	}
	return func() {
		for _, heal := range heals {
			heal()
		}
	}
}

func loseAndFreeze(ctx context.Context, e *enemy) error {
	defer e.inject(proxy.Fault{Freeze: true, On: watchOf("/pods")})()
	defer e.inject(proxy.Fault{LoseReply: true, On: binding})()
	e.pause(ctx, 2*time.Second, 12*time.Second)
	return nil
}

// swallow makes about half of the connections half-open.
func swallow(ctx context.Context, e *enemy) error {
	var mu sync.Mutex
	dead := map[string]bool{}
	random := rand.New(rand.NewPCG(e.random.Uint64(), 0))
	defer e.inject(proxy.Fault{Swallow: true, On: func(r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if _, known := dead[r.RemoteAddr]; !known {
			dead[r.RemoteAddr] = random.IntN(2) == 0
		}
		return dead[r.RemoteAddr]
	}})()
	e.pause(ctx, 2*time.Second, 15*time.Second)
	return nil
}

// staleLists has a replica start again with lists of before.
func staleLists(ctx context.Context, e *enemy) error {
	r := e.any()
	lists, err := r.proxy.Lists(ctx, "/api/v1/pods", "/api/v1/nodes")
	if err != nil {
		return err
	}
	e.pause(ctx, 2*time.Second, 10*time.Second)
	defer r.proxy.Inject(proxy.Fault{Lists: lists, On: anything})()
	return e.restart(ctx, r, syscall.SIGKILL)
}

func compact(ctx context.Context, e *enemy) error {
	if err := e.cluster.CompactEtcd(ctx); err != nil {
		return err
	}
	return e.cluster.RestartAPIServer(ctx)
}

// backupOrRestore makes a backup, and the next time brings it back.
func backupOrRestore(ctx context.Context, e *enemy) error {
	if e.backup == "" {
		e.backup = filepath.Join(e.cluster.Dir(), fmt.Sprintf("backup-%d", e.random.Uint32()))
		return e.cluster.BackupEtcd(ctx, e.backup)
	}
	e.say("  it is a restore")
	backup := e.backup
	e.backup = ""
	if err := e.cluster.RestoreEtcd(ctx, backup); err != nil {
		return err
	}
	if err := os.RemoveAll(backup); err != nil {
		return err
	}
	return e.restored(ctx)
}
