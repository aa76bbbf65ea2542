package daemon

import (
	"context"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/edge/loop"
	"github.com/berth-scheduler/berth/edge/metrics"
)

// observe counts and logs what a step did.
func (d *Daemon) observe(s loop.Step) {
	d.metrics.Observe(s, d.machine.Changed())
	d.recordStep(s)
	if d.observer != nil {
		d.observer(s)
	}
	d.logs.Observe(s, d.machine)
	d.records.Observe(s)
}

// refreshTime is how long who reads metrics waits for the loop.
const refreshTime = time.Second

// refresh brings the metrics up to date.
func (d *Daemon) refresh() {
	d.refreshing.Lock()
	defer d.refreshing.Unlock()
	d.metrics.Steps(d.watchdog.Age(), d.loop.Longest())
	d.refreshRecord()
	within(refreshTime, func(ctx context.Context) {
		var s metrics.Snapshot
		err := d.loop.Inspect(ctx, func() { s = d.snapshot() })
		if err == nil {
			d.metrics.Refresh(s)
		}
	})
}

// pods lists the pods that the machine knows: it stops for as long as copying a
// list of pointers takes.
func (d *Daemon) pods() (pods []*object.Pod) {
	within(refreshTime, func(ctx context.Context) {
		var list []*object.Pod
		if d.loop.Inspect(ctx, func() { list = d.machine.Pods() }) == nil {
			pods = list
		}
	})
	return pods
}

// Writing is the number of writes that wait or are under way: bindings, objects that
// plugins write, and the status of pods.
func (d *Daemon) Writing() int {
	c := d.executor.Counters()
	return c.Binding + c.Unanswered + c.Patches
}

// AuditRepairs is how many objects an audit found to be known otherwise than the API
// server has them.
func (d *Daemon) AuditRepairs() uint64 { return d.watcher.Audits() }

// snapshot reads what the machine counts; on the loop's goroutine only.
func (d *Daemon) snapshot() metrics.Snapshot {
	q, t := d.machine.Queue(), d.machine.Table()
	s := metrics.Snapshot{
		Now: time.Now(), Queue: q.Counts(), Groups: q.WaitingGroups(), Arrivals: q.Arrivals(), EventsInFlight: q.EventsInFlight(), Scoring: d.metrics.Scoring(),
		Nodes: t.Live(), Pods: t.PlacedPods(), Assumed: d.machine.Assumed(),
		PluginPanics: d.machine.Panics(), BadObjects: d.watcher.BadObjects(),
		Rewinds: d.watcher.Rewinds(), Undone: d.machine.Undone(), HeldBack: d.machine.HeldBack(),
		Overcommits: d.machine.Overcommits(), OvercommittedNodes: d.machine.OvercommittedNodes(), Executor: d.executor.Counters(),
		WatchesBehind: len(d.watcher.Behind()), AuditRepairs: d.watcher.Audits(), Server: d.watcher.ServerVersion(),
	}
	for _, m := range d.watcher.Missing() {
		s.UnlistedKinds = append(s.UnlistedKinds, m.Resource)
	}
	for _, of := range quota.Of(t).Queues() {
		s.Quotas = append(s.Quotas, metrics.Quota{Quota: of.Quota, Used: of.Used()})
	}
	if d.hosts != nil {
		s.PreBinding, s.Late = d.hosts.PreBinding(), d.hosts.Overdue()
	}
	for _, n := range q.Panics() { // any order: a sum
		s.HintPanics += n
	}
	return s
}

// Inspect runs look between two steps of the loop, with the machine, and waits
// for it.
func (d *Daemon) Inspect(ctx context.Context, look func(*machine.Machine)) error {
	return d.loop.Inspect(ctx, func() { look(d.machine) })
}

// known lists the pods or nodes that the machine has.
func (d *Daemon) known(ctx context.Context, resource string) (known []machine.Known, err error) {
	err = d.Inspect(ctx, func(m *machine.Machine) {
		if resource == "nodes" {
			known = m.KnownNodes()
		} else {
			known = m.KnownPods()
		}
	})
	return known, err
}
