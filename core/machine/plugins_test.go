package machine

import (
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

const scheduler = "test-scheduler"

// mood is what a plugin does at a point when it is next asked.
type mood string

const (
	fails   mood = "fails"   // an error
	rejects mood = "rejects" // the pod, as unschedulable
	pends   mood = "pends"   // rejects as pending
	panics  mood = "panics"
	waits   mood = "waits"  // Permit: ten seconds at most
	writes  mood = "writes" // PreBind, RevertWrites: something is to be written first
	allows  mood = "allows" // Permit: all that wait may go
	expels  mood = "expels" // Permit: all that wait are rejected
	passes  mood = "passes" // Bind: leaves it to others
)

// moody is the plugin at which anything may go wrong. What is to go wrong is
// set for one step of the machine at a time.
type moody struct {
	moods   map[string]mood // by point
	waiting map[types.UID]bool
	calls   []string // "Reserve p1", "Unreserve p1"
}

var errMood = errors.New("out of sorts")

func (mo *moody) ask(point string) mood {
	m := mo.moods[point]
	if m == panics {
		delete(mo.moods, point)
		panic("at " + point)
	}
	return m
}

func (mo *moody) status(point string) *decision.Status {
	switch mo.ask(point) {
	case fails:
		return &decision.Status{Code: decision.Error, Err: errMood}
	case rejects:
		return &decision.Status{Code: decision.Unschedulable, Reasons: []string{"not in the mood"}}
	case pends:
		return &decision.Status{Code: decision.Pending, Reasons: []string{"not in the mood yet"}}
	}
	return nil
}

// plugin implements every point but QueueSort and Bind.
func (mo *moody) plugin() *framework.Plugin {
	return &framework.Plugin{
		Name: "Moody",
		// Its moods change with an annotation of a node.
		EventsToRegister: []framework.ClusterEventWithHint{{Resource: framework.Node, ActionType: framework.UpdateNodeAnnotation | framework.Add}},
		SignPlugin: framework.SignPlugin{
			Locality: framework.NodeAndPods, // so that it is asked often
			Sign:     func(key []byte, _ *table.Table, _ *object.Pod) []byte { mo.ask("Sign"); return key },
			Epoch:    func(*table.Table) uint64 { mo.ask("Epoch"); return 0 },
		},
		PreEnqueue: func(*table.Table, *object.Pod) *decision.Status {
			return mo.status("PreEnqueue")
		},
		PreFilter: func(*table.Table, *object.Pod) framework.PreFilterResult {
			return framework.PreFilterResult{Status: mo.status("PreFilter")}
		},
		FilterPlugin: framework.FilterPlugin{
			Filter: func(_ *framework.Input, _ []table.Row, out []framework.Verdict) {
				mo.ask("Filter")
				clear(out)
			},
			Explain: func(*framework.Input, table.Row, framework.Verdict) decision.Blocker {
				return decision.Blocker{Code: decision.Unschedulable}
			},
		},
		PreScore: func(*table.Table, *object.Pod) framework.PreScoreResult {
			return framework.PreScoreResult{Status: mo.status("PreScore")}
		},
		ScorePlugin: framework.ScorePlugin{
			Score: func(_ *framework.Input, _ []table.Row, out []int64) {
				mo.ask("Score")
				clear(out)
			},
			NormalizeScore: func(_, _, _ int64) int64 { mo.ask("NormalizeScore"); return 0 },
		},
		ReservePlugin: framework.ReservePlugin{
			Reserve: func(_ *table.Table, p *object.Pod, _ string) *decision.Status {
				mo.calls = append(mo.calls, "Reserve "+p.Name)
				return mo.status("Reserve")
			},
			Unreserve: func(_ *table.Table, p *object.Pod, _ string) {
				mo.calls = append(mo.calls, "Unreserve "+p.Name)
				mo.ask("Unreserve")
			},
			RevertWrites: func(*table.Table, *object.Pod, string) []framework.Write {
				if mo.ask("RevertWrites") == writes {
					return []framework.Write{{}}
				}
				return nil
			},
		},
		Permit: mo.permit,
		PreBindPlugin: framework.PreBindPlugin{
			PreBind: func(*table.Table, *object.Pod, string) ([]framework.Write, *decision.Status) {
				if mo.ask("PreBind") == writes {
					return []framework.Write{{}}, nil
				}
				return nil, mo.status("PreBind")
			},
			WaitNotice: func(*table.Table, *object.Pod, string) *framework.Notice {
				if mo.ask("WaitNotice") == waits {
					return &framework.Notice{Reason: "Moody", Action: "Brooding", Note: "in no hurry"}
				}
				return nil
			},
			WritesDone: func(*table.Table, *object.Pod, string) *decision.Status {
				if mo.ask("WritesDone") == waits {
					return &decision.Status{Code: decision.Wait}
				}
				return mo.status("WritesDone")
			},
			WritesTimeout: framework.Timeout{After: 20 * time.Second, Err: errors.New("too late")},
		},
		PostBind: func(p *object.Pod, _ string) {
			mo.calls = append(mo.calls, "PostBind "+p.Name)
			mo.ask("PostBind")
		},
	}
}

// again is a second plugin that reserves.
func (mo *moody) again() *framework.Plugin {
	return &framework.Plugin{
		Name: "Again",
		ReservePlugin: framework.ReservePlugin{
			Reserve: func(_ *table.Table, p *object.Pod, _ string) *decision.Status {
				mo.calls = append(mo.calls, "Reserve again "+p.Name)
				return nil
			},
			Unreserve: func(_ *table.Table, p *object.Pod, _ string) { mo.calls = append(mo.calls, "Unreserve again "+p.Name) },
		},
	}
}

func (mo *moody) permit(_ *table.Table, p *object.Pod, _ string) framework.PermitResult {
	waiting := slices.Sorted(maps.Keys(mo.waiting))
	switch mo.ask("Permit") {
	case waits:
		mo.waiting[p.UID] = true
		return framework.PermitResult{Status: &decision.Status{Code: decision.Wait}, Timeout: 10 * time.Second}
	case allows:
		clear(mo.waiting)
		return framework.PermitResult{Allow: waiting}
	case expels:
		clear(mo.waiting)
		return framework.PermitResult{Reject: waiting}
	}
	return framework.PermitResult{Status: mo.status("Permit")}
}

func sortPlugin(mo *moody) *framework.Plugin {
	return &framework.Plugin{
		Name: "Sort",
		Less: func(a, b *framework.QueuedPodInfo) bool {
			mo.ask("Less")
			if a.Pod.Priority != b.Pod.Priority {
				return a.Pod.Priority > b.Pod.Priority
			}
			return a.Timestamp.Before(b.Timestamp)
		},
	}
}

func gatePlugin() *framework.Plugin {
	return &framework.Plugin{
		Name:             "Gates",
		EventsToRegister: []framework.ClusterEventWithHint{{Resource: framework.TargetPod, ActionType: framework.UpdatePodSchedulingGatesEliminated}},
		PreEnqueue: func(_ *table.Table, p *object.Pod) *decision.Status {
			if len(p.Gates) == 0 {
				return nil
			}
			return &decision.Status{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{"gated"}}
		},
	}
}

// fitPlugin looks at CPU, and preempts.
func fitPlugin(mo *moody) *framework.Plugin {
	return &framework.Plugin{
		Name: "Fit",
		EventsToRegister: []framework.ClusterEventWithHint{
			{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeAllocatable},
			{Resource: framework.AssignedPod, ActionType: framework.Delete | framework.UpdatePodScaleDown},
		},
		SignPlugin: framework.SignPlugin{
			Locality: framework.NodeAndPods,
			Sign:     func(key []byte, _ *table.Table, p *object.Pod) []byte { return p.Demand.Usage.AppendKey(key) },
		},
		FilterPlugin: framework.FilterPlugin{
			Filter: func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
				used, offered, cpu := in.Table.Used(table.CPU), in.Table.Allocatable(table.CPU), in.Pod.Demand.Usage.MilliCPU
				for i := range out {
					out[i] = framework.Fits
					if r := rows[i]; cpu > 0 && used[r]+cpu > offered[r] {
						out[i] = 1
					}
				}
			},
			Explain: func(*framework.Input, table.Row, framework.Verdict) decision.Blocker {
				mo.ask("Explain")
				return decision.Blocker{Code: decision.Unschedulable, Reasons: []string{"no cpu"}}
			},
		},
		PostFilter: func(c *framework.PostFilterCall) framework.PostFilterResult {
			mo.ask("PostFilter")
			return preemptLesser(c)
		},
		ScorePlugin: framework.ScorePlugin{
			Score: func(in *framework.Input, rows []table.Row, out []int64) {
				used := in.Table.Used(table.CPU)
				for i := range out {
					out[i] = max(0, 100-used[rows[i]])
				}
			},
		},
	}
}

// preemptLesser makes room on the first node where lesser pods can.
func preemptLesser(c *framework.PostFilterCall) framework.PostFilterResult {
	lesser := func(r table.Row) (uids []types.UID) {
		for _, pl := range c.Table.Pods(r) {
			if pl.Pod.Priority < c.Pod.Priority {
				uids = append(uids, pl.Pod.UID)
			}
		}
		slices.Sort(uids)
		return uids
	}
	if r, ok := c.Table.Find(c.Nominations.PreemptedNodeName); ok {
		for _, uid := range lesser(r) {
			if c.Disruption.Evicting(uid) || c.Table.Pod(uid).Pod.Terminating {
				return framework.PostFilterResult{KeepNomination: true, Message: "victims are on their way"}
			}
		}
	}
	for r := range table.Row(c.Table.Rows()) {
		victims := lesser(r)
		if c.Table.Node(r) == nil || c.Filters.Code(r) != decision.Unschedulable || len(victims) == 0 {
			continue
		}
		mark := c.Table.Checkpoint()
		for _, uid := range victims {
			c.Table.RemovePod(uid)
		}
		fits := c.Filters.Run(r) == nil
		c.Table.Undo(mark)
		if fits {
			if !c.HasExtenders {
				return framework.PostFilterResult{NominatedNodeName: c.Table.Name(r), Victims: victims, Resolved: true}
			}
			offer := framework.Candidate{Node: c.Table.Name(r)}
			for _, uid := range victims {
				offer.Victims = append(offer.Victims, c.Table.Pod(uid).Pod)
			}
			return framework.PostFilterResult{Candidates: []framework.Candidate{offer}, Choose: chooseFirst}
		}
	}
	return framework.PostFilterResult{Message: "nobody to preempt"}
}

// chooseFirst takes the first of the candidates that extenders leave.
func chooseFirst(_ *framework.PostFilterCall, left []framework.Candidate, err error) framework.PostFilterResult {
	switch {
	case err != nil:
		return framework.PostFilterResult{Message: err.Error(), KeepNomination: true}
	case len(left) == 0:
		return framework.PostFilterResult{Message: "nobody is left to preempt", KeepNomination: true}
	}
	out := framework.PostFilterResult{NominatedNodeName: left[0].Node, Resolved: true}
	for _, p := range left[0].Victims {
		out.Victims = append(out.Victims, p.UID)
	}
	return out
}

// zonePlugin lets a pod with a zone on nodes of that zone alone.
func zonePlugin() *framework.Plugin {
	return &framework.Plugin{
		Name:             "Zone",
		EventsToRegister: []framework.ClusterEventWithHint{{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeLabel}, {Resource: framework.TargetPod, ActionType: framework.UpdatePodLabel}},
		SignPlugin: framework.SignPlugin{
			Sign: func(key []byte, _ *table.Table, p *object.Pod) []byte { return append(key, p.Labels["zone"]...) },
		},
		FilterPlugin: framework.FilterPlugin{
			Filter: func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
				for i := range out {
					n := in.Table.Node(rows[i])
					out[i] = framework.Fits
					if zone := in.Pod.Labels["zone"]; n != nil && zone != "" && zone != n.Labels["zone"] {
						out[i] = 1
					}
				}
			},
			Explain: func(*framework.Input, table.Row, framework.Verdict) decision.Blocker {
				return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{"wrong zone"}}
			},
		},
	}
}

func bindPlugin(mo *moody) *framework.Plugin {
	return &framework.Plugin{
		Name: "Binder",
		Bind: func(*object.Pod, string) bool { return mo.ask("Bind") != passes },
	}
}

// testProfile has them all.
func testProfile(mo *moody) *profile.Profile {
	sort, gate, zone, fit, any, bind := sortPlugin(mo), gatePlugin(), zonePlugin(), fitPlugin(mo), mo.plugin(), bindPlugin(mo)
	again := mo.again()
	list := func(l ...*framework.Plugin) []*framework.Plugin { return l }
	p := &profile.Profile{
		Name: scheduler, QueueSort: sort, PreEnqueue: list(gate, any), PreFilter: list(any), Filter: list(any, zone, fit),
		PostFilter: list(fit), PreScore: list(any), Score: []profile.Scorer{{Plugin: fit, Weight: 1}, {Plugin: any, Weight: 1}},
		Reserve: list(any, again), Permit: list(any), PreBind: list(any), Bind: list(bind), PostBind: list(any),
		Plugins: map[string]*framework.Plugin{},
	}
	for _, pl := range list(sort, gate, zone, fit, any, again, bind) {
		p.Plugins[pl.Name] = pl
	}
	return p
}
