package machine

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/foresight"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/recovered"
	"github.com/berth-scheduler/berth/core/table"
)

// New returns a machine without nodes and pods.
func New(o Options) *Machine {
	m := &Machine{options: o, profiles: profiles{}, unlisted: unlistedKinds{}, budgets: &budgets{}, step: &step{table: table.New()}}
	if o.placesGroups() {
		m.table.CountGroups()
	}
	for _, p := range o.Profiles {
		m.profiles[p.Name] = p
	}
	m.engine = engine.New(m.table, o.Seed, o.Workers)
	if o.ViewsOff {
		m.engine = engine.NewPlain(m.table, o.Seed)
	}
	if o.Check {
		m.engine.CheckShortCuts()
	}
	m.composePods()
	m.composeCycles()
	m.composeRest()
	return m
}

// composePods creates the queue and the parts that keep the state of pods.
func (m *Machine) composePods() {
	m.guard = &guard{table: m.table, engine: m.engine, options: &m.options}
	m.pods = &pods{table: m.table, profiles: m.profiles, byUID: map[types.UID]*podState{}, byName: map[types.NamespacedName]*podState{}}
	m.extenders = &extenderCycles{step: m.step, options: &m.options, profiles: m.profiles, busy: make([]int, len(m.options.Extenders))}
	foresee := &foresight.Foresight{
		Table: m.table, Profiles: m.profiles, Panicked: m.guard.report, FoundNoVictims: m.pods.foundNoVictims,
		Extended: func(p *object.Pod) bool { return m.extenders.of(p) != nil }, Grouped: func(p *object.Pod) bool { return m.groups.has(p) },
	}
	var podGroup func(types.NamespacedName) *object.PodGroup
	var halfBound func(types.NamespacedName) bool
	if m.options.placesGroups() {
		podGroup = func(name types.NamespacedName) *object.PodGroup { return table.PodGroup(m.table, name) }
		halfBound = func(name types.NamespacedName) bool { return m.table.Groups().Named(name).HalfBound(podGroup(name)) }
	}
	m.queue = queue.New(queue.Options{
		InitialBackoff:   m.options.InitialBackoff,
		MaxBackoff:       m.options.MaxBackoff,
		MaxUnschedulable: m.options.MaxUnschedulable,
		Less:             m.less,
		PreEnqueue:       m.runPreEnqueue,
		WaitOutBackoff:   m.options.WaitOutBackoff,
		HoldInBackoff:    m.holdInBackoff,
		PodGroup:         podGroup,
		HalfBound:        halfBound,
		EventsToRegister: m.profiles.eventsToRegister,
		Foresight:        foresee,
		HintPanicked: func(plugin string, value any) {
			m.guard.report(recovered.From(fmt.Sprintf("the queueing hint of plugin %q", plugin), value))
		},
	})
	foresee.NominatedTo = m.queue.NominatedTo
	m.nominations = &nominations{m.step, m.queue, m.pods}
	m.preemptors = &preemptors{step: m.step, pods: m.pods}
	m.conditions = &conditions{step: m.step, pods: m.pods, present: func(p *object.Pod) *object.Condition { return m.PresentCondition(p) }}
	m.overcommits = &overcommits{step: m.step}
}

// composeCycles creates the parts that run scheduling and binding cycles, of pods and of pod
// groups, and those that write the statuses of PodGroups and ElasticQuotas.
func (m *Machine) composeCycles() {
	m.attempts = &attempts{m.step, &m.options, m.profiles, m.pods, m.nominations, m.conditions}
	m.reads = &reads{m.step}
	m.bindings = &bindingCycles{
		step: m.step, options: &m.options, guard: m.guard, profiles: m.profiles, pods: m.pods, attempts: m.attempts,
		nominations: m.nominations, preemptors: m.preemptors, reads: m.reads,
	}
	m.evictions = &evictions{step: m.step, options: &m.options, pods: m.pods, preemptors: m.preemptors, bindings: m.bindings}
	m.scheduling = &schedulingCycles{
		step: m.step, options: &m.options, profiles: m.profiles, unlisted: m.unlisted, budgets: m.budgets, engine: m.engine, guard: m.guard, pods: m.pods,
		attempts: m.attempts, nominations: m.nominations, preemptors: m.preemptors, bindings: m.bindings, evictions: m.evictions, extenders: m.extenders,
	}
	statuses := &groupStatuses{
		step: m.step, pods: m.pods, ended: map[types.UID]EndedPods{}, occupied: map[types.UID]string{}, reads: map[types.UID]*endedRead{}, recent: map[types.NamespacedName]bool{},
		asked: newAsked[types.UID](func(a, b object.GroupStatus) bool { return a == b }),
	}
	m.quotas = &quotas{step: m.step, profiles: m.profiles, asked: newAsked[string](slices.Equal[object.Amounts]), reported: map[string]string{}}
	m.groups = &podGroups{
		step: m.step, options: &m.options, profiles: m.profiles, budgets: m.budgets, engine: m.engine, guard: m.guard, pods: m.pods, nominations: m.nominations, preemptors: m.preemptors,
		overcommits: m.overcommits, attempts: m.attempts, bindings: m.bindings, evictions: m.evictions, extenders: m.extenders, scheduling: m.scheduling, statuses: statuses,
		asked: map[types.UID]object.GroupCondition{},
	}
}

// composeRest creates Assessor, Inspector, and the parts that handle events from the API.
func (m *Machine) composeRest() {
	m.cluster = &cluster{
		step: m.step, options: &m.options, unlisted: m.unlisted, budgets: m.budgets, pods: m.pods, nominations: m.nominations, bindings: m.bindings, groups: m.groups, quotas: m.quotas, statuses: m.groups.statuses,
	}
	m.watch = &podWatch{
		step: m.step, profiles: m.profiles, engine: m.engine, guard: m.guard, pods: m.pods, nominations: m.nominations, reads: m.reads,
		overcommits: m.overcommits, attempts: m.attempts, bindings: m.bindings, evictions: m.evictions, extenders: m.extenders, groups: m.groups, statuses: m.groups.statuses,
	}
	m.Assessor = Assessor{
		step: m.step, profiles: m.profiles, unlisted: m.unlisted, engine: m.engine, guard: m.guard, pods: m.pods,
		nominations: m.nominations, bindings: m.bindings, extenders: m.extenders, scheduling: m.scheduling, groups: m.groups,
	}
	m.Inspector = Inspector{
		step: m.step, profiles: m.profiles, unlisted: m.unlisted, budgets: m.budgets, guard: m.guard, pods: m.pods, nominations: m.nominations,
		preemptors: m.preemptors, overcommits: m.overcommits, bindings: m.bindings, evictions: m.evictions, extenders: m.extenders, groups: m.groups, watch: m.watch,
	}
}

// reconfigure replaces the profiles, the backoffs and the number of workers. It drops cached
// evaluations, ends attempts that wait for extenders, and makes all waiting pods active. Binding
// cycles go on with their old plugins, which know what to undo. An attempt whose PostFilter plugin
// has writes under way goes on until they are done.
func (m *Machine) reconfigure(e Reconfigured) {
	m.options.Profiles = e.Profiles
	for _, p := range e.Profiles {
		m.profiles[p.Name] = p
	}
	m.engine.Reconfigure(e.Workers)
	for _, ps := range m.pods.byUID { // any order: each by itself
		if ps.request != nil {
			ps.request = engine.For(m.profiles[ps.request.Profile.Name], ps.request.Pod)
		}
		ps.toldGated = false
	}
	var brokenOff []*queue.Entry
	for _, c := range slices.Clone(m.extenders.cycles) {
		if c.postFilter != nil && len(c.postFilter.result.Writes) > 0 {
			continue
		}
		brokenOff = append(brokenOff, c.state.entry)
		m.extenders.finish(c.state)
	}
	m.queue.Reconfigure(m.now, queue.Backoffs{Initial: e.InitialBackoff, Max: e.MaxBackoff}, brokenOff)
}
