package machine

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/table"
)

// Options is what a machine is made of.
type Options struct {
	// Profiles by schedulerName; pods that name none of them are left alone.
	// All have the same QueueSort.
	Profiles []*profile.Profile
	// Extenders in the order in which they are asked: those that are not
	// Ignorable first.
	Extenders []Extender
	// Seed decides among nodes that score the same.
	Seed uint64
	// Workers is how many cores one decision may use; at least 1.
	Workers int
	// ViewsOff keeps no answers from one decision to the next: slow, and the
	// same decisions.
	ViewsOff bool
	// Explain fills Decision.Nodes in every record.
	Explain bool
	// Check verifies every invariant after each step and panics on a breach.
	Check bool

	// Backoffs and stays, as queue.Options has them.
	InitialBackoff, MaxBackoff, MaxUnschedulable time.Duration
}

// Machine is the scheduler's whole state. It has one owner, who calls Step;
// nothing in it is safe for concurrent use.
type Machine struct {
	options  Options
	profiles map[string]*profile.Profile
	table    *table.Table
	engine   *engine.Engine
	queue    *queue.Queue

	// uids holds, by namespace/name, the UID of every pod that is queued, in
	// flight or placed.
	uids map[string]types.UID
	// flights holds the pods between Assume and the end of their binding.
	flights map[types.UID]*flight
	// awaiting holds the flights of that phase.
	awaiting map[types.UID]*flight
	// ended holds the pods that are gone, or done with their work, of whose
	// binding nothing has been heard yet.
	ended map[types.UID]*flight
	// assumed holds the pods placed on our word alone: the API has not shown
	// them bound yet.
	assumed map[types.UID]string
	// doubts are about pods held for bound that may not be, by UID.
	doubts  map[types.UID]*doubt
	undone  int
	budgets budgets
	// evictions holds, by UID, the victims whose eviction was asked for.
	evictions map[types.UID]*eviction
	// hunts holds, by UID of the preemptor, what each pod preempted last.
	hunts map[types.UID]hunt
	// inquiries holds the pods that wait for an extender, line those of them
	// that were not asked about yet, the most important first.
	inquiries map[types.UID]*inquiry
	line      []*inquiry
	busy      []int // by extender: questions without an answer
	roomy     bool  // fewer than before
	questions uint64
	// asked holds, by UID, the nominations that the API was asked to write and
	// does not show yet.
	asked map[types.UID]string
	// unlisted holds, by kind, why its objects are not known.
	unlisted map[object.Kind]error
	// gated remembers for which pods a Gated record was given.
	gated map[types.UID]bool

	now     time.Time
	effects []Effect
	changed Change
	panics  int

	// ahead counts the pods whose turn comes before the engine is asked again
	// whether it wants to see others ahead of theirs.
	ahead  int
	soon   []*object.Pod
	coming []*engine.Request
}

// New returns a machine without nodes and pods.
func New(o Options) *Machine {
	m := &Machine{
		options:   o,
		profiles:  map[string]*profile.Profile{},
		table:     table.New(),
		uids:      map[string]types.UID{},
		flights:   map[types.UID]*flight{},
		awaiting:  map[types.UID]*flight{},
		ended:     map[types.UID]*flight{},
		assumed:   map[types.UID]string{},
		doubts:    map[types.UID]*doubt{},
		asked:     map[types.UID]string{},
		gated:     map[types.UID]bool{},
		unlisted:  map[object.Kind]error{},
		evictions: map[types.UID]*eviction{},
		hunts:     map[types.UID]hunt{},
		inquiries: map[types.UID]*inquiry{},
		busy:      make([]int, len(o.Extenders)),
	}
	for _, p := range o.Profiles {
		m.profiles[p.Name] = p
	}
	m.engine = engine.New(m.table, o.Seed, o.Workers)
	if o.ViewsOff {
		m.engine = engine.NewPlain(m.table, o.Seed)
	}
	m.queue = queue.New(queue.Options{
		InitialBackoff:   o.InitialBackoff,
		MaxBackoff:       o.MaxBackoff,
		MaxUnschedulable: o.MaxUnschedulable,
		Less:             m.less,
		PreEnqueue:       m.preEnqueue,
		Waits:            func(p *object.Pod) bool { return m.hunting(p.UID) != "" },
		Wakes:            m.wakes,
	})
	return m
}

// Step tells the machine of one event and returns what is to be done about
// it, in order. now must not go back, by the monotonic clock if it has it.
func (m *Machine) Step(now time.Time, e Event) []Effect {
	m.now, m.effects, m.changed = now, nil, Change{}
	m.table.SetNow(now)
	switch e := e.(type) {
	case NodeSet:
		m.nodeSet(e.Node)
	case NodeGone:
		m.nodeGone(e.Name)
	case PodSet:
		m.podSet(e.Pod)
	case PodGone:
		m.podGone(e)
	case PodUnreadable:
		m.podUnreadable(e)
	case BudgetSet:
		m.budgets = m.budgets.with(e.Budget)
	case BudgetGone:
		m.budgets = m.budgets.without(e.Namespace, e.Name)
	case SelectorOwnerSet:
		m.selectorOwnerChanged(m.table.SetSelectorOwner(e.Owner), e.Owner)
	case SelectorOwnerGone:
		m.selectorOwnerChanged(m.table.RemoveSelectorOwner(e.Kind, e.Namespace, e.Name), nil)
	case NamespaceSet:
		m.namespaceSet(e.Namespace)
	case NamespaceGone:
		m.namespaceSet(&object.Namespace{Name: e.Name})
	case ObjectSet:
		m.objectSet(e.Object)
	case ObjectGone:
		m.objectGone(e)
	case KindUnlisted:
		m.kindUnlisted(e)
	case KindListed:
		m.kindListed(e.Kind)
	case Rewound:
		m.rewound()
	case Tick:
		m.tick()
	case Cycle:
		m.cycle()
	case Bound:
		m.bound(e)
	case Written:
		m.written(e)
	case PodRead:
		m.podRead(e)
	case Evicted:
		m.evicted(e)
	case Answered:
		m.answered(e)
	}
	if m.roomy {
		m.next()
	}
	if m.options.Check {
		if err := m.Verify(); err != nil {
			panic(fmt.Sprintf("machine: after %T: %v", e, err))
		}
	}
	effects := m.effects
	m.effects = nil // what is left here is of a step that panicked
	return effects
}

// Ready tells whether a Cycle would take a pod now.
func (m *Machine) Ready() bool { return m.queue.Ready() }

// First is the pod that a Cycle would take now, nil when there is none.
func (m *Machine) First() *object.Pod { return m.queue.First() }

// NextTimer is when a Tick is next needed; false when nothing waits for time.
func (m *Machine) NextTimer() (time.Time, bool) {
	next, ok := m.queue.NextTimer()
	for _, f := range m.flights { // any order: takes the earliest
		for _, deadline := range f.timers() { // any order: takes the earliest
			if !ok || deadline.Before(next) {
				next, ok = deadline, true
			}
		}
	}
	for _, q := range m.inquiries { // any order: takes the earliest
		for _, asked := range q.open { // any order: takes the earliest
			if due := q.deadline(&m.options.Extenders[asked.extender]); !ok || due.Before(next) {
				next, ok = due, true
			}
		}
	}
	return next, ok
}

// Queue is the machine's queue, for inspection only.
func (m *Machine) Queue() *queue.Queue { return m.queue }

// Table is the machine's table, for inspection only.
func (m *Machine) Table() *table.Table { return m.table }

// Pods lists the pods that wait or are placed, in no order.
func (m *Machine) Pods() []*object.Pod {
	pods := m.queue.AppendPods(make([]*object.Pod, 0, m.table.Placements()))
	pods = slices.DeleteFunc(pods, func(p *object.Pod) bool { return m.table.Pod(p.UID) != nil }) // assumed
	for r := range m.table.Rows() {
		for _, pl := range m.table.Pods(table.Row(r)) {
			pods = append(pods, pl.Pod)
		}
	}
	return pods
}

// Change is what an event changed in the cluster.
type Change struct {
	Resource framework.EventResource
	Action   framework.ActionType // 0: nothing
}

// Changed is what the last step changed first.
func (m *Machine) Changed() Change { return m.changed }

func (m *Machine) happened(r framework.EventResource, a framework.ActionType) {
	if m.changed.Action == 0 {
		m.changed = Change{r, a}
	}
}

// Panics is how many panics were contained to the pod at hand.
func (m *Machine) Panics() int { return m.panics }

// Inquiries is the number of pods that wait for an extender.
func (m *Machine) Inquiries() int { return len(m.inquiries) }

// Assumed is the number of pods placed on our word alone.
func (m *Machine) Assumed() int { return len(m.assumed) }

// Unsettled is the number of pods of which it is not known whether they are
// bound: the reply to a binding was lost, and no read has told yet.
func (m *Machine) Unsettled() int {
	n := 0
	for _, f := range m.flights { // any order: a sum
		if f.phase == settling || f.phase == binding && f.tries > 0 {
			n++
		}
	}
	return n
}

func (m *Machine) do(e Effect) {
	if m.effects == nil {
		m.effects = make([]Effect, 0, 2) // a decision's record and its binding
	}
	m.effects = append(m.effects, e)
}

func (m *Machine) tick() {
	m.queue.Flush(m.now)
	m.overdue()
	for _, uid := range sortedUIDs(m.flights) {
		switch f := m.flights[uid]; {
		case f == nil: // ended by another's end
		case f.phase == waiting:
			m.expirePermits(f)
		case f.phase == awaiting:
			m.expireAwait(f)
		}
	}
}

// timers are the times at which a wait of the flight is over.
func (f *flight) timers() map[string]time.Time {
	switch f.phase {
	case waiting:
		return f.permits
	case awaiting:
		return f.deadlines
	}
	return nil
}

func sortedUIDs(flights map[types.UID]*flight) []types.UID {
	if len(flights) == 0 {
		return nil
	}
	uids := make([]types.UID, 0, len(flights))
	for uid := range flights { // any order: sorted below
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	return uids
}

// less is the QueueSort plugin's order; pods for which it panics come in the
// order of their arrival.
func (m *Machine) less(a, b *framework.QueuedPodInfo) (before bool) {
	defer func() {
		if recover() != nil {
			m.panics++
			before = false
		}
	}()
	return m.options.Profiles[0].QueueSort.Less(a, b)
}

// wakes looks up the wake rules of one of the profile's plugins.
func (m *Machine) wakes(name, plugin string) ([]framework.ClusterEventWithHint, bool) {
	if p := m.profiles[name]; p != nil && p.Plugins[plugin] != nil {
		return p.Plugins[plugin].EventsToRegister, true
	}
	if plugin == engine.Extender {
		return anything, true
	}
	return nil, false
}

// anything wakes a pod that extenders rejected: they do not say what may help.
var anything = []framework.ClusterEventWithHint{{Resource: framework.WildCard, ActionType: framework.All}}

// guard runs f for the pod and contains a panic to it: the error names where
// it happened. State that a half-done try left behind is undone.
func (m *Machine) guard(point, plugin string, f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			m.panics++
			m.table.Rollback()
			m.engine.Reset()
			err = fmt.Errorf("%s panicked: %v (%s)", running(point, plugin), r, site(debug.Stack()))
		}
	}()
	f()
	return nil
}

// site picks the line of the stack where the panic was raised.
func site(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "panic(") && i+3 < len(lines) {
			at := strings.TrimSpace(lines[i+3])
			if j := strings.LastIndex(at, "/"); j >= 0 {
				at = at[j+1:]
			}
			return strings.Fields(at)[0]
		}
	}
	return "unknown site"
}
