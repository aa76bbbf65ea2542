package compat

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
)

const (
	postBindWorkers = 16     // goroutines that call PostBind
	postBindLimit   = 10_000 // PostBind calls that wait; more are dropped
)

// running holds the pods whose PreBind plugins run, by UID, for any goroutine.
type running struct {
	mu   sync.Mutex
	pods map[types.UID]*preBinding
}

// preBinding is one pod's PreBind under way. running.mu guards it.
type preBinding struct {
	cancel context.CancelCauseFunc // of the plugins' context
	bound  bool                    // MarkPrebound was called: too late to cancel
	// canceled is set once cancel was called.
	canceled bool
}

// Run runs the PreBind plugins or the Bind plugin of the effect, waits for them however long, and
// returns their reply. The executor calls it then on a goroutine of its own. For PostBind, Run
// queues the call and returns nil at once. If e has no attempt, the plugins get a new CycleState.
func (h *Hosts) Run(ctx context.Context, e machine.RunPlugins) (reply machine.Event) {
	host, c := h.profiles[e.Profile], (*cycle)(nil)
	if attempt, ok := e.Attempt.(*cycle); ok {
		c = attempt
	} else {
		c = host.newCycle(e.Pod)
	}
	ctx = klog.NewContext(ctx, h.options.Logger)
	switch e.Point {
	case "PreBind":
		return machine.PreBindReply{UID: e.Pod.UID, Status: c.preBind(ctx, e)}
	case "Bind":
		return c.bind(ctx, e)
	}
	c.startPostBind(ctx, e)
	return nil
}

// Cancel cancels the context of the pod's PreBind plugins, with why as its cause. If they have not
// begun yet, they will not run. It returns false if none runs, or if MarkPrebound was called. Only
// the loop may call it.
func (h *Hosts) Cancel(uid types.UID, why error) bool {
	h.binding.mu.Lock()
	defer h.binding.mu.Unlock()
	if b := h.binding.pods[uid]; b != nil {
		return b.end(why)
	}
	for _, host := range h.profiles { // any order: one has it
		if c := host.cycles[uid]; c != nil {
			c.unwanted = why
		}
	}
	return false
}

// end cancels the context of the plugins with why as its cause, and returns true. If MarkPrebound
// was called, it only returns false. The caller holds running.mu.
func (b *preBinding) end(why error) bool {
	if b.bound {
		return false
	}
	b.canceled = true
	b.cancel(why)
	return true
}

// cancel cancels the context of the pod's PreBind plugins. It returns false if none
// runs, or MarkPrebound was called. Any goroutine may call it.
func (l *running) cancel(uid types.UID, why error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.pods[uid]
	return b != nil && b.end(why)
}

// PreBinding returns the number of pods whose PreBind plugins run, for metrics.
func (h *Hosts) PreBinding() int {
	h.binding.mu.Lock()
	defer h.binding.mu.Unlock()
	return len(h.binding.pods)
}

// add records that the pod's PreBind plugins run; cancel cancels their context.
func (l *running) add(uid types.UID, cancel context.CancelCauseFunc) *preBinding {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &preBinding{cancel: cancel}
	l.pods[uid] = b
	return b
}

// unwanted returns why the attempt's PreBind was cancelled before it began; nil if it was
// not.
func (l *running) unwanted(c *cycle) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return c.unwanted
}

// remove records that the pod's PreBind plugins have returned.
func (l *running) remove(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pods, uid)
}

// preBind runs the effect's PreBind plugins in order, and neighbours that allow it in parallel, as
// kube-scheduler does. It returns the first status that is not a success; nil if there is none. If
// the attempt was cancelled before, it runs none and returns an error. It reports PreBindBegins to
// the machine unless all plugins skip the pod.
func (c *cycle) preBind(ctx context.Context, e machine.RunPlugins) *decision.Status {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errors.New("the PreBind plugins have returned"))
	c.host.binding.add(e.Pod.UID, cancel)
	defer c.host.binding.remove(e.Pod.UID)
	if why := c.host.binding.unwanted(c); why != nil {
		return &decision.Status{Code: decision.Error, Plugin: e.Plugins[0], Err: why}
	}
	defer c.host.watchRoom(e)()
	pod := c.assumed(e.Node)
	groups, failed := c.preFlight(ctx, pod, e)
	if failed != nil {
		return failed
	}
	if len(groups) > 0 {
		c.host.report(machine.PreBindBegins{UID: e.Pod.UID})
	}
	for _, group := range groups {
		statuses := make([]*decision.Status, len(group))
		var wait sync.WaitGroup
		for i, p := range group[1:] {
			wait.Go(func() { statuses[i+1] = c.preBindBy(ctx, p, pod, e.Node) })
		}
		statuses[0] = c.preBindBy(ctx, group[0], pod, e.Node)
		wait.Wait()
		for _, s := range statuses {
			if s != nil {
				return s
			}
		}
	}
	return nil
}

// watchRoom starts a timer that logs when the PreBind plugins take longer than
// Options.Timeout: the pod's resources stay reserved until they return. stop ends it.
func (h *Host) watchRoom(e machine.RunPlugins) (stop func()) {
	timer := time.AfterFunc(h.options.Timeout, func() {
		h.options.Logger.Info("PreBind plugins have not returned; the pod's resources stay reserved on the node until they do",
			"pod", klog.KRef(e.Pod.Namespace, e.Pod.Name), "node", e.Node, "plugins", e.Plugins)
	})
	return func() { timer.Stop() }
}

// preFlight calls the plugins' PreBindPreFlight and returns those to run, as groups in order.
// A group is one plugin, or neighbours that all allow a parallel run. Plugins that return Skip
// are left out. It records the skipped and the parallel plugins in the cycle state. If a
// plugin fails, it returns a status and no groups.
func (c *cycle) preFlight(ctx context.Context, pod *v1.Pod, e machine.RunPlugins) (groups [][]*hostedPlugin, _ *decision.Status) {
	skipped, parallel := sets.New[string](), sets.New[string]()
	together := false // with the last group
	for _, name := range e.Plugins {
		p := c.host.byName[name]
		var result *fwk.PreBindPreFlightResult
		var status *fwk.Status
		err := apart(func() { result, status = p.preBind.PreBindPreFlight(ctx, c.state, pod, e.Node) })
		beside := result != nil && result.AllowParallel
		if beside {
			parallel.Insert(name)
		}
		switch {
		case err != nil:
		case status.IsError():
			err = fmt.Errorf("running PreBindPreFlight %q: %w", name, errorOf(status))
		case status.IsSkip():
			skipped.Insert(name)
			together = together && beside
			continue
		case !status.IsSuccess():
			err = fmt.Errorf("PreBindPreFlight %s returned %q, which is unsupported. It is supposed to return Success, Skip, or Error status", name, status.Code())
		}
		if err != nil {
			return nil, &decision.Status{Code: decision.Error, Plugin: name, Err: err}
		}
		if together && beside {
			groups[len(groups)-1] = append(groups[len(groups)-1], p)
		} else {
			groups = append(groups, []*hostedPlugin{p})
		}
		together = beside
	}
	c.state.SetSkipPreBindPlugins(skipped)
	c.state.SetParallelPreBindPlugins(parallel)
	return groups, nil
}

// preBindBy calls one plugin's PreBind. It returns nil for a success. A rejection keeps its code;
// any other status and a panic are errors. If the context was cancelled, the error is the cause.
func (c *cycle) preBindBy(ctx context.Context, p *hostedPlugin, pod *v1.Pod, node string) *decision.Status {
	var status *fwk.Status
	err := apart(func() { status = p.preBind.PreBind(ctx, c.state, pod, node) })
	switch {
	case err != nil:
		return &decision.Status{Code: decision.Error, Plugin: p.name, Err: err}
	case status.IsSuccess():
		return nil
	case status.IsRejected():
		s := statusOf(status)
		s.Plugin = p.name
		return s
	}
	err = errorOf(status)
	if errors.Is(err, context.Canceled) && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	return &decision.Status{Code: decision.Error, Plugin: p.name, Err: err}
}

// bind calls the Bind plugin and returns its result as a reply. A plugin that skips the pod makes
// the machine ask the next one. A rejection, an error and a panic are BindRefused.
func (c *cycle) bind(ctx context.Context, e machine.RunPlugins) machine.BindReply {
	var status *fwk.Status
	p, pod := c.host.byName[e.Plugins[0]], c.assumed(e.Node)
	err := apart(func() { status = p.bind.Bind(ctx, c.state, pod, e.Node) })
	reply := machine.BindReply{UID: e.Pod.UID}
	switch {
	case err != nil:
		reply.Result, reply.Err = machine.BindRefused, err
	case status.IsSkip():
		reply.Result = machine.BindSkipped
	case status.IsRejected():
		reply.Result, reply.Err = machine.BindRefused, &machine.Rejection{Status: statusOf(status)}
	case !status.IsSuccess():
		reply.Result, reply.Err = machine.BindRefused, errorOf(status)
	}
	return reply
}

// startPostBind queues a call of the PostBind plugin. It drops the call if postBindLimit
// calls wait.
func (c *cycle) startPostBind(ctx context.Context, e machine.RunPlugins) {
	p, pod := c.host.byName[e.Plugins[0]], c.assumed(e.Node)
	ctx = context.WithoutCancel(ctx)
	run := func() {
		if err := apart(func() { p.postBind.PostBind(ctx, c.state, pod, e.Node) }); err != nil {
			c.host.options.Logger.Error(err, "Plugin failed", "plugin", p.name, "pod", klog.KObj(pod), "operation", "PostBind")
		}
	}
	select {
	case c.host.postBinds <- run:
	default:
		c.host.options.Logger.Info("Dropping a call of PostBind, too many have not returned", "plugin", p.name, "pod", klog.KObj(pod))
	}
}

// runPostBinds starts the goroutines that call PostBind plugins, until the context ends.
func (h *Hosts) runPostBinds(ctx context.Context) {
	for range postBindWorkers {
		go func() {
			for {
				select {
				case f := <-h.postBinds:
					f()
				case <-ctx.Done():
					return
				}
			}
		}()
	}
}
